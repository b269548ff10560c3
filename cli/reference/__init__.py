"""The pages of the reference that are written from what they describe: `python -m catchment.cli.reference`."""
