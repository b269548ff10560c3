"""Rates as people write them: 400mbit."""

from __future__ import annotations

import re
from fractions import Fraction

_UNITS = {"kbit": 10**3, "mbit": 10**6, "gbit": 10**9}
_RATE = re.compile(r"(\d{1,6}(?:\.\d{1,6})?)(kbit|mbit|gbit)")
_LEAST, _MOST = 10**3, 400 * 10**9


def bits_per_second(text: str) -> int | None:
    """A rate from 1kbit to 400gbit; None for what is no such rate."""
    parsed = _RATE.fullmatch(text)
    if parsed is None:
        return None
    rate = Fraction(parsed[1]) * _UNITS[parsed[2]]
    return int(rate) if _LEAST <= rate <= _MOST else None
