"""P4Runtime requests out of updates and patterns; the blocking and the asynchronous client send the same ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Generic, TypeVar

import grpc

from catchment.controlplane.client.entity import Entity, Update, field_tag, nested
from catchment.controlplane.client.errors import SwitchError, from_rpc
from catchment.controlplane.client.p4info import P4Info
from catchment.wire.generated import p4runtime_pb2

_E = TypeVar("_E", bound=Entity)

UPDATES = 64
"""Updates in a request: gRPC carries the refused ones in at most 16 KiB of metadata."""


WRITE = "/p4.v1.P4Runtime/Write"
"""The method's name, for clients that send requests which are serialized already."""
_IN_REQUEST = field_tag(p4runtime_pb2.WriteRequest, "updates")


@dataclass(frozen=True, slots=True)
class Batch:
    """The updates of one `p4.v1.WriteRequest`, and a serialized request with nothing but them."""

    updates: Sequence[Update]
    serialized: bytes

    def words(self) -> list[str]:
        """Each update in words."""
        return [str(update) for update in self.updates]


def write_request(device_id: int, election_id: tuple[int, int], updates: bytes) -> bytes:
    """The serialized request of a client with this election id (high, low); `updates` as in `Batch`."""
    high, low = election_id
    head = p4runtime_pb2.WriteRequest(device_id=device_id, election_id={"high": high, "low": low})
    return bytes(head.SerializeToString()) + updates


def batches(updates: Iterable[Update], p4info: P4Info) -> Iterator[Batch]:
    """The requests that make updates, in their order.

    Raises:
        SwitchError: a name that the program does not have, or a value that does not fit.
    """
    remaining = iter(updates)
    while some := tuple(islice(remaining, UPDATES)):
        yield Batch(some, b"".join([nested(_IN_REQUEST, update.serialized(p4info)) for update in some]))


class Selection(Generic[_E]):
    """What patterns of one kind stand for on a switch.

    Args:
        device_id: P4Runtime device id.
        p4info: of the switch's program.
        patterns: what to read.

    Attributes:
        request: the `p4.v1.ReadRequest` that asks for it.

    Raises:
        SwitchError: a name that the program does not have.
    """

    def __init__(self, device_id: int, p4info: P4Info, *patterns: _E) -> None:
        self._patterns, self._p4info = patterns, p4info
        self.request = p4runtime_pb2.ReadRequest(device_id=device_id)
        for pattern in patterns:
            pattern.select(self.request.entities.add(), p4info)

    def found(self, reply: Any) -> Iterator[_E]:
        """What a `p4.v1.ReadResponse` has of it."""
        for message in reply.entities:
            one = self._patterns[0].decode(message, self._p4info)
            if any(pattern.matches(one) for pattern in self._patterns):
                yield one

    def failed(self, where: str, error: grpc.RpcError) -> SwitchError:
        """The exception for a read that failed; `where` is the switch in words."""
        return from_rpc(where, f"reading {self._patterns[0].subject()}", error)
