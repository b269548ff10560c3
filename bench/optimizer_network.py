"""A network that is never in the way, for what bench/optimizer.py measures of the disk alone, by the clock."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from catchment.host.layers import LayerTable

UNLIMITED = 1e12


@dataclass(frozen=True, slots=True)
class TimedCompletion:
    """Done at a point of the monotonic clock that was known when it was asked for."""

    asked: float
    ends: float
    flags: int = 0
    max_abs: float = 1.0

    def wait(self, timeout: float | None = None) -> None:
        """Sleep until then."""
        left = self.ends - time.monotonic()
        if left > 0:
            time.sleep(left)

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
        self._rate = rate
        largest = max(layer.numel for layer in table)
        self._noise = np.random.default_rng(1).standard_normal(largest, np.float32)
        self._down = self._up = 0.0

    def push(self, array: Any, exponent: int | None = None) -> TimedCompletion:
        """Parameters down."""
        now = time.monotonic()
        self._down = max(now, self._down) + array.nbytes / self._rate
        return TimedCompletion(now, self._down)

    def pull(self, array: Any) -> TimedCompletion:
        """Gradients up, when the workers have them: noise, since some devices are quicker with what repeats."""
        now = time.monotonic()
        array[:] = self._noise[: array.size]
        self._up = max(now, self._up, self._down) + array.nbytes / self._rate
        return TimedCompletion(now, self._up)
