"""The outcome of a push, a pull or an all-reduce."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from catchment.host.errors import EndpointError
from catchment.wire.generated.constants import Flag

if TYPE_CHECKING:
    from catchment.host import _native

_Native = TypeVar("_Native", bound="_native.Request | _native.Reduction")


class Outcome(Generic[_Native]):
    """What a transfer says of itself when it has ended: why it failed, flags, cut values, time."""

    __slots__ = ("_native",)
    _native: _Native

    def done(self) -> bool:
        """True when nothing of it is under way: it completed or failed."""
        return self._native.done

    @property
    def error(self) -> EndpointError | None:
        """Why it failed; None while it runs and when it succeeded."""
        failure = self._native.failure
        return None if failure is None else EndpointError(**failure)

    @property
    def flags(self) -> Flag:
        """Flags of all frames that arrived for it, ORed: SAT when a worker's value saturated or was not finite."""
        return Flag(self._native.flags)

    @property
    def max_raw(self) -> int:
        """Largest magnitude of the int32 sums as they arrived; 0 of a push."""
        return self._native.max_raw

    @property
    def saturated(self) -> int:
        """How many of its own values were cut to the range, NaN and infinities included; 0 of a pull."""
        return self._native.saturated

    @property
    def nonfinite(self) -> int:
        """How many of its own values were NaN or infinite; 0 of a pull."""
        return self._native.nonfinite

    @property
    def latency(self) -> float:
        """Seconds from its last start to its end; 0 while it runs for the first time."""
        return self._native.latency

    def raise_failure(self) -> None:
        """Raise what `error` is, if it is anything.

        Raises:
            EndpointError: it failed.
        """
        error = self.error
        if error is not None:
            raise error
