"""Bytes in and out of the switch model: Ethernet, ARP, IPv4, UDP and our header, by offsets."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass

from catchment.sim.golden.switch_tables import Receiver
from catchment.wire.generated.constants import (
    ETHERNET_BYTES,
    ETHERTYPE_IPV4,
    HEADER_BYTES,
    HEADER_OFFSET,
    IPV4_BYTES,
    IPV4_FIRST_BYTE,
    LANE_BYTES,
    TAG_BYTES,
    TAGGED_VERSION,
    UDP_BYTES,
    UDP_PORT,
    VERSION,
    DropReason,
    Flag,
    Header,
    PacketType,
)
from catchment.wire.udp_frame import internet_checksum

UDP_OFFSET = ETHERNET_BYTES + IPV4_BYTES
PAYLOAD_OFFSET = HEADER_OFFSET + HEADER_BYTES
_ARP_BYTES = 28
_VECTOR_TYPES = (PacketType.PA, PacketType.FA)
_HEARTBEAT_TYPES = (PacketType.HB, PacketType.MH)
_ROUND_TYPES = (PacketType.ACK, PacketType.CNF)


def number(data: bytes, offset: int, size: int) -> int:
    """Big-endian unsigned integer of `size` bytes."""
    return int.from_bytes(data[offset : offset + size], "big")


def arp_target(frame: bytes) -> int | None:
    """The IPv4 address that an ARP request asks for; None for anything else."""
    if len(frame) < ETHERNET_BYTES + _ARP_BYTES or number(frame, 12, 2) != 0x0806 or number(frame, 20, 2) != 1:
        return None
    return number(frame, 38, 4)


def arp_sender(frame: bytes) -> tuple[int, int] | None:
    """The hardware and IPv4 address that an ARP message claims for its sender; None for anything else."""
    if len(frame) < ETHERNET_BYTES + _ARP_BYTES or number(frame, 12, 2) != 0x0806:
        return None
    return number(frame, 22, 6), number(frame, 28, 4)


def arp_reply(request: bytes, mac: int) -> bytes:
    """The answer to `request`: its target IP is at `mac`."""
    asker_mac, asker_ip, asked_ip = request[22:28], request[28:32], request[38:42]
    ours = mac.to_bytes(6, "big")
    head = asker_mac + ours + request[12:20] + b"\x00\x02"
    return head + ours + asked_ip + asker_mac + asker_ip + request[42:]


@dataclass(frozen=True, slots=True)
class IPv4:
    """What matters of an IPv4 header."""

    plain: bool  # version 4, no options
    fragment_offset: int
    more_fragments: bool
    checksum_good: bool
    total_length: int
    protocol: int
    src: int
    dst: int


def ipv4(frame: bytes) -> IPv4 | None:
    """The IPv4 header of a frame; None if it has none or is too short for one."""
    if len(frame) < UDP_OFFSET or number(frame, 12, 2) != ETHERTYPE_IPV4:
        return None
    return IPv4(
        plain=frame[ETHERNET_BYTES] == IPV4_FIRST_BYTE,
        fragment_offset=number(frame, 20, 2) & 0x1FFF,
        more_fragments=bool(frame[20] & 0x20),
        checksum_good=internet_checksum(frame[14:34]) == 0,
        total_length=number(frame, 16, 2),
        protocol=frame[23],
        src=number(frame, 26, 4),
        dst=number(frame, 30, 4),
    )


def udp_hidden(ip: IPv4) -> bool:
    """Is the UDP header of this packet out of sight (options, a later fragment)?"""
    return not ip.plain or ip.fragment_offset != 0


def may_be_ours(frame: bytes, ip: IPv4) -> bool:
    """Given that the frame is for our address: UDP to our port, or UDP that does not show its port."""
    if ip.protocol != 17:
        return False
    if udp_hidden(ip) or len(frame) < HEADER_OFFSET:
        return True
    return number(frame, UDP_OFFSET + 2, 2) == UDP_PORT


def packet_type(frame: bytes) -> int:
    """The type that the fault tables match: our header's, 0 for a frame that has none."""
    ip = ipv4(frame)
    if ip is None or ip.protocol != 17 or udp_hidden(ip) or len(frame) < PAYLOAD_OFFSET:
        return 0
    return frame[HEADER_OFFSET] & 0xF if number(frame, UDP_OFFSET + 2, 2) == UDP_PORT else 0


TypeFault = Callable[[Header, int], DropReason]


