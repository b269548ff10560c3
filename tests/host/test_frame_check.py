"""What an endpoint says of frames before it looks at what they carry."""

from __future__ import annotations

import itertools

import pytest

from catchment.host import _machines
from catchment.wire.generated.constants import VERSION, DataType, Flag, Header, PacketType

GEN, LANES = 7, 8
PACKS = (Flag.PACKED, Flag.MIXED, Flag.PACKED | Flag.MIXED)


def said(kind: PacketType, flags: int, *, packed: bool) -> str:
    """Why a frame is refused by a stream that takes frames of every kind, with or without packed lanes."""
    header = Header(version=VERSION, type=kind, flags=flags, gen=GEN, dtype=DataType.FP32, lanes=LANES)
    payload = bytes(4 * LANES)
    if kind is PacketType.PARAM:
        header, payload = header._replace(dtype=DataType.BYTES), bytes(LANES)
    elif kind is not PacketType.FA:
        header, payload = header._replace(lanes=0), b""
    return str(
        _machines.check(
            header.pack() + payload, gen=GEN, sums=True, parameters=True, merged=True, lanes=LANES, param_bytes=64,
            confirmations=True, packed=packed,
        )
    )  # fmt: skip


@pytest.mark.parametrize("flags", [Flag(0), Flag.LAST, Flag.ACKV | Flag.SAT])
def test_sums_have_packed_lanes_only_where_the_stream_has(flags: Flag) -> None:
    for packed in (False, True):
        assert said(PacketType.FA, flags, packed=packed) == ""
    for packs in PACKS:
        assert said(PacketType.FA, flags | packs, packed=False) == "flags"
        assert said(PacketType.FA, flags | packs, packed=True) == ""


def test_nothing_but_sums_has_packed_lanes() -> None:
    for kind, packs, packed in itertools.product(
        (PacketType.PARAM, PacketType.MH, PacketType.CNF), PACKS, (False, True)
    ):
        assert said(kind, Flag.ACKV, packed=packed) == ""
        assert said(kind, Flag.ACKV | packs, packed=packed) == "flags"
