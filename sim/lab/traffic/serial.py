"""Sequence numbers on the 32-bit circle."""

MODULUS = 1 << 32


def newer(a: int, b: int) -> bool:
    """`a` comes after `b`."""
    return 0 < (a - b) % MODULUS < MODULUS // 2


def later(a: int, b: int) -> int:
    """The later of the two."""
    return a if newer(a, b) else b
