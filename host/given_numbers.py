"""Numbers that callers give as options: which of them are numbers at all, and which ones of Python's they are."""

from __future__ import annotations

import math
import operator
from typing import Any, Final

LONGEST: Final = 10**8
"""Seconds: no system, and no library, waits for much longer."""


def as_whole(number: Any) -> int | None:
    """A whole number of any type that has them, numpy's too, but no bool; None: it is none."""
    if isinstance(number, bool):
        return None
    if "bool" in str(getattr(number, "dtype", "")):
        return None
    try:
        return operator.index(number)
    except TypeError:
        return None


def is_whole(number: Any, least: int, most: int | None = None) -> bool:
    """Whether it is a whole number, as of `as_whole`, from `least` to `most`."""
    whole = as_whole(number)
    return whole is not None and least <= whole and (most is None or whole <= most)


def as_real(number: Any) -> float | None:
    """A number of any type that has them, but no bool, as a float; infinite beyond all floats; None: NaN, or none."""
    if type(number) is float:
        return number if number == number else None  # noqa: PLR0124  NaN
    dtype = str(getattr(number, "dtype", ""))
    if isinstance(number, bool | str | bytes | bytearray) or "bool" in dtype or "complex" in dtype:
        return None
    try:
        found = float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf
    except (TypeError, ValueError, RuntimeError):  # the last one of torch, for a tensor without a value
        return None
    return None if math.isnan(found) else found


def is_real(number: Any) -> bool:
    """Whether it is a finite number that a float can be, of any type that has them, but no bool."""
    found = as_real(number)
    return found is not None and math.isfinite(found)


def keep_whole(options: Any, *names: str) -> None:
    """Make attributes of a frozen dataclass, which are whole numbers of any type or None, ints.

    What is computed with numpy's would wrap around.
    """
    for name in names:
        object.__setattr__(options, name, as_whole(getattr(options, name)))


def keep_real(options: Any, *names: str) -> None:
    """Make attributes of a frozen dataclass, which are real numbers of any type or None, floats.

    Not all types can be computed with beside floats.
    """
    for name in names:
        object.__setattr__(options, name, as_real(getattr(options, name)))
