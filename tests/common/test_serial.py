"""Sequence numbers that wrap, and the two checksums, against Python's own arithmetic."""

from __future__ import annotations

import random
import struct
import zlib

from foundations import common
from hypothesis import given
from hypothesis import strategies as st

from catchment.wire.udp_frame import internet_checksum

SEQ = st.integers(0, 2**32 - 1)


@given(SEQ, st.integers(-(2**31) + 1, 2**31 - 1))
def test_the_order_of_two_numbers_is_that_of_their_difference(base: int, ahead: int) -> None:
    other = (base + ahead) % 2**32
    assert common.distance(base, other) == ahead % 2**32
    assert common.newer(other, base) == (ahead > 0)
    assert common.newer(base, other) == (ahead < 0)
    assert (common.earlier(base, other), common.later(base, other)) == (
        (base, other) if ahead > 0 else (other, base) if ahead < 0 else (base, base)
    )


@given(SEQ)
def test_the_opposite_number_is_newer_on_neither_side(base: int) -> None:
    other = (base + 2**31) % 2**32
    assert not common.newer(other, base) and not common.newer(base, other)


def test_the_internet_checksum_of_two_pieces_is_that_of_the_whole(rng: random.Random) -> None:
    for size in range(130):
        data = rng.choice((rng.randbytes(size), b"\xff" * size, bytes(size)))
        cut = rng.randrange(0, size + 1, 2)
        native = common.internet_checksum(data[:cut], data[cut:])
        assert struct.pack("=H", native) == struct.pack(">H", internet_checksum(data + bytes(size % 2)))


def test_the_crc_is_that_of_zlib(rng: random.Random) -> None:
    for size in (0, 1, 7, 64, 1500):
        data = rng.randbytes(size)
        assert common.crc32(data) == zlib.crc32(data)
