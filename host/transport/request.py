"""The completion of a push or a pull (LuWu, Table 1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from catchment.host.errors import EndpointError
from catchment.wire.generated.constants import Flag

if TYPE_CHECKING:
    from catchment.host import _native
    from catchment.host.transport.buffers import Buffer


@final
class Request:
    """One push or pull in flight.  Its buffer must neither be written (push) nor read (pull) before it is done."""

    __slots__ = ("_buffer", "_native")

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
        error = self.error
        if error is not None:
            raise error

    def done(self) -> bool:
        """True when it completed or failed."""
        return self._native.done

    @property
    def error(self) -> EndpointError | None:
        """Why it failed; None while it runs and when it succeeded."""
        failure = self._native.failure
        return None if failure is None else EndpointError(**failure)

    @property
    def status(self) -> str:
        """``pending``, ``ok``, or the text of the error."""
        if not self._native.done:
            return "pending"
        return "ok" if self._native.ok else str(self.error)

    @property
    def flags(self) -> Flag:
        """Flags of all its frames, ORed: SAT when a member's value saturated or was not finite."""
        return Flag(self._native.flags)

    @property
    def max_abs(self) -> float:
        """Pull: largest magnitude of the received sums (0 for bytes).  Push: 0."""
        return self._native.max_abs

    @property
    def max_raw(self) -> int:
        """Pull: largest magnitude of the int32 sums as they arrived.  Push: 0."""
        return self._native.max_raw

    @property
    def exponent(self) -> int:
        """Shared exponent E of the message."""
        return self._native.exponent

    @property
    def saturated(self) -> int:
        """Push: how many of its own values were cut to the range, NaN and infinities included."""
        return self._native.saturated

    @property
    def nonfinite(self) -> int:
        """Push: how many of its own values were NaN or infinite."""
        return self._native.nonfinite

    @property
    def latency(self) -> float:
        """Seconds from the call to completion; 0 while it runs."""
        return self._native.latency
