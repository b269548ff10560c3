"""The sums that a player gets, checked against what all workers' vectors add up to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from catchment.sim.lab.traffic.values import fault


@dataclass(slots=True)
class SumCount:
    """A player's sums: right ones, wrong ones (`first_fault`: the first), and those that came again or too early."""

    right: int = 0
    wrong: int = 0
    extra: int = 0
    first_fault: str | None = None

    def check(self, seq: int, lanes: Sequence[int], workers: int) -> None:
        """Count the sum `seq` of so many workers."""
        self.note(fault(seq, lanes, workers))

    def note(self, problem: str | None) -> None:
        """Count something as right, or as wrong for a reason."""
        if problem is None:
            self.right += 1
        else:
            self.wrong += 1
            self.first_fault = self.first_fault or problem
