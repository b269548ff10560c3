"""How a player of traffic behaves: frames per second, frames it loses on purpose, how late it is."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from scapy.packet import Packet

from catchment.sim.lab.traffic.raw_port import RawPort
from catchment.sim.world import Faults, FaultStream

_REPORT_SECONDS = 1.0


class PaceError(ValueError):
    """An impossible rate, loss, skew or length of a run; says which and what would do."""


@dataclass(frozen=True, slots=True)
class Pace:
    """What all players have in common.

    Attributes:
        rate: own frames per second at most; None: as fast as it goes.
        loss: probability that an own frame is not sent, and that one that arrives is not looked at.
        skew: seconds that each new vector comes late: uniform between the two.
        seconds: end after so long, done or not; None: no limit.
        seed: of everything random, 64 bits.

    Raises:
        PaceError: a value that cannot be.
    """

    rate: float | None = None
    loss: float = 0.0
    skew: tuple[float, float] = (0.0, 0.0)
    seconds: float | None = None
    seed: int = 1

    def __post_init__(self) -> None:
        if self.rate is not None and not (math.isfinite(self.rate) and self.rate > 0):
            raise PaceError(f"rate {self.rate:g} is not a positive number of frames per second")
        if not 0 <= self.loss < 1:
            raise PaceError(f"loss {self.loss:g} is not a probability of at least 0 and less than 1")
        low, high = self.skew
        if not 0 <= low <= high < math.inf:
            raise PaceError(f"skew {low:g}..{high:g} is not a range of seconds, 0 or more, the smaller first")
        if self.seconds is not None and not (math.isfinite(self.seconds) and self.seconds > 0):
            raise PaceError(f"{self.seconds:g} seconds are not a positive time")
        if not 0 <= self.seed < 1 << 64:
            raise PaceError(f"seed {self.seed} is not a number of 64 bits, 0 or more")


def parse_skew(text: str) -> tuple[float, float]:
    """`0.05`, or `0.01..0.2` for a random time between the two.

    Raises:
        PaceError: neither.
    """
    low, dots, high = text.partition("..")
    try:
        return float(low), float(high if dots else low)
    except ValueError:
        raise PaceError(f"skew {text!r} is neither SECONDS nor LOW..HIGH") from None


@dataclass(slots=True)
class Frames:
    """What a player's port did: frames sent and received, and those lost on purpose on the way out and in."""

    sent: int = 0
    received: int = 0
    unsent: int = 0
    ignored: int = 0


@dataclass(slots=True)
class _Clock:
    next_frame: float = 0.0
    next_report: float = field(default_factory=lambda: time.monotonic() + _REPORT_SECONDS)


class PacedPort(RawPort):
    """Another port at a pace: what goes through it is counted, spread over time and lost as the pace says.

    Args:
        port: the port that does the work; closed with this one.
        pace: the pace.
        report: called about once a second while frames or waits go through.
    """

    def __init__(self, port: RawPort, pace: Pace, report: Callable[[Frames], None] | None = None) -> None:
        self.mac = port.mac
        self.frames = Frames()
        self._port = port
        self._pace = pace
        self._report = report
        self._faults = Faults(loss=pace.loss)
        self._outward, self._inward = FaultStream(pace.seed, 0), FaultStream(pace.seed, 1)
        self._lateness = random.Random(f"skew {pace.seed}")
        self._clock = _Clock()
        self._end = math.inf if pace.seconds is None else time.monotonic() + pace.seconds

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._port.__exit__(kind, error, trace)

    @property
    def over(self) -> bool:
        """The time of the run is up."""
        return time.monotonic() >= self._end

    def lateness(self) -> float:
        """Seconds that the next new vector comes late."""
        return self._lateness.uniform(*self._pace.skew)

    def send(self, frame: Packet | bytes) -> None:
        """Send a frame when its time has come, or lose it."""
        if self._pace.rate is not None:
            now = time.monotonic()
            time.sleep(max(0.0, self._clock.next_frame - now))
            self._clock.next_frame = max(self._clock.next_frame, now) + 1 / self._pace.rate
        self._tell()
        if self._outward.next(self._faults).lost:
            self.frames.unsent += 1
            return
        self.frames.sent += 1
        self._port.send(frame)

    def receive(self, seconds: float) -> bytes | None:
        """The next frame that is not lost, or None after `seconds`."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            frame = self._port.receive(left)
            self._tell()
            if frame is None:
                return None
            if self._inward.next(self._faults).lost:
                self.frames.ignored += 1
                continue
            self.frames.received += 1
            return frame
        return None

    def _tell(self) -> None:
        now = time.monotonic()
        if self._report is not None and now >= self._clock.next_report:
            self._clock.next_report = now + _REPORT_SECONDS
            self._report(self.frames)
