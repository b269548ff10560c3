"""Whole numbers that callers give."""

from __future__ import annotations

import operator
from contextlib import suppress
from typing import Any

from catchment.host.collectives.errors import CollectiveError


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
    if not isinstance(number, bool):
        with suppress(TypeError):
            return operator.index(number)
    raise CollectiveError(f"{what} {number!r}", kind="argument", hint=hint)
