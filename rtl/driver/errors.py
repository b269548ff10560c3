"""What the driver raises."""

from __future__ import annotations


class NicError(Exception):
    """The NIC, or a request to it, is not what it should be; the message says what to do."""
