"""Cells of an array on the command line: 7, 0..15, or all of them."""

from __future__ import annotations

from catchment.controlplane.client import SwitchError


def cells(text: str | None, size: int, what: str) -> range:
    """The indices that INDEX, LOW..HIGH (both included) or nothing (all) stands for.

    Raises:
        SwitchError: it is neither, or reaches beyond the array.
    """
    if text is None:
        return range(size)
    low, found, high = text.partition("..")
    try:
        first, last = int(low, 0), int(high if found else low, 0)
    except ValueError:
        raise SwitchError(f"{text!r} is neither INDEX nor LOW..HIGH, as in 7 or 0..15") from None
    if not 0 <= first <= last < size:
        raise SwitchError(f"{what} has the cells 0..{size - 1}: {text} is not among them")
    return range(first, last + 1)
