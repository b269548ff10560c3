"""all_gather and reduce_scatter whose parts are strided: as the plain ones of arrays that were rearranged by hand."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from collective_lab import communicators, together
from numpy.typing import NDArray

from catchment.host.collectives import Block, CollectiveError, Communicator, Fixed, Strided, Whole
from catchment.sim.lab.shm_lab import ShmLab

RANKS = 3


@pytest.fixture(scope="module")
def ranks() -> Iterator[list[Communicator]]:
    """Three, on ports that lose frames."""
    names = [f"w{rank}" for rank in range(RANKS)]
    faults = tuple(part for port in range(1, RANKS + 1) for part in ("--fault", f"{port}:loss=0.01,seed={port}"))
    with ShmLab(names, lanes=64, extra=faults) as lab, communicators(lab, lab.allreduce(names, slots=64)) as opened:
        yield opened


def drawn(rng: random.Random, itemsize: int, words: int = 400) -> Strided:
    """Places that do not overlap: parts side by side in each stride, or one behind the other."""
    block = rng.randrange(0, words) * 4 // itemsize
    gap = rng.randrange(0, 20) * 4 // itemsize
    blocks = rng.randrange(1, 5)
    if rng.random() < 0.5:
        step = block + gap
        return Strided(step, block, blocks, step * RANKS + gap)
    return Strided((block + gap) * blocks, block, blocks, block + gap)


def taken(places: Strided, array: NDArray[Any], rank: int) -> NDArray[Any]:
    """A rank's part, in one piece."""
    return np.concatenate([array[place] for place in places.places(rank)])


@pytest.mark.parametrize("dtype", [np.float32, np.int16, np.int32, np.uint8])
def test_gather(ranks: list[Communicator], rng: random.Random, dtype: type) -> None:
    for _ in range(8):
        places = drawn(rng, np.dtype(dtype).itemsize)
        base = rng.randrange(0, 5) * 4
        noise = np.random.default_rng(rng.randrange(1 << 32))
        size = base + places.end(RANKS) + 7
        wholes = [noise.integers(0, 100, size).astype(dtype) for _ in ranks]
        in_place = rng.random() < 0.5
        wanted = [whole.copy() for whole in wholes]
        for whole in wanted:
            for rank in range(RANKS):
                for place in places.places(rank):
                    whole[base:][place] = wholes[rank][base:][place]

        def body(
            rank: Communicator,
            wholes: Any = wholes,
            places: Strided = places,
            base: int = base,
            in_place: bool = in_place,
        ) -> None:
            out = wholes[rank.rank][base:]
            rank.all_gather(out if in_place else taken(places, out, rank.rank), out, places=places).wait()

        assert together(ranks, body) == [None] * RANKS
        for whole, right in zip(wholes, wanted, strict=True):
            np.testing.assert_array_equal(whole, right)


@pytest.mark.parametrize("scaling", [Block(), Whole(), Fixed(3)])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32])
def test_scatter(ranks: list[Communicator], rng: random.Random, dtype: type, scaling: Any) -> None:
    for _ in range(5):
        places = drawn(rng, np.dtype(dtype).itemsize, rng.choice((20, 2000)))
        noise = np.random.default_rng(rng.randrange(1 << 32))
        wholes = [(noise.standard_normal(places.end(RANKS) + 3) * 5).astype(dtype) for _ in ranks]
        if rng.random() < 0.3 and dtype is not np.int32 and places.part:
            wholes[1][next(iter(places.places(2))).start] = np.nan
        op, in_place = rng.choice(("sum", "max")), rng.random() < 0.5
        before = [whole.copy() for whole in wholes]

        def body(
            rank: Communicator,
            wholes: Any = wholes,
            places: Strided = places,
            op: str = op,
            in_place: bool = in_place,
        ) -> Any:
            array = wholes[rank.rank]
            plain = np.concatenate([taken(places, array, other) for other in range(RANKS)])
            wanted, out = (np.zeros(places.part, dtype) for _ in range(2))
            rank.reduce_scatter(plain, wanted, op=op, scaling=scaling).wait()
            rank.reduce_scatter(array, array if in_place else out, op=op, scaling=scaling, places=places).wait()
            np.testing.assert_array_equal(taken(places, array, rank.rank) if in_place else out, wanted)

        assert together(ranks, body) == [None] * RANKS
        for rank, (whole, old) in enumerate(zip(wholes, before, strict=True)):
            if in_place:
                for place in places.places(rank):
                    old[place] = whole[place]
            np.testing.assert_array_equal(whole, old, "what is no part of the result has changed")


def test_ranks_that_place_otherwise_are_told(ranks: list[Communicator]) -> None:
    ours, others = Strided(8, 4, 2, 24), Strided(8, 4, 2, 28)

    def body(rank: Communicator) -> None:
        out = np.zeros(64, np.float32)
        rank.all_gather(out, out, places=others if rank.rank == 2 else ours).wait()

    for error in together(ranks, body):
        assert isinstance(error, CollectiveError) and error.kind == "mismatch"
        assert "all_gather(32 bytes, strided" in str(error)
    assert together(ranks, lambda rank: rank.barrier().wait()) == [None] * RANKS


def test_places_beyond_the_array_are_refused(ranks: list[Communicator]) -> None:
    with pytest.raises(CollectiveError, match="it needs 52 elements"):
        ranks[0].reduce_scatter(np.zeros(51, np.float32), np.zeros(12, np.float32), places=Strided(16, 4, 3, 8))
    with pytest.raises(CollectiveError, match="whole words of 4 bytes"):
        ranks[0].all_gather(np.zeros(60, np.float16), np.zeros(60, np.float16), places=Strided(5, 5))
