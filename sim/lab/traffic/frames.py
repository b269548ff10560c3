"""Frames of a job's members, built with the generated Scapy layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw

from catchment.wire.generated.constants import UDP_PORT, DataType, Flag, PacketType
from catchment.wire.generated.scapy_layers import Catchment, Lanes


@dataclass(frozen=True, slots=True)
class Sender:
    """The host that sends, and the switch that it sends through.

    Attributes:
        mac: own hardware address.
        ip: own IPv4 address.
        port: own UDP port.
        switch_mac: hardware address of the switch; its ARP answer tells it.
        switch_ip: IPv4 address of the switch.
    """

    mac: str
    ip: str
    port: int
    switch_mac: str
    switch_ip: str

    @classmethod
    def of(cls, description: Mapping[str, Any], mac: str, switch_mac: str) -> Sender:
        """Read what a job tells a member (`JobPlan.describe`)."""
        return cls(mac, description["local"][0], description["local"][1], switch_mac, description["switch"][0])

    def frame(self, payload: Packet | None = None, **fields: int) -> Packet:
        """A frame to the switch.

        Args:
            payload: what follows the header.
            fields: of the Catchment header.
        """
        frame = (
            Ether(src=self.mac, dst=self.switch_mac)
            / IP(src=self.ip, dst=self.switch_ip)
            / UDP(sport=self.port, dport=UDP_PORT, chksum=0)
            / Catchment(**fields)
        )
        return frame / payload if payload is not None else frame

    def vector(self, values: Sequence[int], **fields: int) -> Packet:
        """A PA with int32 values; `lanes` and `dtype` fit them unless given."""
        fields = {"type": PacketType.PA, "dtype": DataType.INT32, "lanes": len(values), **fields}
        return self.frame(Lanes(values=list(values)), **fields)

    def heartbeat(self, ack: int, credit: int, **fields: int) -> Packet:
        """An HB."""
        fields = {"type": PacketType.HB, "flags": Flag.ACKV, "ack": ack, "credit": credit, **fields}
        return self.frame(**fields)

    def parameters(self, data: bytes, **fields: int) -> Packet:
        """A PARAM."""
        fields = {"type": PacketType.PARAM, "lanes": len(data), **fields}
        return self.frame(Raw(data), **fields)
