"""Pictures of what the code does, drawn from it: `python -m catchment.demo.pictures FOLDER`."""
