"""Builds what lies around a frame of ours: Ethernet, IPv4 without options, and UDP."""

from __future__ import annotations

import struct
from typing import NamedTuple

from catchment.wire.generated.constants import (
    ETHERTYPE_IPV4,
    IPV4_BYTES,
    IPV4_DONT_FRAGMENT,
    IPV4_FIRST_BYTE,
    IPV4_HOPS,
    IPV4_PROTOCOL_UDP,
    UDP_BYTES,
)


class UdpPeer(NamedTuple):
    """One end of a datagram, as numbers."""

    mac: int
    ip: int
    port: int


def internet_checksum(data: bytes) -> int:
    """The checksum of an even number of bytes (RFC 1071): 0 for a header with the right one in it."""
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return 0xFFFF - total


def udp_frame(
    payload: bytes,
    source: UdpPeer,
    target: UdpPeer,
    *,
    ttl: int = IPV4_HOPS,
    identification: int = 7,
    udp_checksum: int = 0,
) -> bytes:
    """A whole Ethernet frame with `payload`; the UDP checksum is written as it is given, 0 for none."""
    udp = struct.pack("!HHHH", source.port, target.port, UDP_BYTES + len(payload), udp_checksum)
    ip = struct.pack(
        "!BBHHHBBHII",
        IPV4_FIRST_BYTE,
        0,
        IPV4_BYTES + len(udp) + len(payload),
        identification,
        IPV4_DONT_FRAGMENT,
        ttl,
        IPV4_PROTOCOL_UDP,
        0,
        source.ip,
        target.ip,
    )
    ip = ip[:10] + internet_checksum(ip).to_bytes(2, "big") + ip[12:]
    ethernet = target.mac.to_bytes(6, "big") + source.mac.to_bytes(6, "big") + ETHERTYPE_IPV4.to_bytes(2, "big")
    return ethernet + ip + udp + payload
