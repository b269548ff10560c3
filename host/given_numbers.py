"""Numbers that callers give as options: which of them are numbers at all."""

from __future__ import annotations

import math
import operator
from typing import Any


def as_whole(number: Any) -> int | None:
    """A whole number of any type that has them, numpy's too, but no bool; None: it is none."""
    if isinstance(number, bool):
        return None
    try:
        return operator.index(number)
    except TypeError:
        return None


def is_whole(number: Any, least: int, most: int | None = None) -> bool:
    """Whether it is a whole number, as of `as_whole`, from `least` to `most`."""
    whole = as_whole(number)
    return whole is not None and least <= whole and (most is None or whole <= most)


def is_real(number: Any) -> bool:
    """Whether it is a finite number that a float can be, of any type that has them, but no bool."""
    if isinstance(number, bool | str | bytes | bytearray):
        return False
    try:
        return math.isfinite(float(number))
    except (TypeError, ValueError, OverflowError):
        return False
