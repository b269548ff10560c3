"""Frames for a transport, built by scapy, and what a receiver must say to any bytes at all.

Scapy, and not `catchment.wire.udp_frame`, builds them: what the hardware is held against comes from elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass

from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw
from transport_nic import VECTOR_BYTES, Settings

from catchment.wire.generated.constants import VERSION, DataType, Flag, Header, PacketType
from catchment.wire.generated.scapy_layers import Catchment, Lanes
from catchment.wire.udp_frame import internet_checksum

LANES = VECTOR_BYTES // 4
M32 = 1 << 32
_OF_SUMS = int(Flag.PACKED | Flag.MIXED)
_ALL_FLAGS = int(sum(Flag))


def colons(mac: int) -> str:
    return ":".join(f"{byte:02x}" for byte in mac.to_bytes(6, "big"))


def dots(ip: int) -> str:
    return ".".join(str(byte) for byte in ip.to_bytes(4, "big"))


def frame_to(settings: Settings, payload: bytes = b"", **fields: int) -> bytes:
    """A frame from the switch to the NIC, with `fields` of our header."""
    fields.setdefault("lanes", len(payload) // 4)
    return bytes(
        Ether(dst=colons(settings.local_mac), src=colons(settings.peer_mac))
        / IP(src=dots(settings.peer_ip), dst=dots(settings.local_ip), id=0, flags="DF", ttl=64)
        / UDP(sport=settings.peer_port, dport=settings.local_port, chksum=0)
        / Catchment(**fields)
        / Raw(payload)
    )


def sum_frame(settings: Settings, seq: int, values: list[int] | None = None, **fields: int) -> bytes:
    """FA of the stream that the NIC receives."""
    payload = b"".join((v % M32).to_bytes(4, "big") for v in (values if values is not None else [seq] * LANES))
    fields = {"type": PacketType.FA, "gen": settings.rx.gen, "dtype": DataType.FP32, "seq": seq} | fields
    return frame_to(settings, payload, **fields)


def parameter_frame(settings: Settings, seq: int, payload: bytes, **fields: int) -> bytes:
    """PARAM of the stream that the NIC receives."""
    fields = {"type": PacketType.PARAM, "gen": settings.rx.gen, "lanes": len(payload), "dtype": 0, "seq": seq} | fields
    return frame_to(settings, payload, **fields)


def merged_frame(settings: Settings, ack: int, credit: int, **fields: int) -> bytes:
    """MH of the stream that the NIC sends."""
    fields = {
        "type": PacketType.MH, "gen": settings.tx.gen, "flags": Flag.ACKV, "ack": ack % M32, "credit": credit % M32,
        "dtype": 0,
    } | fields  # fmt: skip
    return frame_to(settings, **fields)


def parsed(frame: bytes) -> tuple[Catchment, list[int] | bytes]:
    """Our header and the payload, after scapy has found every length and checksum right."""
    packet = Ether(frame)
    assert IP in packet and UDP in packet and Catchment in packet, packet.summary()
    assert internet_checksum(frame[14:34]) == 0
    assert packet[IP].len == len(frame) - 14 and packet[UDP].len == len(frame) - 34 and packet[UDP].chksum == 0
    header = packet[Catchment]
    if Lanes in packet:
        return header, [value % M32 for value in packet[Lanes].values]
    return header, bytes(header.payload)


@dataclass(frozen=True)
class Judge:
    """The reasons to refuse a frame, ordered as in docs/explanation/protocol.md and native/frame_check.cpp."""

    settings: Settings
    sums: bool  # data are FA, else PARAM
    ack: int  # rxAck of the receiver
    credit: int  # rxCons + D
    held: frozenset[int]  # received beyond ack
    next_seq: int  # of the sender

    def reason(self, frame: bytes, damaged: bool = False) -> str:
        if damaged:
            return "FCS"
        padded = frame.ljust(64, b"\0")  # a short frame's rest is noise in hardware: such frames are SHORT or foreign
        if not self._for_us(padded):
            return "DESTINATION"
        if padded[14] != 0x45 or padded[20] & 0x3F or padded[21] or internet_checksum(padded[14:34]) != 0:
            return "IPV4"
        if len(frame) < 64:
            return "SHORT"
        header = Header.unpack(frame, 42)
        return self._envelope(header) or self._content(header, frame) or self._state(header)

    def _for_us(self, frame: bytes) -> bool:
        s = self.settings
        plain = frame[14] == 0x45 and not frame[20] & 0x3F and not frame[21]
        ports = (int.from_bytes(frame[34:36], "big"), int.from_bytes(frame[36:38], "big"))
        return (
            frame[:6] == s.local_mac.to_bytes(6, "big")
            and frame[12:14] == b"\x08\x00"
            and frame[23] == 17
            and frame[26:30] == s.peer_ip.to_bytes(4, "big")
            and frame[30:34] == s.local_ip.to_bytes(4, "big")
            and (not plain or ports == (s.peer_port, s.local_port))
        )

    def _envelope(self, header: Header) -> str:
        if header.version != VERSION:
            return "VERSION"
        if header.flags & ~(_ALL_FLAGS if self.sums and header.type == PacketType.FA else _ALL_FLAGS - _OF_SUMS):
            return "FLAGS"
        return "" if self._is_tx(header) or self._is_rx(header) else "GENERATION"

    def _is_tx(self, header: Header) -> bool:
        return self.settings.tx.enable and header.gen == self.settings.tx.gen != 0

    def _is_rx(self, header: Header) -> bool:
        return self.settings.rx.enable and header.gen == self.settings.rx.gen != 0

    def _content(self, header: Header, frame: bytes) -> str:
        data = header.type == (PacketType.FA if self.sums else PacketType.PARAM) and self._is_rx(header)
        if header.type == PacketType.MH and self._is_tx(header):
            if not header.flags & Flag.ACKV:
                return "FLAGS"
            wanted, dtypes, lanes = 0, range(256), range(1)
        elif not data:
            return "TYPE"
        elif self.sums:
            wanted, dtypes, lanes = VECTOR_BYTES, range(1, 5), range(LANES, LANES + 1)
        else:
            wanted, dtypes, lanes = header.lanes, range(1), range(1, VECTOR_BYTES + 1)
        if header.dtype not in dtypes:
            return "DTYPE"
        if header.lanes not in lanes:
            return "LANES"
        ip_length, udp_length = int.from_bytes(frame[16:18], "big"), int.from_bytes(frame[38:40], "big")
        right = udp_length == wanted + 30 and ip_length == udp_length + 20 and len(frame) == ip_length + 14
        return "" if right else "LENGTH"

    def _state(self, header: Header) -> str:
        merged = header.type == PacketType.MH
        pair = header.flags & Flag.ACKV and self._is_tx(header) and (merged or self.settings.all_reduce)
        unsent = 0 < (header.ack - self.next_seq) % M32 < 1 << 31
        if pair and (unsent or (header.credit - header.ack) % M32 > self.settings.tx.slots):
            return "ACK"
        if merged:
            return "NONE"
        if 0 < (self.ack - header.seq) % M32 < 1 << 31 or header.seq in self.held:
            return "DUPLICATE"
        return "NONE" if (header.seq - self.ack) % M32 < (self.credit - self.ack) % M32 else "WINDOW"
