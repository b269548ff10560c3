"""Digests: what a program tells its controller of packets, in lists that the controller acknowledges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from catchment.controlplane.client.entity import Entity, UpdateKind
from catchment.controlplane.client.p4info import P4Info
from catchment.controlplane.client.structures import Data, structured
from catchment.wire.generated import p4runtime_pb2


@dataclass(frozen=True, slots=True)
class Digest(Entity):
    """How a switch sends a digest; it sends none before this is inserted. As a pattern: that one, or ("") all of them.

    Attributes:
        digest: name of the digest.
        max_timeout_ns: a list is sent at the latest this long after its first data came; 0: at once.
        max_list_size: a list is sent as soon as it has this many data; 0: only the timeout counts.
        ack_timeout_ns: data that were sent are not sent again until their list is acknowledged, or this long.
    """

    digest: str = ""
    max_timeout_ns: int = 0
    max_list_size: int = 0
    ack_timeout_ns: int = 0

    def key(self) -> str:
        return f"digest {self.digest}"

    def subject(self) -> str:
        return f"digest {self.digest}" if self.digest else "the digests"

    def fill(self, message: Any, p4info: P4Info, kind: UpdateKind) -> None:
        out = message.digest_entry
        out.digest_id = p4info.find("digest", self.digest).preamble.id
        if kind != "delete":
            out.config.max_timeout_ns, out.config.max_list_size = self.max_timeout_ns, self.max_list_size
            out.config.ack_timeout_ns = self.ack_timeout_ns
            out.config.SetInParent()

    def select(self, message: Any, p4info: P4Info) -> None:
        message.digest_entry.SetInParent()
        if self.digest:
            message.digest_entry.digest_id = p4info.find("digest", self.digest).preamble.id

    @classmethod
    def decode(cls, message: Any, p4info: P4Info) -> Digest:
        found = message.digest_entry
        name = p4info.short_name("digest", p4info.by_id(found.digest_id).preamble.name)
        return cls(name, found.config.max_timeout_ns, found.config.max_list_size, found.config.ack_timeout_ns)


@dataclass(frozen=True, slots=True)
class DigestList:
    """Data of one digest, as the switch sent them together.

    Attributes:
        digest: name of the digest.
        number: of the list, with which it is acknowledged.
        data: what the program gave for each packet: the fields of a struct by name, a tuple, or one value.
        timestamp_ns: when the switch sent the list, by its clock.
    """

    digest: str
    number: int
    data: tuple[Data, ...]
    timestamp_ns: int

    @classmethod
    def decode(cls, message: Any, p4info: P4Info) -> DigestList:
        """The list that a `p4.v1.DigestList` stands for; errors as `structured`."""
        info = p4info.by_id(message.digest_id)
        name = p4info.short_name("digest", info.preamble.name)
        data = tuple(structured(one, info.type_spec, p4info, name) for one in message.data)
        return cls(name, message.list_id, data, message.timestamp)

    def acknowledgement(self, p4info: P4Info) -> Any:
        """The `p4.v1.StreamMessageRequest` that says that the list has arrived."""
        request = p4runtime_pb2.StreamMessageRequest()
        request.digest_ack.digest_id = p4info.find("digest", self.digest).preamble.id
        request.digest_ack.list_id = self.number
        return request
