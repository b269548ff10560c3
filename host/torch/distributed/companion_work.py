"""An operation that the companion has begun: its results are put in place, and a lost rank is named."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from datetime import timedelta
from time import monotonic
from typing import Any, Final, final

import torch
import torch.distributed as dist
from torch.futures import Future

from catchment.host.collectives import CollectiveError
from catchment.host.torch.distributed.layouts import Pieces
from catchment.host.torch.distributed.patience import patience_of

Lost = Callable[[float], CollectiveError | None]
"""Gives what to raise if a rank of the group or its switch is gone; waits some seconds for that to be known."""

_SLICE: Final = 0.1  # s
GRACE: Final = 1.0
"""Seconds after which a group knows of a loss, at the latest, when gloo has lost a connection."""


def nobody_lost(_: float) -> None:
    """A `Lost` for a group that is told of no loss."""


def watched(ended: Callable[[float], bool], lost: Lost, timeout: float | None) -> bool:
    """Wait until `ended`, which itself waits for some seconds, says so.

    Returns:
        False: not in time.

    Raises:
        CollectiveError: a rank is lost, and what it has sent before was not enough.
    """
    until = None if timeout is None else monotonic() + timeout
    while not ended(_SLICE if until is None else min(_SLICE, max(0.0, until - monotonic()))):
        error = lost(0.0)
        if error is not None:
            if ended(GRACE):
                break
            raise error
        if until is not None and monotonic() >= until:
            return False
    return True


@final
class CompanionWork(dist.Work):
    """An operation of gloo.

    Args:
        inner: gloo's own.
        results: the caller's tensors that hold the outcome.
        pieces: the copies that gloo was given instead.
        lost: see `Lost`.
        told: gloo completes a future, and may be waited for in slices. It does not so for a send or a receive, whose
            results come into place when the caller waits.
    """

    def __init__(
        self, inner: Any, results: Sequence[torch.Tensor], pieces: Pieces, lost: Lost, *, told: bool = True
    ) -> None:
        super().__init__()
        self._inner = inner
        self._results = list(results)
        self._pieces = pieces
        self._lost = lost
        self._told = told
        self._over = False
        self._placing = threading.Lock()
        if told and pieces.any_written:  # a caller that drops this without waiting still gets the result
            inner.get_future().add_done_callback(self._place_after)

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        """Block until done; a timeout of 0 is none.

        Raises:
            CollectiveError: a rank was lost.
            RuntimeError: gloo's.
            TimeoutError: not done in time; it goes on.
        """
        timeout = patience_of(timeout)
        seconds = timeout.total_seconds()
        if self._over:
            return True
        if self._told and not watched(self._ended, self._lost, seconds if seconds > 0 else None):
            raise TimeoutError(f"the operation is not done after {seconds} s; it goes on")
        try:
            self._inner.wait(*([timeout] if seconds > 0 and not self._told else []))
        except RuntimeError as error:
            raise self._explained(error) from None
        self._place()
        self._over = True
        return True

    def is_completed(self) -> bool:
        """True when it is done or has failed."""
        if not self._over and not self._inner.is_completed():
            return False
        if self._over or self._inner.is_success():
            self._place()
        return True

    def is_success(self) -> bool:
        """True when it is done and has not failed."""
        return self.is_completed() and (self._over or bool(self._inner.is_success()))

    def exception(self) -> Any:
        """Why it failed."""
        return self._inner.exception() if self.is_completed() and not self._over else None

    def result(self) -> list[torch.Tensor]:
        """The tensors that hold the outcome."""
        return self._results

    def synchronize(self) -> None:
        """Wait as `wait` does."""
        self.wait()

    def source_rank(self) -> int:
        """The source of what was received."""
        return int(self._inner._source_rank())

    _source_rank = source_rank

    def get_future(self) -> Future[list[torch.Tensor]]:
        """Completed with the tensors that hold the outcome, or with the error."""
        outcome: Future[list[torch.Tensor]] = self._inner.get_future().then(self._outcome)
        return outcome

    def _outcome(self, future: Future[Any]) -> list[torch.Tensor]:
        try:
            _check(future)
        except RuntimeError as error:
            raise self._explained(error) from None
        self._place()
        return self._results

    def _place_after(self, future: Future[Any]) -> None:
        try:
            _check(future)
        except RuntimeError:
            return  # whoever waits is told
        self._place()

    def _place(self) -> None:
        with self._placing:
            self._pieces.place()

    def _ended(self, seconds: float) -> bool:
        try:
            self._inner.wait(timedelta(seconds=max(0.001, seconds)))
        except RuntimeError:  # also when that was not time enough
            return bool(self._inner.is_completed())
        return True

    def _explained(self, error: RuntimeError) -> RuntimeError:
        return self._lost(GRACE) or error


def _check(future: Future[Any]) -> None:
    """Raise what a future failed of, or one of those that it has collected."""
    value = future.value()
    for one in value if isinstance(value, list) else ():
        if isinstance(one, Future):
            one.value()
