"""The completion of a push or a pull (LuWu, Table 1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from catchment.host.transport.outcome import Outcome

if TYPE_CHECKING:
    from catchment.host import _native
    from catchment.host.transport.buffers import Buffer


@final
class Request(Outcome["_native.Request"]):
    """One push or pull in flight.  Its buffer must neither be written (push) nor read (pull) before it is done."""

    __slots__ = ("_buffer",)

    def __init__(self, native: _native.Request, buffer: Buffer) -> None:
        self._native = native
        self._buffer: Buffer | None = buffer

    def wait(self, timeout: float | None = None) -> None:
        """Block until done, without the GIL; a signal handler (Ctrl-C) gets its turn.

        Raises:
            EndpointError: the request failed.
            TimeoutError: not done after `timeout` seconds; the request goes on.
        """
        if not self._native.wait(timeout):
            raise TimeoutError(f"the request is not done after {timeout} s; it goes on")
        self._buffer = None
        self.raise_failure()

    @property
    def status(self) -> str:
        """``pending``, ``ok``, or the text of the error."""
        if not self._native.done:
            return "pending"
        return "ok" if self._native.ok else str(self.error)

    @property
    def max_abs(self) -> float:
        """Pull: largest magnitude of the received sums (0 for bytes).  Push: 0."""
        return self._native.max_abs

    @property
    def exponent(self) -> int:
        """Shared exponent E of the message."""
        return self._native.exponent
