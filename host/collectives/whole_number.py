"""Whole numbers that callers give."""

from __future__ import annotations

from typing import Any

from catchment.host.collectives.errors import wrong
from catchment.host.given_numbers import as_whole


def whole(what: str, number: Any, hint: str) -> int:
    """A whole number of any type that has them, numpy's too, but no bool.

    Args:
        what: precedes the number in the error.
        number: what a caller gave.
        hint: what is taken.

    Raises:
        CollectiveError: kind ``argument``.
    """
    if type(number) is int:
        return number
    found = as_whole(number)
    if found is None:
        raise wrong(f"{what} {number!r}", hint)
    return found
