"""The one exception of the demo."""


class DemoError(Exception):
    """The demo cannot start or cannot go on; says who failed, how, and what to do."""
