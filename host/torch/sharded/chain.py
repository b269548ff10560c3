"""Operations of several stages: each stage starts when the one before it is done, and nobody waits for it."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import final

from catchment.host.collectives import CollectiveError, Work
from catchment.host.torch.sharded.errors import ShardingError
from catchment.host.torch.sharded.links import Line

Start = Callable[[], Work | None]
"""Starts a stage; None where it is done at once."""


@final
class Flight:
    """An operation whose last stage may not have begun."""

    def __init__(self, doing: str) -> None:
        """`doing`: what it is, for messages."""
        self.doing = doing
        self._settled = threading.Event()
        self._last: tuple[Work, Line] | None = None
        self._error: Exception | None = None

    def wait(self) -> None:
        """Block until all stages are done.

        Raises:
            ShardingError: one failed.
        """
        self._settled.wait()
        if self._error is None and self._last is not None:
            work, line = self._last
            try:
                work.wait()
            except CollectiveError as error:
                self._error = line.explained(error, self.doing)
            self._last = None
        if self._error is not None:
            raise self._error

    def end(self, work: Work | None, line: Line) -> None:
        """Its last stage is `work`, over `line`."""
        self._last = None if work is None else (work, line)
        self._settled.set()

    def fail(self, error: Exception) -> None:
        """It has failed."""
        self._error = error
        self._settled.set()


@final
class Chain:
    """A thread that waits for works in their order and calls what follows each.

    All ranks enter the same works in the same order, so all ranks start what follows in the same order.
    """

    def __init__(self, name: str) -> None:
        """`name`: of the thread."""
        self._works: queue.SimpleQueue[tuple[Work | None, Line, Flight, Callable[[], None]] | None] = (
            queue.SimpleQueue()
        )
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def follow(self, work: Work | None, line: Line, flight: Flight, then: Callable[[], None]) -> None:
        """Call `then` when `work` is done; if it fails, or `then` does, the flight has failed."""
        self._works.put((work, line, flight, then))

    def close(self) -> None:
        """End, once everything that was entered is done or has failed."""
        self._works.put(None)
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _run(self) -> None:
        while (entered := self._works.get()) is not None:
            work, line, flight, then = entered
            try:
                if work is not None:
                    work.wait()
                then()
            except CollectiveError as error:
                flight.fail(line.explained(error, flight.doing))
            except Exception as error:
                flight.fail(ShardingError(f"{flight.doing}: {error}"))
            del entered, work, flight, then