def fault_of(frame: bytes, ip: IPv4, lanes: int, type_fault: TypeFault, *, tags: bool = False) -> DropReason:
    """The first thing wrong with a frame for the switch, NONE if it is well formed.

    `type_fault` judges a header that is neither PA nor FA, and its payload's length. `tags`: of a program with tags.
    """
    if not udp_hidden(ip):
        needed = PAYLOAD_OFFSET
        if len(frame) >= PAYLOAD_OFFSET:
            header = Header.unpack(frame, HEADER_OFFSET)
            if header.type == PacketType.PA and header.lanes == lanes:
                needed += lanes * LANE_BYTES
            if tags and shows_tag(header, lanes):
                needed += TAG_BYTES
        if len(frame) < needed:
            return DropReason.PARSE_ERROR
    if udp_hidden(ip) or ip.more_fragments or not ip.checksum_good:
        return DropReason.BAD_IPV4
    udp_length = number(frame, UDP_OFFSET + 4, 2)
    if ip.total_length != udp_length + IPV4_BYTES or len(frame) != ip.total_length + ETHERNET_BYTES:
        return DropReason.BAD_LENGTH
    header, payload = Header.unpack(frame, HEADER_OFFSET), udp_length - UDP_BYTES - HEADER_BYTES
    if tags and header.version == TAGGED_VERSION:
        header, payload = header._replace(version=VERSION), payload - TAG_BYTES
    return _header_fault(header, payload, lanes, type_fault)


def shows_tag(header: Header, lanes: int) -> bool:
    """Whether the switch sees the tag of a frame: of vectors that it adds, and of what has no payload."""
    seen = header.type in (*_HEARTBEAT_TYPES, *_ROUND_TYPES) or (header.type == PacketType.PA and header.lanes == lanes)
    return header.version == TAGGED_VERSION and seen


def _header_fault(header: Header, payload: int, lanes: int, type_fault: TypeFault) -> DropReason:
    if header.version != VERSION:
        return DropReason.BAD_VERSION
    if header.flags & ~sum(Flag):
        return DropReason.BAD_FLAGS
    if header.type in _VECTOR_TYPES:
        if header.lanes != lanes:
            return DropReason.BAD_LANES
        return DropReason.NONE if payload == lanes * LANE_BYTES else DropReason.BAD_LENGTH
    if header.flags & (Flag.PACKED | Flag.MIXED):
        return DropReason.BAD_FLAGS
    return type_fault(header, payload)


def stream_fault(header: Header, payload: int) -> DropReason:
    """Handle what luwu.p4 takes beside vectors: parameters and heartbeats."""
    if header.type == PacketType.PARAM:
        return DropReason.NONE if payload == header.lanes else DropReason.BAD_LENGTH
    if header.type in _HEARTBEAT_TYPES:
        if header.lanes or payload:
            return DropReason.BAD_LENGTH
        return DropReason.NONE if header.flags & Flag.ACKV else DropReason.BAD_FLAGS
    return DropReason.BAD_TYPE


def round_fault(header: Header, payload: int) -> DropReason:
    """Handle what p4sgd.p4 takes beside vectors: acknowledgements and confirmations."""
    if header.type not in _ROUND_TYPES:
        return DropReason.BAD_TYPE
    return DropReason.BAD_LENGTH if header.lanes or payload else DropReason.NONE


def vector(frame: bytes, lanes: int) -> tuple[int, ...]:
    """The values of a PA or FA as unsigned 32-bit integers."""
    return struct.unpack_from(f"!{lanes}I", frame, PAYLOAD_OFFSET)


def with_header(frame: bytes, header: Header, values: tuple[int, ...] | None = None) -> bytes:
    """`frame` with our header replaced, and its vector too if `values` are given."""
    payload = frame[PAYLOAD_OFFSET:] if values is None else struct.pack(f"!{len(values)}I", *values)
    return frame[:HEADER_OFFSET] + header.pack() + payload


def addressed(frame: bytes, to: Receiver) -> bytes:
    """`frame` as it goes to one receiver: MAC, IPv4 and UDP addresses, TTL and checksums written anew.

    The model edits the frame that came, as the switch program does, and keeps what the program keeps; it does not build
    a new one.
    """
    ethernet = to.dst_mac.to_bytes(6, "big") + to.src_mac.to_bytes(6, "big") + frame[12:14]
    ip = bytearray(frame[14:34])
    ip[8] = 64
    ip[10:12] = b"\x00\x00"
    ip[12:16] = to.src_ip.to_bytes(4, "big")
    ip[16:20] = to.dst_ip.to_bytes(4, "big")
    ip[10:12] = internet_checksum(bytes(ip)).to_bytes(2, "big")
    udp = UDP_PORT.to_bytes(2, "big") + to.dst_udp.to_bytes(2, "big") + frame[38:40] + b"\x00\x00"
    return ethernet + bytes(ip) + udp + frame[HEADER_OFFSET:]
