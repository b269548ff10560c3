"""The connection of one member to its switch: what endpoints and all-reducers have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from catchment.host.errors import EndpointError
from catchment.host.transport.addresses import Address, checked_address, shm_path

if TYPE_CHECKING:
    from types import TracebackType

    from catchment.host import _native

_LINGER = 0.25
_Native = TypeVar("_Native", bound="_native.Endpoint | _native.AllReducer")


def argument_error(message: str, hint: str) -> EndpointError:
    """The error of a call with a wrong argument."""
    return EndpointError(message, kind="argument", hint=hint)


def member_options(
    *, workers: int, wid: int, local: Address, switch: Address, port: str | None, timeout: float
) -> dict[str, Any]:
    """The checked options of any member, as the native part takes them.

    Raises:
        EndpointError: kind ``argument``.
    """
    if not 0 <= wid < workers:
        raise argument_error(f"worker index {wid} of {workers} workers", "give 0..workers-1")
    if not timeout > 0:
        raise argument_error(f"a timeout of {timeout} s", "give a positive number of seconds")
    return {
        "wid": wid,
        "local": checked_address("local", local, least=0 if port is None else 1),
        "port": None if port is None else shm_path(port),
        "switch": checked_address("switch", switch, least=1),
        "timeout": float(timeout),
    }


class Connection(Generic[_Native]):
    """A member that is connected; use `with` or `close` to end it."""

    _native: _Native
    _key_frames: int | None = None

    @property
    def local(self) -> Address:
        """The address it is bound to."""
        return self._native.local

    @property
    def error(self) -> EndpointError | None:
        """The error that ended it, if one did."""
        failure = self._native.failure()
        return None if failure is None else EndpointError(**failure)

    def stats(self) -> dict[str, Any]:
        """Counters since the start (docs/reference/endpoint.md).  `pull_latency` of an `AllReducer` is that of whole
        all-reduces.
        """
        return self._native.stats()

    @property
    def wants_keys(self) -> bool:
        """Whether half of the frames have been sent that the key of its stream serves for; False without a key."""
        return self._key_frames is not None and 2 * int(self._native.stats()["numbers_used"]) >= self._key_frames

    def close(self, linger: float = _LINGER) -> None:
        """Fail what is pending and stop, `linger` seconds later at most.

        Until then an `Endpoint` answers the others' late retransmissions, and an `AllReducer` runs the protocol until
        the switch has confirmed all sums.  Always returns; may be called twice.
        """
        self._native.close(linger)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(_LINGER if kind is None else 0.0)
