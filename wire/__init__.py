"""The packet formats and protocol constants, written once, and the generator for every language."""
