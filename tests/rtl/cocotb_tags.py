"""Runs inside the simulator: hashes of messages of every length beside the golden model's."""

from __future__ import annotations

import random
from typing import Any

import cocotb
from cocotb.triggers import ReadOnly, RisingEdge
from cocotb_start import start

from catchment.sim.golden import tags
from catchment.wire.generated.constants import Header, PacketType

QUICK = (0.0, 0.0)
"""No pause of who gives words, none of who takes the hash."""


async def hashed(
    dut: Any, rng: random.Random, key: bytes, words: list[int], pauses: tuple[float, float]
) -> tuple[int, int]:
    """The device's hash, and the clocks from the first word to it."""
    gaps, stall = pauses
    left, clocks, began, offers = list(words), 0, False, False
    while True:
        offers = offers or (bool(left) and rng.random() >= gaps)
        dut.s_valid.value = offers
        dut.s_word.value = left[0] if offers else rng.getrandbits(64)
        dut.s_last.value = len(left) == 1 if offers else rng.getrandbits(1)
        dut.key.value = rng.getrandbits(128) if began else int.from_bytes(key, "little")
        dut.m_ready.value = rng.random() >= stall
        await ReadOnly()
        leaves = bool(dut.m_valid.value) and bool(dut.m_ready.value)
        result = int(dut.m_hash.value) if leaves else 0
        if offers and dut.s_ready.value:
            left.pop(0)
            began, offers = True, False
        await RisingEdge(dut.clk)
        if leaves:
            assert not left
            return result, clocks
        clocks += began


@cocotb.test()
async def hashes_are_the_model_s(dut: Any) -> None:
    rng = await start(dut, s_valid=0, s_last=0, s_word=0, m_ready=0, key=0)
    message = bytes(range(15))  # the paper's own, in its own byte order
    words = [int.from_bytes(message[:8], "little"), int.from_bytes(message[8:], "little") | 15 << 56]
    found, _ = await hashed(dut, rng, bytes(range(16)), words, QUICK)
    assert found == 0xA129CA6149BE45E5
    for number in range(150):
        key = rng.randbytes(16)
        words = [rng.getrandbits(64) for _ in range(rng.choice((1, 2, 3, 4, 5, 36, rng.randrange(1, 60))))]
        quick = number % 3 == 0
        pauses = QUICK if quick else (rng.choice((0.0, 0.5, 0.9)), rng.choice((0.0, 0.5, 0.9)))
        found, clocks = await hashed(dut, rng, key, words, pauses)
        assert found == tags.siphash(key, words), f"message {number} of {len(words)} words"
        if quick:
            assert clocks == 2 * len(words) + 4


@cocotb.test()
async def tags_are_the_model_s(dut: Any) -> None:
    """Whole frames, with the words that a NIC would take off the wire."""
    rng = await start(dut, s_valid=0, s_last=0, s_word=0, m_ready=0, key=0)
    for _ in range(40):
        key = rng.randbytes(16)
        kind = rng.choice((PacketType.PA, PacketType.FA, PacketType.HB))
        payload = b"" if kind == PacketType.HB else rng.randbytes(rng.choice((32, 256)))
        header = Header.unpack(rng.randbytes(22))._replace(type=kind, version=2)
        shown = header._replace(wid=0) if kind == PacketType.FA else header
        data = shown.pack() + b"\0\0" + payload
        words = [int.from_bytes(data[at : at + 8], "big") for at in range(0, len(data), 8)]
        words.append(len(data) % 256 << 56)
        found, _ = await hashed(dut, rng, key, words, QUICK)
        assert found == tags.tag_of(key, header, payload)
