"""v1model's hash algorithms, from the standard library or written out."""

from __future__ import annotations

import zlib
from collections.abc import Callable


def crc32(data: bytes) -> int:
    """CRC-32 of IEEE 802.3."""
    return zlib.crc32(data)


def crc16(data: bytes) -> int:
    """CRC-16/ARC: polynomial 0x8005, reflected, beginning with 0. Bit by bit."""
    rest = 0
    for byte in data:
        rest ^= byte
        for _ in range(8):
            rest = rest >> 1 ^ (0xA001 if rest & 1 else 0)
    return rest


def _words(data: bytes) -> list[int]:
    padded = data + bytes(len(data) % 2)
    return [int.from_bytes(padded[i : i + 2], "big") for i in range(0, len(padded), 2)]


def csum16(data: bytes) -> int:
    """The Internet checksum (RFC 1071): the complement of the one's complement sum of the 16-bit words."""
    total = sum(_words(data))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def xor16(data: bytes) -> int:
    """All 16-bit words, exclusive or."""
    total = 0
    for word in _words(data):
        total ^= word
    return total


def identity(data: bytes) -> int:
    """The first eight bytes as a number."""
    return int.from_bytes(data[:8], "big")


ALGORITHMS: dict[str, Callable[[bytes], int]] = {
    "crc32": crc32,
    "crc32_custom": crc32,
    "crc16": crc16,
    "crc16_custom": crc16,
    "csum16": csum16,
    "xor16": xor16,
    "identity": identity,
}


def in_range(value: int, base: int, most: int) -> int:
    """v1model's `hash()`: base + value mod max; max 0 leaves only the base."""
    return base + value % most if most else base
