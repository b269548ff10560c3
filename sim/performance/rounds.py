"""How often a collective runs, and with what."""

from __future__ import annotations

from dataclasses import dataclass, field

from catchment.host.collectives.rail_split import RailPolicy
from catchment.sim.performance.errors import PerformanceError
from catchment.sim.performance.models import LONGEST, LONGEST_START, PICOS_PER_SECOND

MOST_ROUNDS = 1_000_000


@dataclass(frozen=True, slots=True)
class Splitting:
    """How a message is split over rails.

    Attributes:
        policy: of the project's balancer (docs/explanation/rails.md).
        together: what each rail beyond the first that a message uses costs, in ps.
    """

    policy: RailPolicy = RailPolicy.WATERFILL
    together: int = 50_000_000

    def __post_init__(self) -> None:
        if self.together > LONGEST_START:
            most = f"{LONGEST_START / PICOS_PER_SECOND:g} s"
            raise PerformanceError(f"{self.together / PICOS_PER_SECOND:g} s for each further rail: give {most} at most")


@dataclass(frozen=True, slots=True)
class Rounds:
    """Messages of one size, one after the other.

    Attributes:
        size: bytes of a message, of each worker.
        count: how many.
        slots: of the job; None: what the switch has.
        compute: of each host before each message, in ps; stragglers take longer.
        splitting: over rails, of `nezha`.
    """

    size: int
    count: int = 1
    slots: int | None = None
    compute: int = 0
    splitting: Splitting = field(default_factory=Splitting)

    def __post_init__(self) -> None:
        if self.size < 1 or self.count < 1:
            raise PerformanceError(f"{self.count} rounds of {self.size} bytes: give at least one of each")
        if self.count > MOST_ROUNDS:
            raise PerformanceError(f"{self.count} rounds: give {MOST_ROUNDS} at most")
        if self.slots is not None and self.slots < 1:
            raise PerformanceError(f"{self.slots} slots: give a power of two")
        if self.compute > LONGEST:
            most = f"{LONGEST // PICOS_PER_SECOND} s"
            raise PerformanceError(f"{self.compute / PICOS_PER_SECOND:g} s of computing: give {most} at most")
