"""The co-simulation's exception."""


class CosimError(Exception):
    """A machine that cannot be built, or something in it that did not come to an end; the message says what."""
