"""A network that is never in the way, for what bench/optimizer.py measures of the disk alone, by the clock."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from catchment.host.layers import LayerTable
from catchment.sim.world import BareLine

UNLIMITED = 1e12


class Link:
    """One direction of a link of `rate` bytes per second, by the clock: it carries one thing after another."""

    def __init__(self, rate: float) -> None:
        self._begin = time.monotonic()
        self._line = BareLine(byte=max(1, round(1e12 / rate)))

    def arrival(self, size: int, ready: float) -> float:
        """The time at which `size` bytes that are offered at `ready` have arrived; both of the monotonic clock."""
        return self._begin + self._line.send(size, round((ready - self._begin) * 1e12)) / 1e12


def sleep_until(moment: float) -> None:
    """Time of the monotonic clock."""
    left = moment - time.monotonic()
    if left > 0:
        time.sleep(left)


@dataclass(frozen=True, slots=True)
class TimedCompletion:
    """Done at a point of the monotonic clock that was known when it was asked for."""

    asked: float
    ends: float
    flags: int = 0
    max_abs: float = 1.0

    def wait(self, timeout: float | None = None) -> None:
        """Sleep until then."""
        sleep_until(self.ends)

    def done(self) -> bool:
        """Whether it is past."""
        return time.monotonic() >= self.ends

    @property
    def latency(self) -> float:
        """Seconds from the call to completion."""
        return self.ends - self.asked


class TimedPort:
    """The root's port: `rate` bytes per second each way. A layer's gradients set out when its parameters are there."""

    def __init__(self, rate: float, table: LayerTable) -> None:
        self._down, self._up = Link(rate), Link(rate)
        self._parameters_there = 0.0
        largest = max(layer.numel for layer in table)
        self._noise = np.random.default_rng(1).standard_normal(largest, np.float32)

    def push(self, array: Any, exponent: int | None = None) -> TimedCompletion:
        """Parameters down."""
        now = time.monotonic()
        self._parameters_there = self._down.arrival(array.nbytes, now)
        return TimedCompletion(now, self._parameters_there)

    def pull(self, array: Any) -> TimedCompletion:
        """Gradients up, when the workers have them: noise, since some devices are quicker with what repeats."""
        now = time.monotonic()
        array[:] = self._noise[: array.size]
        return TimedCompletion(now, self._up.arrival(array.nbytes, max(now, self._parameters_there)))
