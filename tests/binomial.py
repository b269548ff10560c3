"""Counts of what happens with some probability."""

from __future__ import annotations

import math


def near(count: int, of: int, probability: float) -> bool:
    """Whether a count is within six standard deviations of a binomial distribution."""
    return abs(count - of * probability) <= 6 * math.sqrt(of * probability * (1 - probability)) + 1
