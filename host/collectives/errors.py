"""The one exception of the collectives."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any


class CollectiveError(RuntimeError):
    """An operation, or the whole communicator, failed.

    Attributes:
        kind: ``mismatch`` the ranks called different operations, or the same with other sizes, types or order;
            ``missing`` no progress within the timeout because of `peers`, or `peers` have closed their communicators;
            ``unreachable`` nothing was ever heard from the switch; ``used`` an earlier run has used the job's
            generation; ``cancelled`` a rank cancelled the operation; ``argument`` the call itself is wrong;
            ``unsupported`` the switch program cannot do it; ``closed`` the communicator was closed; ``forked`` it was
            made before fork(), in the parent process; ``system`` the operating system refused.
        operation: what was called here, as in ``all_reduce(1000 x fp32, sum)``.
        peer: the first rank that the error is about, None when it is about none in particular.
        peers: all of them.
        seq: sequence number of the vector that everything waits for, or of the operation's first vector.
        hint: what to do next.
        fatal: every later call on this communicator fails with the same error.
    """

    def __init__(
        self,
        message: str,
        *,
        kind: str,
        operation: str = "",
        peers: Sequence[int] = (),
        seq: int | None = None,
        hint: str = "",
        fatal: bool = False,
    ) -> None:
        who = f"rank {', '.join(map(str, peers))}" if peers else ""
        where = ", ".join(part for part in (operation, who, f"seq {seq}" if seq is not None else "") if part)
        super().__init__(f"{message}{f' [{where}]' if where else ''}{f': {hint}' if hint else ''}")
        self.message = message
        self.kind = kind
        self.operation = operation
        self.peers = tuple(peers)
        self.peer = self.peers[0] if self.peers else None
        self.seq = seq
        self.hint = hint
        self.fatal = fatal

    def but(self, **changes: Any) -> CollectiveError:
        """The same error with other attributes."""
        return CollectiveError(**{"message": self.message, **self._details(), **changes})

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(CollectiveError, self.message, **self._details()), ()

    def _details(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "operation": self.operation,
            "peers": self.peers,
            "seq": self.seq,
            "hint": self.hint,
            "fatal": self.fatal,
        }


def wrong(what: str, hint: str) -> CollectiveError:
    """An argument that is refused."""
    return CollectiveError(what, kind="argument", hint=hint)
