"""The faults of a line, as Python states them; common/faults.hpp draws them."""

from __future__ import annotations

from dataclasses import dataclass

from catchment.sim.world.errors import WorldError


def _check_probability(name: str, value: float) -> None:
    if not 0 <= value <= 1:
        raise WorldError(f"a {name} of {value}: give a probability, 0 to 1")


@dataclass(frozen=True, slots=True)
class Burst:
    """Losses in bursts (Gilbert): a line is good or bad, and changes from frame to frame.

    Attributes:
        enter: probability that a good line becomes bad, per frame.
        leave: probability that a bad line becomes good, per frame; a bad spell has 1 / leave frames on average.
        loss: probability that a frame on a bad line is lost.

    Raises:
        WorldError: one of them is no probability.
    """

    enter: float = 0.0
    leave: float = 1.0
    loss: float = 1.0

    def __post_init__(self) -> None:
        for name in ("enter", "leave", "loss"):
            _check_probability(f"burst.{name}", getattr(self, name))


NO_BURST = Burst()


@dataclass(frozen=True, slots=True)
class Faults:
    """What one direction of a link does to frames: probabilities per frame, times in picoseconds.

    Attributes:
        loss: the frame is lost.
        damage: it arrives with a wrong FCS.
        duplicate: it arrives twice.
        reorder: a copy is held back by up to `delay`, and others pass it.
        replay: an earlier frame of the line arrives once more, beside this one.
        burst: losses in bursts, on top of `loss`.
        delay: the most that a reordered copy is held back, uniform from 0.
        jitter: the most that any copy comes later, uniform from 0.

    Raises:
        WorldError: a probability that is none, or a negative time.
    """

    loss: float = 0.0
    damage: float = 0.0
    duplicate: float = 0.0
    reorder: float = 0.0
    replay: float = 0.0
    burst: Burst = NO_BURST
    delay: int = 5_000_000
    jitter: int = 0

    def __post_init__(self) -> None:
        for name in ("loss", "damage", "duplicate", "reorder", "replay"):
            _check_probability(name, getattr(self, name))
        for name in ("delay", "jitter"):
            if getattr(self, name) < 0:
                raise WorldError(f"a {name} of {getattr(self, name)} ps: give 0 or more")
