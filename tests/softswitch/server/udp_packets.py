"""UDP packets, their notes (struct virtio_net_hdr) and what a kernel makes of a merged one: a slow model.

It builds frames itself: those of a kernel have tags, options, IPv6 and UDP checksums, which frames around ours
(`catchment.wire.udp_frame`) never have.
"""

from __future__ import annotations

import random
import struct
from dataclasses import dataclass

from catchment.wire.udp_frame import internet_checksum

NEEDS_CHECKSUM, UDP_SEGMENTS = 1, 5
MAC = bytes.fromhex("020000000001020000000002")
DONT_FRAGMENT = 0x4000
LONGEST = 9000 + 22


def note(*, flags: int = 0, kind: int = 0, header: int = 0, segment: int = 0, start: int = 0, offset: int = 0) -> bytes:
    return struct.pack("=BBHHHH", flags, kind, header, segment, start, offset)


def ones_sum(data: bytes) -> int:
    return internet_checksum(data + bytes(len(data) % 2)) ^ 0xFFFF


def checksum(data: bytes) -> int:
    return ones_sum(data) ^ 0xFFFF or 0xFFFF


@dataclass(frozen=True)
class Flow:
    """Headers of a flow's packets."""

    v6: bool = False
    tags: bytes = b""
    options: bytes = b""
    identification: int = 7
    fragment: int = DONT_FRAGMENT
    ports: tuple[int, int] = (51836, 51836)
    ttl: int = 64

    @property
    def network(self) -> int:
        return len(MAC) + len(self.tags) + 2

    @property
    def transport(self) -> int:
        return self.network + (40 if self.v6 else 20 + len(self.options))

    @property
    def payload(self) -> int:
        return self.transport + 8

    def frame(self, payload: bytes, index: int = 0, udp_checksum: str = "right") -> bytes:
        """The packet with this payload, `index` after the first; its checksum is right, none, or left to the device."""
        length = 8 + len(payload)
        if self.v6:
            pair = bytes.fromhex("fd000000000000000000000000000001fd000000000000000000000000000002")
            ip = struct.pack(">IHBB", 0x60000000, length, 17, self.ttl) + pair
        else:
            pair = bytes([10, 0, 0, 1, 10, 0, 0, 2])
            size = 20 + len(self.options)
            fields = (0x40 | size // 4, 0, size + length, (self.identification + index) & 0xFFFF)
            head = struct.pack(">BBHHHBB", *fields, self.fragment, self.ttl, 17)
            right = ones_sum(head + pair + self.options) ^ 0xFFFF
            ip = head + struct.pack(">H", right) + pair + self.options
        udp = struct.pack(">HHHH", *self.ports, length, 0)
        pseudo = pair + struct.pack(">HH", 17, length)
        value = {"right": checksum(pseudo + udp + payload), "none": 0, "left": ones_sum(pseudo)}[udp_checksum]
        kind = b"\x86\xdd" if self.v6 else b"\x08\x00"
        return MAC + self.tags + kind + ip + udp[:6] + struct.pack(">H", value) + payload

    def merged(self, payload: bytes, segment: int) -> tuple[bytes, bytes]:
        """The note and the packet that segments of a size come as."""
        said = note(
            flags=NEEDS_CHECKSUM,
            kind=UDP_SEGMENTS,
            header=self.payload,
            segment=segment,
            start=self.transport,
            offset=6,
        )
        return said, self.frame(payload, udp_checksum="left")

    def segments(self, payload: bytes, segment: int) -> list[bytes]:
        """The frames that would have been on the wire."""
        parts = [payload[at : at + segment] for at in range(0, len(payload), segment)]
        return [self.frame(part, index) for index, part in enumerate(parts)]


def any_flow(rng: random.Random) -> Flow:
    """One that a kernel could have sent."""
    v6 = rng.random() < 0.3
    return Flow(
        v6=v6,
        tags=rng.choice([b"", b"", bytes.fromhex("8100a123"), bytes.fromhex("88a8000181000002")]),
        options=b"" if v6 else bytes([1]) * (4 * rng.choice([0, 0, 0, 1, 10])),
        identification=rng.choice([0, 1, 65530, rng.randrange(65536)]),
        fragment=rng.choice([0, DONT_FRAGMENT]),
        ports=(rng.randrange(1, 65536), rng.randrange(1, 65536)),
        ttl=rng.randrange(1, 256),
    )


def any_payload(rng: random.Random, *, segments: int = 64, longest: int = 9000 - 60 - 8) -> tuple[bytes, int]:
    """Payload and the size of its segments."""
    segment = rng.choice([1, 2, rng.randrange(1, 100), rng.randrange(1, longest + 1), longest])
    most = min(segments * segment, 65535 - 68)
    return rng.randbytes(rng.choice([1, most, rng.randrange(1, most + 1)])), segment
