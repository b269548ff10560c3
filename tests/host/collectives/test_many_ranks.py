"""More ranks than a word of 32 bits has: sums, and who is named, up to the last."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import pytest
from collective_lab import communicators, together

from catchment.host.collectives import CollectiveError, Communicator
from catchment.sim.golden import collectives as golden
from catchment.sim.lab.shm_lab import ShmLab
from catchment.wire.generated.constants import MAX_WORKERS, DataType

NAMES = tuple(f"w{rank}" for rank in range(MAX_WORKERS))
LANES, SLOTS = 256, 8


@pytest.fixture(scope="module")
def ranks() -> Iterator[list[Communicator]]:
    with (
        ShmLab(NAMES, lanes=LANES, options="cells=32") as lab,
        communicators(lab, lab.allreduce(NAMES, slots=SLOTS), timeout=300.0) as ranks,
    ):
        yield ranks


@pytest.mark.slow
def test_as_many_ranks_as_a_switch_takes_add_up(ranks: list[Communicator], rng: random.Random) -> None:
    numbers = np.random.default_rng(rng.getrandbits(64))
    floats = [numbers.normal(size=700).astype(np.float32) for _ in NAMES]
    integers = [numbers.integers(-1 << 24, 1 << 24, 300, dtype=np.int32) for _ in NAMES]

    def body(rank: Communicator) -> tuple[object, object]:
        own = floats[rank.rank].copy(), integers[rank.rank].copy()
        for work in [rank.all_reduce(array) for array in own]:
            work.wait(200)
        return own

    expected = (
        golden.total(floats, DataType.FP32, lanes=LANES, slots=SLOTS),
        np.sum(integers, axis=0, dtype=np.int32),
    )
    for outcome in together(ranks, body):
        for got, wanted in zip(outcome, expected, strict=True):
            assert np.array_equal(got.view(np.uint32), wanted.view(np.uint32))


@pytest.mark.slow
def test_ranks_beyond_the_first_32_are_named(ranks: list[Communicator], rng: random.Random) -> None:
    odd = sorted(rng.sample(range(32, MAX_WORKERS), 2))

    def body(rank: Communicator) -> CollectiveError:
        with pytest.raises(CollectiveError) as caught:
            rank.all_reduce(np.ones(50 if rank.rank in odd else 40, np.int32)).wait(200)
        return caught.value

    for rank, error in enumerate(together(ranks, body)):
        assert error.kind == "mismatch"
        if rank not in odd:
            assert list(error.peers) == odd
            assert f"rank {odd[0]} calls" in error.message
