"""How long callers wait, as torch takes it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from catchment.host.collectives.errors import wrong


def patience_of(timeout: Any) -> timedelta:
    """A timeout that a caller gave: a timedelta, or a float in seconds, as torch's C++ takes them.

    Raises:
        CollectiveError: kind ``argument``: it is neither, or NaN, or more than a timedelta can be.
    """
    if isinstance(timeout, timedelta):
        return timeout
    if isinstance(timeout, float):
        try:
            return timedelta(seconds=timeout)
        except (ValueError, OverflowError):
            pass
    raise wrong(f"a timeout of {timeout!r}", "give a datetime.timedelta, or seconds as a float")
