"""Runs inside the simulator: lanes of binary32 beside numpy's."""

from __future__ import annotations

import random
from collections import deque
from typing import Any

import cocotb
import numpy as np
from cocotb.clock import Clock
from cocotb.triggers import ReadOnly, RisingEdge
from cocotb_start import SEED

EDGES = (
    0x0000_0000, 0x8000_0000, 0x0000_0001, 0x8000_0001, 0x007F_FFFF, 0x0080_0000, 0x0080_0001, 0x3F80_0000, 0xBF80_0000,
    0x3F7F_FFFF, 0x7F7F_FFFF, 0xFF7F_FFFF, 0x7F80_0000, 0xFF80_0000, 0x7FC0_0001, 0xFF80_0001, 0x7F00_0000,
)  # fmt: skip
# Just above a tie of two odd halves, and just below: sums that carry, and lose all but one bit of the lesser number.
TIES = [
    (sign | 0x4B7F_FFFD, sign | lesser) for sign in (0, 1 << 31) for lesser in (0x4080_0001, 0x4080_0000, 0x407F_FFFF)
]
STAGES = 4


def operand(rng: random.Random, near: int) -> int:
    """Bits of any kind, of an edge, or of about the size of `near`: sums that cancel and round."""
    kind = rng.randrange(4)
    if kind == 0:
        return rng.getrandbits(32)
    if kind == 1:
        return rng.choice(EDGES)
    exponent = min(max((near >> 23 & 0xFF) + rng.randint(-26, 26) * (kind == 2), 0), 254)
    return rng.getrandbits(1) << 31 | exponent << 23 | rng.getrandbits(23) & rng.choice((0x7F_FFFF, 0x7F_FFFF << 12, 1))


def expected(a: int, b: int, maximum: bool) -> int:
    x, y = (np.array(bits, np.uint32).view(np.float32) for bits in (a, b))
    with np.errstate(all="ignore"):
        result = np.maximum(x, y) if maximum else x + y
    if np.isnan(result):
        return 0x7FC0_0000
    if maximum and result == 0:  # numpy does not order zeros; a maximum of two is -0 only if both are
        return a & b
    return int(np.float32(result).view(np.uint32))


@cocotb.test()
async def lanes_round_as_numpy_does(dut: Any) -> None:
    rng = random.Random(SEED)
    Clock(dut.clk, 4, "ns").start()
    dut.enable.value, dut.maximum.value = 1, 0
    flying: deque[list[int]] = deque()
    seen, fresh = 0, False
    edges = [(a, b) for a in EDGES for b in EDGES]
    pairs = edges + TIES
    while seen < 6000:
        enable, maximum = rng.random() < 0.8, len(pairs) <= len(edges) and rng.random() < 0.2
        lanes = []
        for _ in range(len(dut.a) // 32):
            a = rng.getrandbits(32)
            lanes.append(pairs.pop() if pairs and enable else (a, operand(rng, a)))
        dut.enable.value, dut.maximum.value = enable, maximum
        dut.a.value = sum(a << 32 * i for i, (a, _) in enumerate(lanes))
        dut.b.value = sum(b << 32 * i for i, (_, b) in enumerate(lanes))
        await ReadOnly()
        if fresh and len(flying) == STAGES:
            found = int(dut.y.value)
            for i, want in enumerate(flying.popleft()):
                lane = found >> 32 * i & 0xFFFF_FFFF
                assert lane == want, f"lane {i}: {lane:#x}, not {want:#x}"
                seen += 1
        if enable:
            flying.append([expected(a, b, maximum) for a, b in lanes])
        fresh = enable
        await RisingEdge(dut.clk)
