"""Data that left on a wrong guess of E: their sums may come after the operation has ended, and then count for none."""

from __future__ import annotations

import random

import numpy as np
import pytest
from collective_lab import communicators, together

from catchment.host.collectives import Communicator
from catchment.sim.golden import collectives as golden
from catchment.sim.lab.shm_lab import ShmLab
from catchment.wire.generated.constants import DataType

NAMES = ("w0", "w1")
LANES, SLOTS = 256, 8
SIZES = range(LANES + 4, 3 * LANES)  # beyond what is gathered and what leaves with the signatures
ROUNDS, TOGETHER = 80, 3


@pytest.mark.sampled(4)
def test_late_sums_of_wrong_guesses_go_into_no_other_operation(rng: random.Random) -> None:
    """Magnitudes change from call to call, so every guess is wrong; lines lose, so sums come late, in any order.

    Nothing begins behind an operation until it has ended, so it may end before all sums of its guess have come; those
    that begin at once then take its memory, and wait for these sums.
    """
    numbers = np.random.default_rng(rng.getrandbits(64))
    calls = [
        [(numbers.normal(size=size) * 2.0 ** rng.randrange(-20, 20)).astype(np.float32) for _ in NAMES]
        for size in rng.choices(SIZES, k=ROUNDS * (1 + TOGETHER))
    ]
    faults = [f"{port}:loss=0.1,reorder=0.1,seed={rng.randrange(1 << 16)}" for port in (1, 2)]
    with (
        ShmLab(NAMES, lanes=LANES, extra=[part for one in faults for part in ("--fault", one)]) as lab,
        communicators(lab, lab.allreduce(NAMES, slots=SLOTS, name="guesses")) as ranks,
    ):

        def body(rank: Communicator) -> None:
            ours = [call[rank.rank].copy() for call in calls]
            for first in range(0, len(ours), 1 + TOGETHER):
                rank.all_reduce(ours[first]).wait(40)
                works = [rank.all_reduce(array) for array in ours[first + 1 : first + 1 + TOGETHER]]
                for work in works:
                    work.wait(40)
            for array, call in zip(ours, calls, strict=True):
                expected = golden.total(call, DataType.FP32, lanes=LANES, slots=SLOTS)
                assert np.array_equal(array.view(np.uint32), expected.view(np.uint32))

        assert together(ranks, body) == [None, None]
