"""Frames for the tests of the switch program, byte by byte."""

from __future__ import annotations

import struct

from catchment.wire import udp_frame as wire
from catchment.wire.generated.constants import ETHERTYPE_IPV4, UDP_PORT, Header
from catchment.wire.udp_frame import UdpPeer

SWITCH_MAC = 0x02_00_00_00_00_FE
SWITCH_IP = 0x0A_00_00_FE


def host_mac(port: int) -> int:
    return 0x02_00_00_00_00_00 | port


def host_ip(port: int) -> int:
    return 0x0A_00_00_00 | port


def ethernet(dst: int, src: int, ether_type: int) -> bytes:
    return dst.to_bytes(6, "big") + src.to_bytes(6, "big") + ether_type.to_bytes(2, "big")


def udp_frame(
    payload: bytes,
    *,
    port: int,
    dst_ip: int = SWITCH_IP,
    dst_mac: int = SWITCH_MAC,
    dst_udp: int = UDP_PORT,
    src_udp: int = UDP_PORT,
    src_ip: int | None = None,
    src_mac: int | None = None,
    checksum: int = 0,
) -> bytes:
    """A UDP frame from the host on `port`, or in another's name; `checksum` is written into the UDP header as it is."""
    source = UdpPeer(
        host_mac(port) if src_mac is None else src_mac, host_ip(port) if src_ip is None else src_ip, src_udp
    )
    target = UdpPeer(dst_mac, dst_ip, dst_udp)
    return wire.udp_frame(payload, source, target, ttl=63, udp_checksum=checksum)


def job_frame(
    header: Header,
    payload: bytes = b"",
    *,
    port: int,
    dst_mac: int = SWITCH_MAC,
    dst_ip: int = SWITCH_IP,
    **source: int,
) -> bytes:
    """A frame of the protocol to a switch; `source`: src_udp, src_ip, src_mac where they are not the host's own."""
    return udp_frame(header.pack() + payload, port=port, dst_mac=dst_mac, dst_ip=dst_ip, **source)


def pack_values(values: tuple[int, ...] | list[int]) -> bytes:
    return struct.pack(f"!{len(values)}I", *(v % (1 << 32) for v in values))


def arp(
    operation: int,
    *,
    port: int,
    target_ip: int,
    dst_mac: int = (1 << 48) - 1,
    pad: int = 18,
    sender_ip: int | None = None,
    sender_mac: int | None = None,
) -> bytes:
    """An ARP frame from the host on `port`, padded as Ethernet does; it may say that it has other addresses."""
    body = struct.pack("!HHBBH", 1, ETHERTYPE_IPV4, 6, 4, operation)
    body += (host_mac(port) if sender_mac is None else sender_mac).to_bytes(6, "big")
    body += (host_ip(port) if sender_ip is None else sender_ip).to_bytes(4, "big")
    body += bytes(6) + target_ip.to_bytes(4, "big")
    return ethernet(dst_mac, host_mac(port), 0x0806) + body + bytes(pad)
