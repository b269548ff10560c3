"""A collective in flight, as torch wants it: wait, poll, or a future."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, final

import torch
import torch.distributed as dist
from torch.futures import Future

from host.collectives import CollectiveError, Work

Explain = Callable[[CollectiveError], CollectiveError]


@final
class SwitchWork(dist.Work):
    """One or more operations of a communicator, and what is left to do when they are done.

    Args:
        parts: the operations.
        result: the tensors that hold the outcome.
        finish: run once, when all parts are done, before anybody is told: copies, conversions.
        explain: makes of an error the one to raise.
        completions: completes futures.
    """

    def __init__(
        self,
        parts: Sequence[Work],
        result: list[torch.Tensor],
        finish: Callable[[], None] | None,
        explain: Explain,
        completions: Completions,
    ) -> None:
        super().__init__()
        self._parts = parts
        self._result = result
        self._finish = finish
        self._explain = explain
        self._completions = completions
        self._settling = threading.Lock()
        self._settled = not parts and finish is None
        self._error: Exception | None = None
        self._future: Future[list[torch.Tensor]] | None = None
        self._outcome: Future[list[torch.Tensor]] | None = None
        if finish is not None:
            completions.follow(self)  # whoever drops this without waiting still gets the result

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        """Block until done; a timeout of 0 is none.

        Raises:
            CollectiveError: it failed.
            TimeoutError: not done in time; it goes on.
        """
        seconds = timeout.total_seconds()
        self._settle(seconds if seconds > 0 else None)
        if self._error is not None:
            raise self._error
        return True

    def is_completed(self) -> bool:
        """True when it is done or has failed."""
        if not self._settled and all(part.done() for part in self._parts):
            self._settle(None)
        return self._settled

    def is_success(self) -> bool:
        """True when it is done and has not failed."""
        return self.is_completed() and self._error is None

    def exception(self) -> Exception | None:
        """Why it failed."""
        return self._error if self.is_completed() else None

    def result(self) -> list[torch.Tensor]:
        """The tensors that hold the outcome."""
        return self._result

    def synchronize(self) -> None:
        """As `wait`."""
        self.wait()

    def get_future(self) -> Future[list[torch.Tensor]]:
        """Completed, from a thread of the group, with the tensors that hold the outcome, or with the error."""
        with self._settling:
            if self._outcome is None:
                self._future = Future()
                # Only what a callback raises is an error to torch's C++ side.
                self._outcome = self._future.then(self._value)
                self._completions.follow(self)
            return self._outcome

    def complete(self) -> None:
        """Wait, then complete the future if there is one; for the group's thread."""
        self._settle(None)
        with self._settling:
            future, self._future = self._future, None
        if future is not None:
            future.set_result(self._result)

    def _value(self, _: Any) -> list[torch.Tensor]:
        if self._error is not None:
            raise self._error
        return self._result

    def _settle(self, timeout: float | None) -> None:
        try:
            for part in self._parts:
                part.wait(timeout)
        except CollectiveError as error:
            self._end(self._explain(error))
            return
        self._end(None)

    def _end(self, error: Exception | None) -> None:
        with self._settling:
            if self._settled:
                return
            try:
                if error is None and self._finish is not None:
                    self._finish()
            except Exception as failure:
                error = failure
            self._error = error
            self._parts, self._finish = (), None
            self._settled = True


@final
class Together(dist.Work):
    """Several works of the companion as one."""

    def __init__(self, works: Sequence[dist.Work]) -> None:
        super().__init__()
        self._works = works

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        """Block until all are done; `timeout` is for each."""
        for work in self._works:
            work.wait(timeout)
        return True

    def is_completed(self) -> bool:
        """True when all are done."""
        return all(work.is_completed() for work in self._works)

    def get_future(self) -> Any:
        """Completed with all."""
        return torch.futures.collect_all([work.get_future() for work in self._works])


@final
class Completions:
    """The thread that completes futures, in the order of the operations; it starts with the first."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[SwitchWork | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()

    def follow(self, work: SwitchWork) -> None:
        """Complete `work` when it is done."""
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="catchment-completions", daemon=True)
                self._thread.start()
        self._queue.put(work)

    def close(self) -> None:
        """Complete what was followed and end; every operation is done or has failed by then."""
        if self._thread is not None and self._thread is not threading.current_thread():
            self._queue.put(None)
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        while (work := self._queue.get()) is not None:
            work.complete()
