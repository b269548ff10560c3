"""The one exception of the P4Runtime client, and how a gRPC error becomes one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import grpc
from google.rpc import code_pb2, status_pb2

from catchment.controlplane.errors import ControlPlaneError
from catchment.wire.generated import p4runtime_pb2

_DETAILS_KEY = "grpc-status-details-bin"


@dataclass(frozen=True, slots=True)
class UpdateFailure:
    """One update of a write batch that the switch refused.

    Attributes:
        index: position in the batch.
        update: the update in words, e.g. ``insert jobs[gen=7 port=2]``.
        code: canonical status name, e.g. ``ALREADY_EXISTS``.
        message: what the switch said.
    """

    index: int
    update: str
    code: str
    message: str

    def __str__(self) -> str:
        return f"{self.update}: {self.code}: {self.message or 'no reason given'}"


class SwitchError(ControlPlaneError):
    """A switch could not be reached, refused a request, or was asked for what it does not have.

    Attributes:
        code: canonical status name of the whole request, or None when the error is local.
        failures: each refused update of a write; empty for other requests.
    """

    def __init__(self, message: str, *, code: str | None = None, failures: Sequence[UpdateFailure] = ()) -> None:
        lines = [message, *(f"  {failure}" for failure in failures)]
        super().__init__("\n".join(lines))
        self.code = code
        self.failures = tuple(failures)

    @property
    def is_silence(self) -> bool:
        """Whether the switch said nothing, as one that is dead or stopped."""
        return self.code in ("UNAVAILABLE", "DEADLINE_EXCEEDED")


def code_name(number: int) -> str:
    """The canonical name of a status code; a number without a name stays a number."""
    value = code_pb2.Code.DESCRIPTOR.values_by_number.get(number)
    return value.name if value is not None else f"code {number}"


def from_rpc(where: str, what: str, error: grpc.RpcError) -> SwitchError:
    """The exception for a failed request other than a write."""
    code = error.code().name
    detail = error.details() or "no reason given"
    return SwitchError(f"{where}: {what} failed: {code}: {detail}{_advice(code)}", code=code)


def from_stream(where: str, error: Any) -> SwitchError:
    """The exception for a `p4.v1.StreamError`: a message on the control stream that the switch did not take."""
    what = {"packet_out": "a packet", "digest_list_ack": "an acknowledgement"}.get(
        error.WhichOneof("details"), "a message"
    )
    code = code_name(error.canonical_code)
    return SwitchError(f"{where}: {what} was refused: {code}: {error.message or 'no reason given'}", code=code)


def from_write(where: str, updates: Sequence[str], error: grpc.RpcError) -> SwitchError:
    """The exception for a failed write, with each refused update.

    Args:
        where: the switch, in words.
        updates: each update of the batch, in words.
        error: what gRPC raised.
    """
    failures = tuple(_failures(updates, error))
    if not failures:
        return from_rpc(where, f"writing {len(updates)} update(s)", error)
    return SwitchError(
        f"{where}: {len(failures)} of {len(updates)} update(s) refused",
        code=error.code().name,
        failures=failures,
    )


def _failures(updates: Sequence[str], error: grpc.RpcError) -> Iterable[UpdateFailure]:
    if error.code() != grpc.StatusCode.UNKNOWN:
        return
    for key, value in error.trailing_metadata() or ():
        if key != _DETAILS_KEY:
            continue
        status = status_pb2.Status()
        status.ParseFromString(value)
        for index, detail in enumerate(status.details):
            refusal = p4runtime_pb2.Error()
            if not detail.Unpack(refusal) or refusal.canonical_code == code_pb2.OK:
                continue
            words = updates[index] if index < len(updates) else f"update {index}"
            yield UpdateFailure(index, words, code_name(refusal.canonical_code), refusal.message)


def _advice(code: str) -> str:
    return {
        "UNAVAILABLE": "; the switch is not answering: is it still running?",
        "DEADLINE_EXCEEDED": "; the switch did not answer in time: is it overloaded or stopped?",
        "FAILED_PRECONDITION": "; the switch may have no pipeline yet: push one first",
        "UNIMPLEMENTED": "; this target does not offer that over P4Runtime",
        "PERMISSION_DENIED": "; another controller is primary for this switch",
    }.get(code, "")
