"""What ranks send besides vectors on links so slow that a window takes far longer than the first timeout."""

from __future__ import annotations

import random

import numpy as np
import pytest
from collective_lab import communicators, together

from catchment.host.collectives import Communicator
from catchment.sim.lab.shm_lab import ShmLab

LANES, SLOTS, VECTORS = 256, 32, 224
RATE = "rate=800kbit,queue=2m"  # a vector takes 11 ms, a window 0.3 s


@pytest.mark.sampled(4)
def test_the_first_windows_leave_the_link_to_vectors(rng: random.Random) -> None:
    """No answer is a sample until then, for each is to a vector that was repeated, and heartbeats go by round trips."""
    names = ["w0", "w1"]
    faults = [part for port in (1, 2) for part in ("--fault", f"{port}:{RATE},seed={port}")]
    numbers = np.random.default_rng(rng.getrandbits(64))
    arrays = [numbers.integers(-1 << 24, 1 << 24, VECTORS * LANES, dtype=np.int32) for _ in names]

    def body(rank: Communicator) -> dict[str, int]:
        rank.all_reduce(arrays[rank.rank]).wait()
        return rank.stats()

    with ShmLab(names, lanes=LANES, extra=faults) as lab:
        wanted = arrays[0] + arrays[1]
        with communicators(lab, lab.allreduce(names, slots=SLOTS)) as ranks:
            said = together(ranks, body)
    for array, stats in zip(arrays, said, strict=True):
        assert np.array_equal(array, wanted)
        assert stats["heartbeats_sent"] < VECTORS, stats
