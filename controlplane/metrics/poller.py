"""Looks at switches, each in a thread of its own: one that is dead keeps nobody waiting for the others."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Generic, Self, TypeVar

from catchment.controlplane.errors import ControlPlaneError

_Seen = TypeVar("_Seen")


@dataclass(frozen=True, slots=True)
class Poll(Generic[_Seen]):
    """The latest look at a switch.

    Attributes:
        seen: what was there; None when the switch did not answer.
        at: when the look ended, of the monotonic clock.
        seconds: how long it took.
    """

    seen: _Seen | None
    at: float
    seconds: float


class Poller(Generic[_Seen]):
    """Looks again and again; a context manager.

    Args:
        look: looks at one switch; raises ControlPlaneError when that does not answer.
        names: of the switches.
        interval: seconds between the end of a look and the next.
    """

    def __init__(self, look: Callable[[str], _Seen], names: Iterable[str], *, interval: float = 5.0) -> None:
        self._look = look
        self._interval = interval
        self._latest: dict[str, Poll[_Seen]] = {}
        self._end = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(name,), name=f"poll {name}", daemon=True) for name in names
        ]

    def latest(self) -> Mapping[str, Poll[_Seen]]:
        """The latest look at each switch that there was one at; waits for nobody."""
        return dict(self._latest)

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end.set()  # a look at a switch that hangs ends at its deadline: nobody waits for it

    def _run(self, name: str) -> None:
        while not self._end.is_set():
            began = time.monotonic()
            seen: _Seen | None = None
            with contextlib.suppress(ControlPlaneError):
                seen = self._look(name)
            now = time.monotonic()
            self._latest[name] = Poll(seen, now, now - began)
            self._end.wait(self._interval)
