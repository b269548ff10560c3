"""Tags of frames, slow and obvious: SipHash-2-4 (Aumasson, Bernstein, 2012) over our header and the payload."""

from __future__ import annotations

from catchment.wire.generated.constants import (
    ETHERNET_BYTES,
    HEADER_BYTES,
    HEADER_OFFSET,
    IPV4_BYTES,
    TAG_BYTES,
    TAGGED_VERSION,
    UDP_BYTES,
    VERSION,
    Header,
    PacketType,
)
from catchment.wire.udp_frame import internet_checksum

_M64 = (1 << 64) - 1
_PADDED_HEADER = 24


def _rotated(word: int, by: int) -> int:
    return (word << by | word >> (64 - by)) & _M64


def _round(v: list[int]) -> None:
    v[0] = (v[0] + v[1]) & _M64
    v[1] = _rotated(v[1], 13) ^ v[0]
    v[0] = _rotated(v[0], 32)
    v[2] = (v[2] + v[3]) & _M64
    v[3] = _rotated(v[3], 16) ^ v[2]
    v[0] = (v[0] + v[3]) & _M64
    v[3] = _rotated(v[3], 21) ^ v[0]
    v[2] = (v[2] + v[1]) & _M64
    v[1] = _rotated(v[1], 17) ^ v[2]
    v[2] = _rotated(v[2], 32)


def siphash(key: bytes, words: list[int]) -> int:
    """SipHash-2-4 of 64-bit words, the last of which has the length in its top byte; `key` has 16 bytes."""
    k0, k1 = halves(key)
    v = [k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D, k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573]
    for word in words:
        v[3] ^= word
        _round(v)
        _round(v)
        v[0] ^= word
    v[2] ^= 0xFF
    for _ in range(4):
        _round(v)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def halves(key: bytes) -> tuple[int, int]:
    """A key of 16 bytes as the two numbers that table `tags` has, first byte lowest."""
    return int.from_bytes(key[:8], "little"), int.from_bytes(key[8:], "little")


def term_number(header: Header) -> int:
    """The number whose term says which key of its stream a frame has: a word without a vector has its own in ack."""
    return header.ack if header.type in (PacketType.HB, PacketType.MH) else header.seq


def tag_of(key: bytes, header: Header, payload: bytes) -> int:
    """The tag of a frame: 64 bits over the header and two zero bytes, then the payload, filled up to whole words.

    Words are in network byte order.  The worker index of an FA counts as 0, for a leaf writes its own.
    """
    if header.type == PacketType.FA:
        header = header._replace(wid=0)
    message = header._replace(version=TAGGED_VERSION).pack().ljust(_PADDED_HEADER, b"\0") + payload
    padded = message + bytes(-len(message) % 8)
    words = [int.from_bytes(padded[at : at + 8], "big") for at in range(0, len(padded), 8)]
    return siphash(key, [*words, len(message) % 256 << 56])


def tagged(key: bytes, header: Header, payload: bytes) -> bytes:
    """Header, payload and tag of a frame, as they follow the UDP header."""
    header = header._replace(version=TAGGED_VERSION)
    return header.pack() + payload + tag_of(key, header, payload).to_bytes(TAG_BYTES, "big")


def opened(key: bytes, data: bytes) -> tuple[Header, bytes] | None:
    """The header and the payload of what `tagged` made; None if it did not."""
    if len(data) < HEADER_BYTES + TAG_BYTES:
        return None
    header, payload = Header.unpack(data), data[HEADER_BYTES:-TAG_BYTES]
    right = tag_of(key, header, payload).to_bytes(TAG_BYTES, "big")
    return (header, payload) if header.version == TAGGED_VERSION and data[-TAG_BYTES:] == right else None


def signed_frame(frame: bytes, key: bytes, **changes: int) -> bytes:
    """A whole Ethernet frame of a job, made again with a tag; `changes`: of our header, before it is signed."""
    header = Header.unpack(frame, HEADER_OFFSET)._replace(**changes)
    return _resized(frame[:HEADER_OFFSET] + tagged(key, header, frame[HEADER_OFFSET + HEADER_BYTES :]))


def opened_frame(frame: bytes, key: bytes) -> bytes | None:
    """A whole Ethernet frame as it was before `signed_frame`; None if its tag is not the right one."""
    read = opened(key, frame[HEADER_OFFSET:])
    if read is None:
        return None
    header, payload = read
    return _resized(frame[:HEADER_OFFSET] + header._replace(version=VERSION).pack() + payload)


def _resized(frame: bytes) -> bytes:
    """A frame whose lengths and header checksum say how long it is; it has no UDP checksum."""
    data, udp = bytearray(frame), ETHERNET_BYTES + IPV4_BYTES
    data[16:18] = (len(data) - ETHERNET_BYTES).to_bytes(2, "big")
    data[24:26] = b"\0\0"
    data[24:26] = internet_checksum(bytes(data[ETHERNET_BYTES:udp])).to_bytes(2, "big")
    data[udp + 4 : udp + UDP_BYTES] = (len(data) - udp).to_bytes(2, "big") + b"\0\0"
    return bytes(data)
