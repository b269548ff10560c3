"""Types of the native part of the collectives (host/collectives/native/python); `Communicator` is what to use."""

from typing import Generic, TypeVar, final

class Operation:
    """An operation of the C library; keeps who owns its arrays until it is done."""

    @property
    def _handle(self) -> int:
        """The catchment_work, while this object lives."""
    @property
    def _asked(self) -> tuple[int, int, int]:
        """The kind, the elements and the type of the call."""
    @property
    def _progress(self) -> int:
        """A catchment_progress, as of the last look."""
    def _settle(self, nanos: int | None, /) -> bool:
        """Wait without the GIL for so many nanoseconds, None: for as long as it takes; whether it is done.

        A signal handler gets its turn ten times a second, and ends the wait where it raises.
        """
    def _settled(self) -> bool:
        """Whether it is done."""

_Made = TypeVar("_Made", bound=Operation)
_Buffer = tuple[object, int, int, int]

@final
class Operations(Generic[_Made]):
    """The operations of a `catchment_group`, each kept until it is done; `made` is the class of those it starts."""

    def __new__(cls, group: int, made: type[_Made]) -> Operations[_Made]: ...
    def start(
        self,
        kind: int,
        source: _Buffer,
        target: _Buffer,
        options: tuple[int, int, int, int, int, int, int, int],
        numbers: tuple[int, int, int, int],
        /,
    ) -> _Made | None:
        """Start a call, without the GIL; None, and nothing started, where the process was forked since the opening.

        `source` and `target` are `Buffer`s, `options` `CallOptions` and `numbers` `Numbers`.
        """
