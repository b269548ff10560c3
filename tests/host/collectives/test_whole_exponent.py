"""`Whole`: one exponent for an operation, so that the bits depend on the arrays alone."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from collective_lab import communicators, together
from numpy.typing import NDArray

from catchment.host.collectives import CollectiveError, Communicator, Whole
from catchment.sim.golden import collectives as golden
from catchment.sim.lab.shm_lab import ShmLab
from catchment.wire.generated.constants import DataType

NAMES = ("w0", "w1", "w2")
SHAPES = ((64, 8), (64, 64), (256, 16))
"""Lanes of the program and slots of the stream."""


def values(rng: random.Random, rank: int, elements: int) -> NDArray[np.float32]:
    """Different on each rank, over many magnitudes: vectors of different lengths have different largest elements."""
    numbers = np.random.default_rng([rng.getrandbits(32), rank])
    return (numbers.normal(size=elements) * 2.0 ** numbers.integers(-12, 12, elements)).astype(np.float32)


def sums(lanes: int, slots: int, arrays: list[list[NDArray[np.float32]]], options: dict[str, Any]) -> list[Any]:
    with (
        ShmLab(NAMES, lanes=lanes) as lab,
        communicators(lab, lab.allreduce(NAMES, slots=slots, name="whole")) as ranks,
    ):

        def body(rank: Communicator) -> list[Any]:
            ours = [array.copy() for array in arrays[rank.rank]]
            for work in [rank.all_reduce(array, scaling=Whole(), **options) for array in ours]:
                work.wait(60)
            return ours

        return together(ranks, body)


@pytest.mark.parametrize("op", ["sum", "mean"])
def test_the_bits_do_not_depend_on_lanes_and_slots(op: str, rng: random.Random) -> None:
    sizes = [0, 1, 7, 200, 257, 4096, *(rng.randrange(300, 30_000) for _ in range(4))]
    arrays = [[values(rng, rank, size) for size in sizes] for rank in range(len(NAMES))]
    expected = [
        golden.total([arrays[rank][at] for rank in range(len(NAMES))], DataType.FP32, lanes=1 << 20, slots=1, op=op,
                     whole=True)
        for at in range(len(sizes))
    ]  # fmt: skip
    for lanes, slots in SHAPES:
        for outcome in sums(lanes, slots, arrays, {"op": op}):
            for at, size in enumerate(sizes):
                assert np.array_equal(outcome[at].view(np.uint32), expected[at].view(np.uint32)), (lanes, slots, size)


def test_a_part_of_an_array_has_the_bits_of_the_whole(rng: random.Random) -> None:
    """Each rank gives what its own array needs: the agreed E is the largest, which no rank knows before."""
    size, cut = 5000, rng.randrange(1, 5000)
    arrays = [values(rng, rank, size) for rank in range(len(NAMES))]
    needs = [golden.scale(array, DataType.FP32).exponent for array in arrays]
    whole = golden.total(arrays, DataType.FP32, lanes=64, slots=8, whole=True)
    with (
        ShmLab(NAMES, lanes=64) as lab,
        communicators(lab, lab.allreduce(NAMES, slots=8, name="parts")) as ranks,
    ):

        def body(rank: Communicator) -> NDArray[np.float32]:
            own = arrays[rank.rank].copy()
            for part in (own[:cut], own[cut:]):
                rank.all_reduce(part, scaling=Whole(needs[rank.rank])).wait(60)
            return own

        for outcome in together(ranks, body):
            assert np.array_equal(outcome.view(np.uint32), whole.view(np.uint32))


def test_nan_and_infinities_are_those_of_floats(rng: random.Random) -> None:
    arrays = [values(rng, rank, 3000) for rank in range(len(NAMES))]
    arrays[0][17], arrays[1][2000], arrays[2][2001] = np.nan, np.inf, -np.inf
    expected = golden.total(arrays, DataType.FP32, lanes=64, slots=8, whole=True)
    for outcome in sums(64, 8, [[array] for array in arrays], {}):
        assert np.array_equal(outcome[0].view(np.uint32), expected.view(np.uint32))
        assert np.isnan(outcome[0][17]) and outcome[0][2000] == np.inf and outcome[0][2001] == -np.inf


@pytest.mark.sampled(4)
def test_ranks_that_scale_otherwise_disagree(rng: random.Random) -> None:
    arrays = [values(rng, rank, 600) for rank in range(len(NAMES))]
    with (
        ShmLab(NAMES, lanes=64) as lab,
        communicators(lab, lab.allreduce(NAMES, slots=8, name="mixed")) as ranks,
    ):

        def body(rank: Communicator) -> None:
            scaling = {"scaling": Whole()} if rank.rank == 1 else {}
            rank.all_reduce(arrays[rank.rank], **scaling).wait(60)

        outcomes = together(ranks, body)
    assert all(isinstance(outcome, CollectiveError) and outcome.kind == "mismatch" for outcome in outcomes)
    assert any("one E" in str(outcome) for outcome in outcomes)


def test_an_exponent_that_cannot_be_is_refused() -> None:
    with (
        ShmLab(NAMES[:1], lanes=64) as lab,
        communicators(lab, lab.allreduce(NAMES[:1], slots=8, name="alone")) as (rank,),
        pytest.raises(CollectiveError, match=r"Whole\.least 128"),
    ):
        rank.all_reduce(np.zeros(4, np.float32), scaling=Whole(128))
