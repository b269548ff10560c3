"""The part of the endpoint that training needs; `host.Endpoint` and the tests' in-memory fabric both have it."""

from __future__ import annotations

from typing import Any, Protocol


class Completion(Protocol):
    """What a push or a pull returns (paper, Table 1: cmptPtr)."""

    def wait(self, timeout: float | None = None) -> object:
        """Block until done; raises EndpointError when the transfer failed."""

    def done(self) -> bool:
        """True once `wait` would return at once."""

    @property
    def flags(self) -> int:
        """Header flags, ORed over the message's frames; Flag.SAT: a member's value did not fit, or was not finite."""

    @property
    def latency(self) -> float:
        """Seconds from the call to completion; 0 while it runs."""

    @property
    def max_abs(self) -> float:
        """Root's pull: the largest magnitude of the sums."""


class TransferPort(Protocol):
    """Asynchronous push and pull of C-contiguous buffers; each kind completes in the order it was asked for."""

    def push(self, array: Any, exponent: int | None = None) -> Completion:
        """Worker: gradients of shared exponent `exponent`. Root: the bytes of a PARAM message."""

    def pull(self, array: Any) -> Completion:
        """Worker: fill `array` with a PARAM message. Root: fill it with the workers' sum."""
