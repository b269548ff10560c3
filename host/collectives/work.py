"""An operation in flight."""

from __future__ import annotations

import ctypes
import time
from dataclasses import dataclass
from typing import final

from catchment.host.collectives.calls import named
from catchment.host.collectives.errors import CollectiveError
from catchment.host.collectives.library import FAILED, RUNS, Result, library
from catchment.wire.generated.constants import DataType

_SLICE_NS = 100_000_000
"""Longest time in C without a look at Python's signals."""


@dataclass(frozen=True, slots=True)
class WorkStatistics:
    """What one operation did on this rank; zeros until it is done.

    Attributes:
        latency: seconds from the call to completion.
        vectors: sums received, the vector of signatures included.
        retransmissions: vectors that the communicator sent again meanwhile.
        saturated: own values that were cut, the non-finite included.
        nonfinite: own values that were NaN or infinite.
        any_saturated: a value of some rank was cut.
        exponent: largest exponent E that any rank's values needed, -128 if none was looked for.
    """

    latency: float
    vectors: int
    retransmissions: int
    saturated: int
    nonfinite: int
    any_saturated: bool
    exponent: int


@final
class Work:
    """One operation; its arrays must be left alone until it is done."""

    __slots__ = ("_buffers", "_handle", "_library", "_naming", "_progress", "_result")

    def __init__(self, handle: int, naming: tuple[int, int, DataType | None], buffers: tuple[object, ...]) -> None:
        self._library = library()
        self._handle = handle
        self._buffers = buffers
        self._progress = RUNS
        self._result: Result | None = None
        self._naming = naming

    @property
    def operation(self) -> str:
        """What was called, in words."""
        return named(*self._naming)

    def wait(self, timeout: float | None = None) -> None:
        """Block until done, without the GIL; a signal handler (Ctrl-C) gets its turn.

        Raises:
            CollectiveError: the operation failed.
            TimeoutError: not done after `timeout` seconds; the operation goes on.
        """
        if timeout is None:
            self.wait_quietly()
        else:
            deadline = time.monotonic_ns() + int(timeout * 1e9)
            while not self._settled(
                self._library.catchment_work_wait(self._handle, max(0, min(_SLICE_NS, deadline - time.monotonic_ns())))
            ):
                if time.monotonic_ns() >= deadline:
                    raise TimeoutError(f"{self.operation} is not done after {timeout} s; it goes on")
        error = self._failure()
        if error is not None:
            raise error

    def wait_quietly(self) -> None:
        """Block until done, whether it fails or not."""
        while not self._settled(self._library.catchment_work_wait(self._handle, _SLICE_NS)):
            pass

    def done(self) -> bool:
        """True when it completed or failed."""
        return self._progress != RUNS or self._settled(self._library.catchment_work_done(self._handle))

    def cancel(self) -> bool:
        """Give the operation up, if nothing of it was sent yet; all ranks' operation then fails as ``cancelled``.

        Returns:
            False when it is too late: it runs to its end.
        """
        return bool(self._library.catchment_work_cancel(self._handle))

    def exception(self) -> CollectiveError | None:
        """Why it failed; None while it runs and when it succeeded."""
        return self._failure() if self.done() else None

    @property
    def statistics(self) -> WorkStatistics:
        """What it did."""
        result = self._done_result() or Result()
        return WorkStatistics(
            latency=result.latency_ns / 1e9,
            vectors=result.vectors,
            retransmissions=result.retransmissions,
            saturated=result.saturated,
            nonfinite=result.nonfinite,
            any_saturated=bool(result.any_saturated),
            exponent=result.exponent,
        )

    def _settled(self, progress: int) -> bool:
        """Note that it is done, where the core says so; another thread may have noted it since."""
        if progress != RUNS:
            self._progress = progress
            self._buffers = ()
        return self._progress != RUNS

    def _failure(self) -> CollectiveError | None:
        """Why it failed, once it is done."""
        if self._progress != FAILED:
            return None
        result = self._done_result()
        return None if result is None else result.error(self.operation)

    def _done_result(self) -> Result | None:
        if self._result is None and self.done():
            self._result = Result()
            self._library.catchment_work_result(self._handle, ctypes.byref(self._result))
        return self._result

    def __del__(self) -> None:
        self._library.catchment_work_free(self._handle)
