"""An operation in flight."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

from host.collectives.errors import CollectiveError
from host.errors import EndpointError
from host.request import Request


@dataclass(frozen=True, slots=True)
class WorkStatistics:
    """What one operation did on this rank; times in seconds.

    Attributes:
        latency: from the call to completion.
        vectors: sent and received, the control vectors included.
        retransmissions: vectors sent again while it was the oldest operation.
        saturated: own values that were cut, the non-finite included.
        nonfinite: own values that were NaN or infinite.
        any_saturated: a value of some rank was cut.
        exponent: largest shared exponent E used; 0 for integers.
    """

    latency: float = 0.0
    vectors: int = 0
    retransmissions: int = 0
    saturated: int = 0
    nonfinite: int = 0
    any_saturated: bool = False
    exponent: int = 0


@final
class Work:
    """One operation; its arrays must be left alone until it is done."""

    __slots__ = ("_finish", "_operation", "_requests")

    def __init__(self, operation: str, requests: tuple[Request, ...], finish: Callable[[], None] | None = None) -> None:
        self._operation = operation
        self._requests = requests
        self._finish = finish

    def wait(self, timeout: float | None = None) -> None:
        """Block until done, without the GIL; a signal handler (Ctrl-C) gets its turn.

        Raises:
            CollectiveError: the operation failed.
            TimeoutError: not done after `timeout` seconds; the operation goes on.
        """
        try:
            for request in self._requests:
                request.wait(timeout)
        except EndpointError:
            pass
        error = self.exception()
        if error is not None:
            raise error

    def done(self) -> bool:
        """True when it completed or failed."""
        return all(request.done() for request in self._requests)

    def cancel(self) -> bool:
        """Give the operation up, if nothing of it was sent yet; all ranks' operation then fails as ``cancelled``.

        Returns:
            False when it is too late: it runs to its end.
        """
        return False

    def exception(self) -> CollectiveError | None:
        """Why it failed; None while it runs and when it succeeded."""
        for request in self._requests:
            error = request.error
            if error is not None:
                return CollectiveError(
                    error.message,
                    kind="missing" if error.kind == "stalled" else error.kind,
                    operation=self._operation,
                    seq=error.seq,
                    hint=error.hint,
                    fatal=error.fatal,
                )
        return None

    @property
    def statistics(self) -> WorkStatistics:
        """What it did so far."""
        return WorkStatistics(latency=max((request.latency for request in self._requests), default=0.0))
