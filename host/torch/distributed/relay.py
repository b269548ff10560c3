"""Operations of the companion, started when all ranks have agreed on them."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from datetime import timedelta
from time import monotonic
from typing import Any, final

import torch
import torch.distributed as dist
from torch.futures import Future

from catchment.host.torch.distributed.work import SwitchWork

Start = Callable[[], dist.Work]


@final
class RelayedWork(dist.Work):
    """An operation of the companion, from the call on; it starts, or fails, when all ranks have said what they want.

    Args:
        agreed: done when all ranks want the same.
        start: starts the operation.
    """

    def __init__(self, agreed: SwitchWork, start: Start) -> None:
        super().__init__()
        self._agreed = agreed
        self._start: Start | None = start
        self._begun = threading.Event()
        self._changing = threading.Lock()
        self._inner: dist.Work | None = None
        self._error: Exception | None = None
        self._future: Future[Any] | None = None

    def begin(self) -> None:
        """Wait for the agreement, then start; for the relay's thread."""
        self._agreed.await_end()
        error, inner = self._agreed.exception(), None
        if error is None and self._start is not None:
            try:
                inner = self._start()
            except Exception as failure:  # the caller that waits gets it
                error = failure
        with self._changing:
            self._error, self._inner, self._start = error, inner, None
            self._begun.set()
            future = self._future
        if future is not None:
            self._follow(future)

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        """Block until done; a timeout of 0 is none.

        Raises:
            CollectiveError: the ranks do not agree, or cannot.
            RuntimeError: the companion's.
            TimeoutError: not begun in time; it goes on.
        """
        seconds = timeout.total_seconds()
        until = monotonic() + seconds
        if not self._begun.wait(seconds if seconds > 0 else None):
            raise TimeoutError(f"the ranks have not agreed after {seconds} s; it goes on")
        if self._error is not None:
            raise self._error
        if self._inner is None or seconds <= 0:
            return self._inner is None or bool(self._inner.wait())
        return bool(self._inner.wait(timedelta(seconds=max(0.001, until - monotonic()))))

    def is_completed(self) -> bool:
        """True when it is done or has failed."""
        return self._begun.is_set() and (self._inner is None or self._inner.is_completed())

    def is_success(self) -> bool:
        """True when it is done and has not failed."""
        return self.is_completed() and self.exception() is None

    def exception(self) -> Any:
        """Why it failed."""
        if not self.is_completed():
            return None
        return self._error if self._inner is None else self._inner.exception()

    def result(self) -> list[torch.Tensor]:
        """The tensors that hold the outcome."""
        return [] if self._inner is None else self._inner.result()

    def synchronize(self) -> None:
        """Wait as `wait` does."""
        self.wait()

    def source_rank(self) -> int:
        """The source of a receive; there is none here."""
        return -1

    def get_future(self) -> Future[Any]:
        """Completed with what the companion's is."""
        with self._changing:
            known, outcome = self._future is not None, self._future or Future()
            self._future = outcome
            begun = self._begun.is_set()
        if begun and not known:
            self._follow(outcome)
        return outcome.then(self._value)

    def _follow(self, future: Future[Any]) -> None:
        if self._inner is None:
            future.set_result(None)
            return
        self._inner.get_future().add_done_callback(future.set_result)

    def _value(self, future: Future[Any]) -> Any:
        if self._error is not None:
            raise self._error
        inner = future.value()
        return None if inner is None else inner.value()  # raises what the companion's future failed of


@final
class Relay:
    """Begins operations in the order in which they were called, which is the same on all ranks."""

    def __init__(self) -> None:
        self._works: queue.SimpleQueue[RelayedWork | None] = queue.SimpleQueue()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None

    def begin(self, work: RelayedWork) -> RelayedWork:
        """Begin it when its ranks have agreed; gives it back."""
        with self._starting:
            self._works.put(work)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="catchment-relay", daemon=True)
                self._thread.start()
        return work

    def close(self) -> None:
        """End; every agreement is reached or has failed by then."""
        with self._starting:
            thread, self._thread = self._thread, None
        if thread is not None:
            self._works.put(None)
            if thread is not threading.current_thread():
                thread.join()

    def _run(self) -> None:
        while (work := self._works.get()) is not None:
            work.begin()
            del work  # its tensors are not kept until the next
