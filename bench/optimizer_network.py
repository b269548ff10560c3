"""A network and workers of a chosen speed, for bench/optimizer.py: what a port would do, by the clock alone."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any


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
    """The root's port: `rate` bytes per second each way; workers compute `compute` seconds per element and direction.

    A layer's gradients set out when its backward is computed, which begins when its parameters are there.
    """

    def __init__(self, rate: float, compute: float = 0.0) -> None:
        self._rate = rate
        self._compute = compute
        self._down = self._up = self._workers = 0.0

    def push(self, array: Any, exponent: int | None = None) -> TimedCompletion:
        """Parameters down; then the workers compute with them."""
        now = time.monotonic()
        self._down = max(now, self._down) + array.nbytes / self._rate
        self._workers = max(self._workers, self._down) + self._compute * array.nbytes / 2
        return TimedCompletion(now, self._down)

    def pull(self, array: Any) -> TimedCompletion:
        """Gradients up, when the workers have them: all 0.001."""
        now = time.monotonic()
        array.fill(1e-3)
        self._up = max(now, self._up, self._workers) + array.nbytes / self._rate
        return TimedCompletion(now, self._up)
