"""Records when each kind of work on each layer began and ended: the spans behind the report's plot of one step."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Span:
    """`kind` of work on `layer` from `start` to `end`, seconds of the machine's monotonic clock."""

    kind: str
    layer: int
    start: float
    end: float


@dataclass(slots=True)
class Timeline:
    """Collects spans from any thread; costs nothing but a comparison while `enabled` is false."""

    enabled: bool = False
    _spans: list[Span] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, kind: str, layer: int, start: float, end: float | None = None) -> None:
        """Record one span; `end` defaults to now."""
        if self.enabled:
            span = Span(kind, layer, start, time.monotonic() if end is None else end)
            with self._lock:
                self._spans.append(span)

    @contextmanager
    def span(self, kind: str, layer: int) -> Iterator[None]:
        """Record the duration of a with block."""
        start = time.monotonic()
        try:
            yield
        finally:
            self.add(kind, layer, start)

    def during(self, start: float, end: float) -> list[Span]:
        """The spans that overlap the time from `start` to `end`, in the order in which they were recorded."""
        with self._lock:
            return [span for span in self._spans if span.start < end and span.end > start]
