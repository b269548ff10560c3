"""Bob Jenkins's one-at-a-time hash, by which P4Info ids are made of names."""

from __future__ import annotations

_MASK = 0xFFFFFFFF


def one_at_a_time(data: bytes) -> int:
    """The 32-bit hash of `data`."""
    value = 0
    for byte in data:
        value = (value + byte) & _MASK
        value = (value + (value << 10)) & _MASK
        value ^= value >> 6
    value = (value + (value << 3)) & _MASK
    value ^= value >> 11
    return (value + (value << 15)) & _MASK
