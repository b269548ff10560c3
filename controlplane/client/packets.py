"""Packets between a program and its controller, with the metadata that the program's controller headers name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from catchment.controlplane.client.errors import SwitchError
from catchment.controlplane.client.p4info import P4Info
from catchment.controlplane.client.values import Value, decode, encode, readable
from catchment.wire.generated import p4runtime_pb2


@dataclass(frozen=True, slots=True)
class PacketIn:
    """A packet that the program sent to its controller.

    Attributes:
        payload: the packet, without the controller header.
        metadata: fields of the header ``packet_in``, by name.
    """

    payload: bytes
    metadata: Mapping[str, Value] = field(default_factory=dict)

    @classmethod
    def decode(cls, message: Any, p4info: P4Info) -> PacketIn:
        """The packet that a `p4.v1.PacketIn` stands for."""
        fields = {one.id: one for one in p4info.controller_header("packet_in")}
        return cls(
            message.payload,
            {
                fields[one.metadata_id].name: readable(
                    decode(one.value), fields[one.metadata_id].bitwidth, fields[one.metadata_id].name
                )
                for one in message.metadata
            },
        )


@dataclass(frozen=True, slots=True)
class PacketOut:
    """A packet that the controller sends through the program.

    Attributes:
        payload: the packet, without the controller header.
        metadata: fields of the header ``packet_out``, by name; what is left out is 0.
    """

    payload: bytes
    metadata: Mapping[str, Value] = field(default_factory=dict)

    def request(self, p4info: P4Info) -> Any:
        """The `p4.v1.StreamMessageRequest` that sends the packet.

        Raises:
            SwitchError: the program's header has no such field, or a value does not fit.
        """
        fields = p4info.controller_header("packet_out")
        known = [one.name for one in fields]
        if unknown := [name for name in self.metadata if name not in known]:
            raise SwitchError(
                f"packet-out: the program's header packet_out has no {', '.join(unknown)}; it has: "
                + (", ".join(known) or "no fields")
            )
        request = p4runtime_pb2.StreamMessageRequest(packet={"payload": self.payload})
        for one in fields:
            value = encode(self.metadata.get(one.name, 0), one.bitwidth, f"packet-out {one.name}")
            request.packet.metadata.add(metadata_id=one.id, value=value)
        return request
