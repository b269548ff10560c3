"""An operation in flight."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import final

from catchment.host import _collectives
from catchment.host.collectives.calls import WITHOUT_ARRAYS, named, nanoseconds
from catchment.host.collectives.errors import CollectiveError
from catchment.host.collectives.library import FAILED, Result, library
from catchment.wire.generated.constants import DataType


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
class Work(_collectives.Operation):
    """One operation; its arrays must be left alone until it is done."""

    __slots__ = ()

    @property
    def operation(self) -> str:
        """What was called, in words."""
        kind, elements, dtype = self._asked
        return named(kind, elements, None if kind in WITHOUT_ARRAYS else DataType(dtype))

    def wait(self, timeout: float | None = None) -> None:
        """Block until done, without the GIL; a signal handler (Ctrl-C) gets its turn.

        Raises:
            CollectiveError: the operation failed; kind ``argument``: the timeout is NaN, or no number.
            TimeoutError: not done after `timeout` seconds; the operation goes on.
        """
        if not self._settle(None if timeout is None else nanoseconds("a wait of", timeout)):
            raise TimeoutError(f"{self.operation} is not done after {timeout} s; it goes on")
        error = self._failure() if self._progress == FAILED else None
        if error is not None:
            raise error

    def wait_quietly(self) -> None:
        """Block until done, whether it fails or not."""
        self._settle(None)

    def done(self) -> bool:
        """True when it completed or failed."""
        return self._settled()

    def cancel(self) -> bool:
        """Give the operation up, if nothing of it was sent yet; all ranks' operation then fails as ``cancelled``.

        Returns:
            False when it is too late: it runs to its end.
        """
        return bool(library().catchment_work_cancel(self._handle))

    def exception(self) -> CollectiveError | None:
        """Why it failed; None while it runs and when it succeeded."""
        return self._failure() if self.done() and self._progress == FAILED else None

    @property
    def statistics(self) -> WorkStatistics:
        """What it did."""
        result = self._result()
        return WorkStatistics(
            latency=result.latency_ns / 1e9,
            vectors=result.vectors,
            retransmissions=result.retransmissions,
            saturated=result.saturated,
            nonfinite=result.nonfinite,
            any_saturated=bool(result.any_saturated),
            exponent=result.exponent,
        )

    def _failure(self) -> CollectiveError | None:
        """Why it failed; None where it was done before a fork that nobody had looked at it."""
        return self._result().error(self.operation)

    def _result(self) -> Result:
        """What came of it; zeros until it is done."""
        result = Result()
        library().catchment_work_result(self._handle, ctypes.byref(result))
        return result
