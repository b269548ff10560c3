"""`op="max"`, bit for bit, of every pair of an element's kinds: zeros of both signs, NaN, infinities, denormals."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from collective_lab import communicators, together
from numpy.typing import NDArray

from catchment.host.collectives import Communicator
from catchment.sim.golden import collectives as golden
from catchment.sim.lab.shm_lab import ShmLab
from catchment.wire.generated.constants import DataType

NAMES = ("w0", "w1", "w2")
LANES = SLOTS = 64

KINDS = {
    DataType.FP32: (np.uint32, (0, 0x8000_0000, 1, 0x8000_0001, 0x7F80_0000, 0xFF80_0000, 0x7FC0_0000, 0xFFC0_0001)),
    DataType.FP16: (np.uint16, (0, 0x8000, 1, 0x8001, 0x7C00, 0xFC00, 0x7E00, 0xFE01)),
    DataType.BF16: (np.uint16, (0, 0x8000, 1, 0x8001, 0x7F80, 0xFF80, 0x7FC0, 0xFFC1)),
}
"""The words of a type: zeros, the smallest denormals, infinities, NaN, each of both signs."""
STORED = {DataType.FP32: np.float32, DataType.FP16: np.float16, DataType.BF16: np.uint16}


def larger(a: int, b: int, sign: int, infinity: int) -> int:
    """IEEE 754's maximum of two words, by their bits alone; of two NaNs the first."""
    for word in (a, b):
        if word & ~sign > infinity:
            return word
    return max(a, b, key=lambda word: (not word & sign, -(word & ~sign) if word & sign else word))


@pytest.mark.parametrize("dtype", list(KINDS))
def test_every_kind_beside_every_kind(dtype: DataType) -> None:
    stored, kinds = KINDS[dtype]
    sign, infinity = kinds[1], kinds[4]
    rows = list(product(kinds, repeat=len(NAMES)))
    words = [np.array([row[rank] for row in rows], stored) for rank in range(len(NAMES))]
    arrays: list[NDArray[Any]] = [one.view(STORED[dtype]) for one in words]
    wanted = np.array([larger(larger(a, b, sign, infinity), c, sign, infinity) for a, b, c in rows], stored)
    slow = golden.total(arrays, dtype, lanes=LANES, slots=SLOTS, op="max")
    assert np.array_equal(slow.view(stored), wanted)
    with (
        ShmLab(NAMES, lanes=LANES, slots=1024) as lab,
        communicators(lab, lab.allreduce(NAMES, slots=SLOTS, name="largest")) as ranks,
    ):

        def body(rank: Communicator) -> NDArray[Any]:
            out = arrays[rank.rank].copy()
            rank.all_reduce(out, op="max").wait(60)
            return out

        for out in together(ranks, body):
            assert np.array_equal(out.view(stored), wanted)
