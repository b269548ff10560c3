"""Runs the members of one training together: all begin at once, and the first failure ends all, by name."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Self

from catchment.sim.lab import events
from catchment.sim.lab.errors import LabError
from catchment.sim.lab.members import ENDED, Deliver, Member

_SETTLE = 0.5  # seconds in which others may say why a run broke
Event = tuple[str, dict[str, Any]]


class Crew:
    """A context manager: when it is left, no member is left."""

    def __init__(self, *, start_timeout: float = 120.0, silence: float = 60.0) -> None:
        """`start_timeout`: seconds until all must be ready. `silence`: longest time without any event."""
        self._start_timeout = start_timeout
        self._silence = silence
        self._events: queue.Queue[Event] = queue.Queue()
        self._members: dict[str, Member] = {}
        self._ready: set[str] = set()
        self._again: dict[str, Callable[[], Member]] = {}

    @property
    def deliver(self) -> Deliver:
        """What members are to be given for their events."""
        return lambda name, event: self._events.put((name, event))

    def add(self, member: Member) -> None:
        """Take a started member in."""
        self._members[member.name] = member

    def restart(self, name: str, again: Callable[[], Member]) -> None:
        """Kill a member as a crash would; when it has ended, `again` starts it, and it goes as soon as it is ready."""
        self._again[name] = again
        self._members[name].kill()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for member in self._members.values():
            member.stop()

    def run(self, on_event: Callable[[str, dict[str, Any]], None]) -> dict[str, dict[str, Any]]:
        """Let all go once all are ready, pass their events on; gives each member's last event.

        Raises:
            LabError: somebody failed, died, or everybody fell silent; names them.
        """
        self.await_ready()
        for member in self._members.values():
            member.go()
        done: dict[str, dict[str, Any]] = {}
        while len(done) < len(self._members):
            name, event = self._next(self._silence, f"no member has reported anything for {self._silence:g} s")
            if event["event"] == events.DONE:
                done[name] = event
            elif event["event"] == ENDED and name in self._again:
                self._members[name].stop()
                self._members[name] = self._again.pop(name)()
            elif event["event"] == events.READY:
                self._members[name].go()
            elif self._is_failure(name, event, done):
                raise self._failure(name, event, done)
            elif event["event"] != ENDED:
                on_event(name, event)
        return done

    def await_ready(self) -> None:
        """Wait until every member has set itself up; errors as for `run`, which calls this when it was not called."""
        waiting = set(self._members) - self._ready
        deadline = time.monotonic() + self._start_timeout
        while waiting:
            left = max(deadline - time.monotonic(), 0.0)
            problem = f"not ready after {self._start_timeout:g} s: {', '.join(sorted(waiting))}"
            name, event = self._next(left, problem)
            if event["event"] == events.READY:
                waiting.discard(name)
                self._ready.add(name)
            elif self._is_failure(name, event, {}):
                raise self._failure(name, event, {})

    def _next(self, timeout: float, problem: str) -> Event:
        try:
            return self._events.get(timeout=timeout)
        except queue.Empty:
            raise LabError(problem) from None

    def _is_failure(self, name: str, event: dict[str, Any], done: dict[str, dict[str, Any]]) -> bool:
        return event["event"] == events.ERROR or (event["event"] == ENDED and name not in done)

    def _failure(self, name: str, event: dict[str, Any], done: dict[str, dict[str, Any]]) -> LabError:
        failures = [(name, event)]
        deadline = time.monotonic() + _SETTLE
        while (left := deadline - time.monotonic()) > 0:
            try:
                other, later = self._events.get(timeout=left)
            except queue.Empty:
                break
            if self._is_failure(other, later, done):
                failures.append((other, later))
        return LabError(_explain(failures))


def _explain(failures: Sequence[Event]) -> str:
    """Deaths come first: processes that lost a peer only know that nothing moves."""
    said = {name for name, event in failures if event["event"] == events.ERROR}
    deaths = [
        f"{name}: {event['reason'] or 'ended before it was done'}"
        for name, event in failures
        if event["event"] == ENDED and name not in said
    ]
    errors = [f"{name}: {event['text']}" for name, event in failures if event["event"] == events.ERROR]
    return "; ".join(deaths + errors)
