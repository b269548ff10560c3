"""The one exception of the endpoint."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

KINDS: Final = (
    "unreachable",
    "stalled",
    "length",
    "dtype",
    "exponent",
    "argument",
    "closed",
    "system",
)


class EndpointError(RuntimeError):
    """A request, or the whole endpoint, failed.

    Attributes:
        kind: ``unreachable`` nothing was ever heard from the switch; ``stalled`` the switch answers but nothing
            advances; ``length`` pulled and pushed lengths disagree; ``dtype`` and ``exponent`` workers and receiver
            disagree about the numbers; ``argument`` the call itself is wrong; ``closed`` the endpoint was closed;
            ``system`` the operating system refused.
        stream: which stream (``gradients gen 7 push``), empty when the error is not about one.
        seq: the sequence number that everything waits for, None when there is none.
        peer: ``ip:port`` of the switch.
        hint: what to do next.
        fatal: every later call on this endpoint fails with the same error.
    """

    def __init__(
        self,
        message: str,
        *,
        kind: str,
        stream: str = "",
        seq: int | None = None,
        peer: str = "",
        hint: str = "",
        fatal: bool = False,
    ) -> None:
        where = ", ".join(
            part for part in (stream, f"seq {seq}" if seq is not None else "", f"switch {peer}" if peer else "") if part
        )
        super().__init__(f"{message}{f' [{where}]' if where else ''}{f': {hint}' if hint else ''}")
        self.message = message
        self.kind = kind
        self.stream = stream
        self.seq = seq
        self.peer = peer
        self.hint = hint
        self.fatal = fatal

    def __reduce__(self) -> tuple[Any, ...]:
        rebuild = partial(
            EndpointError,
            self.message,
            kind=self.kind,
            stream=self.stream,
            seq=self.seq,
            peer=self.peer,
            hint=self.hint,
            fatal=self.fatal,
        )
        return rebuild, ()
