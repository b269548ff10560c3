"""Several calls in one operation give what the calls give by themselves."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from collective_lab import communicators, together

from catchment.host.collectives import CollectiveError, Communicator, Fixed
from catchment.sim.lab.shm_lab import ShmLab

RANKS = 3


@pytest.fixture(scope="module")
def ranks() -> Iterator[list[Communicator]]:
    names = [f"w{rank}" for rank in range(RANKS)]
    with ShmLab(names) as lab, communicators(lab, lab.allreduce(names, slots=64)) as opened:
        yield opened


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int32])
@pytest.mark.parametrize("operation", ["all_reduce", "reduce_scatter", "all_gather"])
def test_same_as_one_by_one(ranks: list[Communicator], rng: random.Random, operation: str, dtype: torch.dtype) -> None:
    sizes = [rng.choice((0, 1, 2, 7, 300)) * (RANKS if operation == "reduce_scatter" else 1) for _ in range(5)]
    seed = rng.randrange(1 << 31)

    def body(rank: Communicator) -> int:
        noise = torch.Generator().manual_seed(seed + rank.rank)
        arrays = [torch.randint(-9, 9, (size,), generator=noise).to(dtype) for size in sizes]
        longer = {"all_reduce": 1.0, "reduce_scatter": 1 / RANKS, "all_gather": RANKS}[operation]
        one, all_ = ([torch.zeros(round(size * longer), dtype=dtype) for size in sizes] for _ in range(2))
        summed: dict[str, Any] = {} if operation == "all_gather" else {"scaling": Fixed(6)}
        for array, out in zip(arrays, one, strict=True):
            getattr(rank, operation)(array, out, **summed).wait()
        before = rank.stats()["operations"]
        with rank.coalesced(**summed) as several:
            for array, out in zip(arrays, all_, strict=True):
                getattr(several, operation)(array, out)
        several.wait()
        for own, right in zip(all_, one, strict=True):
            assert torch.equal(own, right)
        return rank.stats()["operations"] - before

    assert together(ranks, body) == [1] * RANKS


def test_nothing_coalesced_is_a_barrier(ranks: list[Communicator]) -> None:
    def body(rank: Communicator) -> None:
        with rank.coalesced() as several:
            pass
        several.wait()

    assert together(ranks, body) == [None] * RANKS


def test_calls_that_do_not_go_together_are_refused(ranks: list[Communicator]) -> None:
    few, many = np.zeros(2, np.float32), np.zeros(6, np.float32)
    several = ranks[0].coalesced()
    several.all_gather(few, many)
    with pytest.raises(CollectiveError, match="different operations or types"):
        several.all_reduce(few)
    with pytest.raises(CollectiveError, match="lengths do not fit"):
        several.all_gather(few, few)
    with pytest.raises(CollectiveError, match="has not begun"):
        several.wait()
