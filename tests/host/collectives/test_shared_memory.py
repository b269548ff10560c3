"""A result that lies in what a rank reads: its own part of an array is taken, what would be overwritten is refused."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

from catchment.host import Stream
from catchment.host.collectives import CollectiveError, Communicator, Strided

LONG, PART = 600, 200


@pytest.fixture(scope="module")
def rank() -> Iterator[Communicator]:
    """Rank 1 of three, whom no other one hears."""
    ends: dict[str, Any] = {"local": ("127.0.0.1", 0), "switch": ("127.0.0.1", 51836), "port": "udp"}
    with Communicator(Stream(gen=1, workers=3), rank=1, **ends) as alone:
        yield alone


def calls(rank: Communicator, first: int) -> dict[str, Callable[[], object]]:
    """Calls whose result, or source, begins at element `first` of the other array's memory."""
    memory = np.zeros(3 * LONG, np.float32)
    whole, part = memory[PART : PART + LONG], memory[PART + first : 2 * PART + first]
    strided = Strided(step=PART, block=PART)
    return {
        "all_reduce": lambda: rank.all_reduce(whole, memory[PART + first : PART + first + LONG]),
        "reduce": lambda: rank.reduce(whole, 1, memory[PART + first : PART + first + LONG]),
        "reduce_scatter": lambda: rank.reduce_scatter(whole, part),
        "all_gather": lambda: rank.all_gather(part, whole),
        "reduce_scatter with places": lambda: rank.reduce_scatter(whole, part, places=strided),
        "all_gather with places": lambda: rank.all_gather(part, whole, places=strided),
    }


TAKEN = {"all_reduce": {0}, "reduce": {0}}


@pytest.mark.parametrize("name", ["all_reduce", "reduce", "reduce_scatter", "all_gather", "reduce_scatter with places",
                                  "all_gather with places"])  # fmt: skip
@pytest.mark.parametrize("first", [-1, 0, 1, PART - 1, PART, PART + 1, 2 * PART, LONG - 1, LONG, -PART])
def test_only_this_ranks_own_part_is_taken(rank: Communicator, name: str, first: int) -> None:
    apart = {-LONG, LONG} if name in TAKEN else {-PART, LONG}
    call = calls(rank, first)[name]
    if first in apart | TAKEN.get(name, {PART}):
        call()
        return
    with pytest.raises(CollectiveError, match="of the same memory: give the result memory of its own") as caught:
        call()
    assert caught.value.kind == "argument"


def test_all_of_an_array_with_places_is_its_own_result(rank: Communicator) -> None:
    array, places = np.zeros(LONG, np.float32), Strided(step=PART, block=PART // 2, blocks=2, stride=PART // 2)
    rank.reduce_scatter(array, array, places=places)
    rank.all_gather(array, array, places=places)


def test_empty_arrays_share_nothing(rank: Communicator) -> None:
    memory = np.zeros(8, np.float32)
    one, other = memory[3:][:0], memory[5:][:0]  # numpy begins memory[3:3] where memory does
    assert one.ctypes.data < other.ctypes.data
    rank.all_reduce(one, other)
    rank.all_gather(one, other)


def with_places(rank: Communicator, first: int, places: Strided, length: int = LONG) -> list[Callable[[], object]]:
    """Calls whose result, or source, of `places.part` elements begins at element `first` of the array of the parts."""
    memory = np.zeros(3 * LONG, np.float32)
    array, part = memory[LONG : LONG + length], memory[LONG + first :][: places.part]
    return [
        partial(rank.reduce_scatter, array, part, places=places),
        partial(rank.all_gather, part, array, places=places),
    ]


# Of three ranks: one block each with gaps between them; two blocks each, side by side by rank and by block.
GAPS, APART, TOGETHER = Strided(200, 50), Strided(60, 20, 2, 200), Strided(100, 50, 2, 50)


@pytest.mark.parametrize(
    ("places", "first"),
    [(GAPS, 50), (GAPS, 150), (GAPS, 200), (GAPS, 350), (GAPS, 450), (GAPS, -50), (APART, 140), (APART, 340),
     (APART, 160), (TOGETHER, 100), (TOGETHER, 300)],
)  # fmt: skip
def test_what_meets_no_block_is_taken(rank: Communicator, places: Strided, first: int) -> None:
    for call in with_places(rank, first, places):
        call()


@pytest.mark.parametrize(
    ("places", "first"),
    [(GAPS, 0), (GAPS, 49), (GAPS, 151), (GAPS, 199), (GAPS, 201), (GAPS, 400), (GAPS, 449), (GAPS, -49), (APART, 0),
     (APART, 60), (APART, 139), (APART, 161), (APART, 200), (APART, 339), (APART, -1), (TOGETHER, 0), (TOGETHER, 99),
     (TOGETHER, 101), (TOGETHER, 299)],
)  # fmt: skip
def test_a_part_that_meets_a_block_is_refused(rank: Communicator, places: Strided, first: int) -> None:
    for call in with_places(rank, first, places):
        with pytest.raises(CollectiveError, match="of the same memory: give the result memory of its own"):
            call()


def test_the_first_ranks_part_of_several_blocks_is_in_no_piece() -> None:
    """It begins where the array does, as the array itself: its blocks would be taken for those of `places`."""
    ends: dict[str, Any] = {"local": ("127.0.0.1", 0), "switch": ("127.0.0.1", 51836), "port": "udp"}
    with Communicator(Stream(gen=1, workers=3), rank=0, **ends) as first:
        for call in with_places(first, 0, APART):
            with pytest.raises(CollectiveError, match="of the same memory"):
                call()
        for call in with_places(first, 0, TOGETHER):
            call()


@pytest.mark.parametrize("places", [Strided(200, 0), Strided(200, 0, 2), Strided(200, 0, 2, 100)])
def test_empty_parts_share_nothing(rank: Communicator, places: Strided) -> None:
    for call in with_places(rank, 7, places):
        call()


def test_all_blocks_are_compared(rank: Communicator, rng: random.Random) -> None:
    """A part is refused where, and only where, it has elements of blocks, as one by one they are compared."""
    seen = set()
    for _ in range(200):
        block, blocks = rng.randint(1, 5), rng.randint(1, 4)
        stride = rng.randint(block, 11)
        places = Strided(rng.choice([block, stride * blocks]) + rng.randint(0, 3), block, blocks, stride)
        first = rng.randint(-places.part - 2, places.end(3) + 2)
        of_blocks = {at for one in range(3) for piece in places.places(one) for at in range(piece.start, piece.stop)}
        own = [at for piece in places.places(1) for at in range(piece.start, piece.stop)]
        mine = list(range(first, first + places.part))
        refused = bool(of_blocks.intersection(mine)) and mine != own
        for call in with_places(rank, first, places, places.end(3)):
            if not refused:
                call()
                continue
            with pytest.raises(CollectiveError, match="of the same memory"):
                call()
        seen.add(refused)
    assert seen == {False, True}
