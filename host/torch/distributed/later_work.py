"""An operation of the companion that begins later than its call returns."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from time import monotonic
from typing import Any

import torch
import torch.distributed as dist
from torch.futures import Future

from catchment.host.torch.distributed.companion_work import Lost, nobody_lost, watched
from catchment.host.torch.distributed.patience import patience_of

Start = Callable[[], dist.Work]


class LaterWork(dist.Work):
    """What a call gives before its operation has begun.

    Args:
        start: starts the operation, and blocks as long as that takes.
        awaited: what has not happened before it has begun, for messages.
        lost: see `Lost`.
    """

    def __init__(self, start: Start, awaited: str, lost: Lost = nobody_lost) -> None:
        super().__init__()
        self._start: Start | None = start
        self._awaited = awaited
        self._lost = lost
        self._begun = threading.Event()
        self._changing = threading.Lock()
        self._inner: dist.Work | Exception | None = None
        self._future: Future[Any] | None = None

    def begin(self) -> None:
        """Start the operation; for the thread that does so, once."""
        start, self._start = self._start, None  # with the tensors that it has
        if start is None:
            return
        try:
            inner: dist.Work | Exception = start()
        except Exception as failure:  # the caller that waits gets it
            inner = self._reason(failure)
        with self._changing:
            self._inner = inner
            self._begun.set()
            future = self._future
        if future is not None:
            self._follow(future)

    def await_begin(self, timeout: float | None) -> bool:
        """Wait for some seconds until the operation has started or failed to; False: not in time.

        Raises:
            CollectiveError: a rank was lost meanwhile.
        """
        return self._begun.is_set() or watched(self._begun.wait, self._lost, timeout)

    @property
    def has_started(self) -> bool:
        """True when the operation has begun and has not failed to."""
        return isinstance(self._inner, dist.Work)

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        """Block until done; a timeout of 0 is none.

        Raises:
            CollectiveError: the ranks do not agree, or cannot, or one was lost.
            RuntimeError: the companion's.
            TimeoutError: not begun in time; it goes on.
        """
        seconds = patience_of(timeout).total_seconds()
        until = monotonic() + seconds
        if not self.await_begin(seconds if seconds > 0 else None):
            raise TimeoutError(f"{self._awaited} after {seconds} s; it goes on")
        inner = self._inner
        if not isinstance(inner, dist.Work):
            raise inner or AssertionError("it has begun")
        return bool(inner.wait(timedelta(seconds=max(0.001, until - monotonic()))) if seconds > 0 else inner.wait())

    def is_completed(self) -> bool:
        """True when it is done or has failed."""
        return self._begun.is_set() and (not isinstance(self._inner, dist.Work) or self._inner.is_completed())

    def is_success(self) -> bool:
        """True when it is done and has not failed."""
        return self.is_completed() and self.exception() is None

    def exception(self) -> Any:
        """Why it failed."""
        if not self.is_completed():
            return None
        return self._inner.exception() if isinstance(self._inner, dist.Work) else self._inner

    def result(self) -> list[torch.Tensor]:
        """The tensors that hold the outcome."""
        return self._inner.result() if isinstance(self._inner, dist.Work) else []

    def synchronize(self) -> None:
        """Wait as `wait` does."""
        self.wait()

    def source_rank(self) -> int:
        """The source of what was received; -1 where nothing was."""
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

    def _reason(self, failure: Exception) -> Exception:
        """Give what to raise for what failed while the operation started."""
        return failure

    def _follow(self, future: Future[Any]) -> None:
        if isinstance(self._inner, dist.Work):
            self._inner.get_future().add_done_callback(future.set_result)
        else:
            future.set_result(None)

    def _value(self, future: Future[Any]) -> Any:
        if isinstance(self._inner, Exception):
            raise self._inner
        return future.value().value()  # raises what the companion's future failed of
