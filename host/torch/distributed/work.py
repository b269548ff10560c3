"""A collective in flight, as torch wants it: wait, poll, or a future."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from time import monotonic
from typing import Any, Final, final

import torch
import torch.distributed as dist
from torch.autograd.profiler import record_function
from torch.futures import Future

from catchment.host.collectives import CollectiveError, Work
from catchment.host.torch.distributed.patience import patience_of

_OFF: Final = nullcontext()


def span(name: str) -> AbstractContextManager[Any]:
    """What torch.profiler shows while it is entered: the call that starts an operation, or a wait."""
    return record_function(f"catchment:{name}") if torch._C._autograd._profiler_enabled() else _OFF


Explain = Callable[[CollectiveError], CollectiveError]


@final
class SwitchWork(dist.Work):
    """One or more operations of a communicator, and what is left to do when they are done.

    It ends with the last of them, also behind one that failed: until then the library writes into the tensors.

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
        self._saturated = False
        self._error: Exception | None = None
        self._future: Future[list[torch.Tensor]] | None = None
        self._outcome: Future[list[torch.Tensor]] | None = None
        if finish is not None:
            completions.follow(self)  # a caller that drops this without waiting still gets the result

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        """Block until all operations are done; a timeout of 0 is none.

        Raises:
            CollectiveError: the first, in their order, that failed; kind ``argument``: the timeout is none.
            TimeoutError: not all are done in time; it goes on.
        """
        seconds = patience_of(timeout).total_seconds()
        with span("wait"):
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

    @property
    def saturated(self) -> bool:
        """Whether a value of any rank was cut; known when it is done."""
        return self._saturated

    def result(self) -> list[torch.Tensor]:
        """The tensors that hold the outcome."""
        return self._result

    def synchronize(self) -> None:
        """Wait as `wait` does."""
        self.wait()

    def get_future(self) -> Future[list[torch.Tensor]]:
        """Completed, from a thread of the group's, with the tensors that hold the outcome, or with the error."""
        with self._settling:
            if self._outcome is not None:
                return self._outcome
            self._future = Future()
            # Only what a callback raises is an error to torch's C++ side.
            outcome = self._outcome = self._future.then(self._value)
        self._completions.follow(self)
        return outcome

    def await_end(self) -> None:
        """Wait, whatever the outcome; for a thread of the group's."""
        self._settle(None)

    def tell(self) -> None:
        """Complete the future if there is one, which runs its callbacks; for a thread of the group's."""
        with self._settling:
            future, self._future = self._future, None
        if future is not None:
            future.set_result(self._result)

    def _value(self, _: Any) -> list[torch.Tensor]:
        if self._error is not None:
            raise self._error
        return self._result

    def _settle(self, timeout: float | None) -> None:
        until = None if timeout is None else monotonic() + timeout
        failure: CollectiveError | None = None
        for part in self._parts:
            try:
                part.wait(None if until is None else max(0.0, until - monotonic()))
            except CollectiveError as error:
                failure = failure or error
            except TimeoutError:
                raise TimeoutError(f"{part.operation} is not done after {timeout} s; it goes on") from None
        self._end(failure and self._explain(failure))

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
            self._saturated = any(part.statistics.any_saturated for part in self._parts)
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

    def is_success(self) -> bool:
        """True when all are done and none has failed."""
        return self.is_completed() and self.exception() is None

    def exception(self) -> Any:
        """Why the first failed that did."""
        return next((error for error in (work.exception() for work in self._works) if error is not None), None)

    def result(self) -> list[torch.Tensor]:
        """The tensors that hold the outcomes."""
        return [tensor for work in self._works for tensor in work.result()]

    def get_future(self) -> Any:
        """Completed with all."""
        return torch.futures.collect_all([work.get_future() for work in self._works])


@final
class Completions:
    """The threads that complete futures. They wait for works one by one, in their order; while a thread runs a work's
    callbacks another one waits for the next work, for a callback may itself start an operation and wait for it.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        # While there are works and none is waited for, a thread is on its way to take the first.
        self._works: deque[SwitchWork] = deque()
        self._threads: list[threading.Thread] = []
        self._idle = 0
        self._waiting = False
        self._ending = False

    def follow(self, work: SwitchWork) -> None:
        """Complete `work` when it is done; after `close`, at once."""
        with self._changed:
            if not self._ending:
                self._works.append(work)
                if not self._waiting:
                    self._wake()
                return
        work.await_end()
        work.tell()

    def close(self) -> None:
        """Complete what was followed and end; every operation is done or has failed by then."""
        with self._changed:
            self._ending = True
            self._changed.notify_all()
        while self._threads and threading.current_thread() not in self._threads:
            self._threads.pop().join()

    def _wake(self) -> None:
        if self._idle:
            self._changed.notify()
            return
        thread = threading.Thread(target=self._run, name="catchment-completions", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _may_go_on(self) -> bool:
        return not self._waiting if self._works else self._ending

    def _run(self) -> None:
        while True:
            with self._changed:
                self._idle += 1
                self._changed.wait_for(self._may_go_on)
                self._idle -= 1
                if not self._works:
                    return
                work = self._works.popleft()
                if self._ending and not self._works:
                    self._changed.notify_all()
                self._waiting = True
            work.await_end()
            with self._changed:
                self._waiting = False
                if self._works:
                    self._wake()
            work.tell()
            del work  # its tensors are not kept until the next
