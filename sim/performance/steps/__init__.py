"""Steps of a training as graphs of tasks: generated, or read from Chakra execution traces."""
