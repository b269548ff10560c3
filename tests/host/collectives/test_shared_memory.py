"""A result that lies in what a rank reads: its own part of an array is taken, what would be overwritten is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
    rank.all_reduce(memory[3:3], memory[5:5])
    rank.all_gather(memory[3:3], memory[5:5])
