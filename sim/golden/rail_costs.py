"""What rails cost for operations of each size, learnt from what all ranks report, in integers.

docs/explanation/rails.md says why. The C++ of the collectives must have the same costs after the same reports.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from catchment.sim.golden.rails import RailCost

LEAST_CLASS, MOST_CLASS = 8, 36


def size_class(size: int) -> int:
    """The class of an operation of `size` bytes of the wire: operations up to 2^class bytes."""
    return min(max((size - 1).bit_length(), LEAST_CLASS), MOST_CLASS)


@dataclass(frozen=True, slots=True)
class Sample:
    """What a rank has seen of a rail in operations of one class since it last said so.

    `beside`: while other rails carried the other parts. `start_ns`: the shortest. `bytes_per_ms`: 0 where the parts
    were too short to tell a rate.
    """

    rail: int
    size_class: int
    beside: bool
    start_ns: int
    bytes_per_ms: int


@dataclass(slots=True)
class _Mean:
    """A mean in which the first reports count for a half, later ones for an eighth."""

    EARLY_REPORTS = 8

    value: int = 0
    reports: int = 0

    def learn(self, measured: int) -> None:
        """Take in one more report."""
        parts = 1 if self.reports == 0 else 2 if self.reports < self.EARLY_REPORTS else 8
        self.value = min(max((self.value * (parts - 1) + measured) // parts, 1), (1 << 32) - 1)
        self.reports += 1


@dataclass(slots=True)
class _Classes:
    """What is known of one rail, alone or beside others, by class."""

    starts: dict[int, _Mean] = field(default_factory=dict)
    rates: dict[int, _Mean] = field(default_factory=dict)


def _nearest(known: dict[int, _Mean], of_class: int) -> int | None:
    """What is known of the nearest class, of two as near the lower one."""
    if not known:
        return None
    return known[min(known, key=lambda one: (abs(one - of_class), one))].value


class CostTable:
    """What all ranks believe of the rails after the same reports; `believed` is what they believe before."""

    def __init__(self, believed: Sequence[RailCost]) -> None:
        self._believed = list(believed)
        self._alone = [_Classes() for _ in believed]
        self._beside = [_Classes() for _ in believed]

    def learn(self, ranks: Sequence[Sequence[Sample]]) -> None:
        """Learn from a report, each rank's samples; what some rank has no sample of stays as it is.

        A rail is as fast as for its slowest rank.
        """
        by_rank = [{(s.rail, s.size_class, s.beside): s for s in reversed(samples)} for samples in ranks]
        for key in [key for key in by_rank[0] if all(key in samples for samples in by_rank)]:
            rail, of_class, beside = key
            samples = [samples[key] for samples in by_rank]
            classes = (self._beside if beside else self._alone)[rail]
            classes.starts.setdefault(of_class, _Mean()).learn(max(sample.start_ns for sample in samples))
            if rate := min(sample.bytes_per_ms for sample in samples):
                classes.rates.setdefault(of_class, _Mean()).learn(rate)

    def costs(self, size: int) -> list[RailCost]:
        """What the rails cost for an operation of `size` bytes of the wire.

        What is not known of its class is taken from the nearest one; what is known of no class alone, from what is
        known beside other rails, and the other way round.
        """
        of_class = size_class(size)
        costs = []
        for believed, alone, beside in zip(self._believed, self._alone, self._beside, strict=True):
            start, rate = (
                next(
                    (value for one in order if (value := _nearest(one, of_class)) is not None),
                    fallback,
                )
                for order, fallback in (
                    ((alone.starts, beside.starts), believed.start_ns),
                    ((alone.rates, beside.rates), believed.bytes_per_ms),
                )
            )
            hot_start, hot_rate = _nearest(beside.starts, of_class), _nearest(beside.rates, of_class)
            hot = (start if hot_start is None else hot_start, rate if hot_rate is None else hot_rate)
            costs.append(replace(believed, start_ns=start, bytes_per_ms=rate, beside=hot))
        return costs
