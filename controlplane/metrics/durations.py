"""Durations of one kind of event, counted by length."""

from __future__ import annotations

from bisect import bisect_left

BOUNDS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 1000.0, 10_000.0)
"""Seconds."""


class Durations:
    """Counts durations in cells between `BOUNDS`; one thread adds.

    Attributes:
        count: of all.
        total: their sum in seconds.
    """

    def __init__(self) -> None:
        self.count = 0
        self.total = 0.0
        self._cells = [0] * (len(BOUNDS) + 1)

    def add(self, seconds: float) -> None:
        """Count one."""
        self._cells[bisect_left(BOUNDS, seconds)] += 1
        self.count += 1
        self.total += seconds

    def buckets(self) -> list[tuple[float, int]]:
        """Each bound, and how many were no longer."""
        below, result = 0, []
        for bound, cell in zip(BOUNDS, self._cells, strict=False):
            below += cell
            result.append((bound, below))
        return result
