"""The one exception of labs: networks on this machine and the crews of processes that train on them."""


class LabError(Exception):
    """A run cannot start or cannot go on; says which process failed, how, and what to do."""
