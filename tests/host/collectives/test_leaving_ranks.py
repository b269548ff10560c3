"""A rank that closes its communicator: who waits for it is told at once, and nothing that it took part in is lost."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from collective_lab import PATIENCE, communicators, together

from catchment.host.collectives import CollectiveError, Communicator
from catchment.sim.golden.collectives import total
from catchment.sim.lab.shm_lab import ShmLab
from catchment.softswitch.admin import SwitchAdmin
from catchment.wire.generated.constants import DataType

NAMES = ("w0", "w1", "w2")
LANES, SLOTS = 64, 16
FOREVER = 3600.0
"""A timeout that no test waits for."""


@pytest.fixture(scope="module")
def admin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("leaving") / "s"


@pytest.fixture(scope="module")
def lab(admin: Path) -> Iterator[ShmLab]:
    with ShmLab(NAMES, lanes=LANES, slots=1024, extra=("--admin", str(admin))) as lab:
        yield lab


def summed(rank: Communicator) -> float:
    array = np.ones(1000, np.float32)
    rank.all_reduce(array).wait(PATIENCE)
    return float(array[-1])


@pytest.mark.parametrize("first", ["waits", "leaves"])
def test_who_waits_for_a_rank_that_leaves_is_told_which(lab: ShmLab, first: str, rng: random.Random) -> None:
    """Whether it leaves while the others wait or before they call."""
    goes = rng.randrange(3)
    with communicators(lab, lab.allreduce(NAMES, slots=SLOTS, name=f"told {first}"), timeout=FOREVER) as ranks:
        assert together(ranks, summed) == [3.0] * 3
        stay = [rank for rank in ranks if rank.rank != goes]
        works = [rank.barrier() for rank in stay] if first == "waits" else []
        ranks[goes].close()
        works = works or [rank.barrier() for rank in stay]
        for rank, work in zip(stay, works, strict=True):
            with pytest.raises(CollectiveError, match=f"rank {goes} has left") as caught:
                work.wait(PATIENCE)
            assert (caught.value.kind, caught.value.peers, caught.value.fatal) == ("missing", (goes,), True)
            assert rank.error is not None
            assert rank.error.kind == "missing"


def test_a_rank_that_an_error_ends_leaves_as_one_that_closes(lab: ShmLab, rng: random.Random) -> None:
    goes = rng.randrange(3)
    with communicators(lab, lab.allreduce(NAMES, slots=SLOTS, name="error"), timeout=FOREVER) as ranks:
        assert together(ranks, summed) == [3.0] * 3
        stay = [rank for rank in ranks if rank.rank != goes]
        with pytest.raises(KeyboardInterrupt), ranks[goes]:
            raise KeyboardInterrupt
        for work in [rank.barrier() for rank in stay]:
            with pytest.raises(CollectiveError, match=f"rank {goes} has left"):
                work.wait(PATIENCE / 10)


def test_who_needs_nothing_of_a_rank_that_leaves_has_no_error(lab: ShmLab) -> None:
    with communicators(lab, lab.allreduce(NAMES, slots=SLOTS, name="idle"), timeout=FOREVER) as ranks:
        assert together(ranks, summed) == [3.0] * 3
        ranks[0].close()
        ranks[1].close()
        assert ranks[2].error is None


def test_ranks_that_leave_as_soon_as_they_are_done_take_no_sum_with_them(
    lab: ShmLab, admin: Path, rng: random.Random
) -> None:
    """Each at another time, over links that lose and repeat frames, the farewells among them."""
    with ExitStack() as exits:
        switch = exits.enter_context(SwitchAdmin(admin))
        for port in range(1, 4):
            switch.set_faults(port, "loss=0.05,dup=0.05")
            exits.callback(switch.set_faults, port, "off")
        for at in range(8):
            sizes = [rng.randrange(1, 20_000) for _ in range(rng.randrange(1, 4))]
            draws = [np.random.default_rng([rng.getrandbits(32), rank]) for rank in range(3)]
            arrays = [[draw.normal(size=size).astype(np.float32) for size in sizes] for draw in draws]
            expected = [
                total([own[index] for own in arrays], DataType.FP32, lanes=LANES, slots=SLOTS)
                for index in range(len(sizes))
            ]

            def body(rank: Communicator, arrays: Any = arrays) -> None:
                for work in [rank.all_reduce(array) for array in arrays[rank.rank]]:
                    work.wait(PATIENCE)
                rank.close()

            with communicators(lab, lab.allreduce(NAMES, slots=SLOTS, name=f"soon{at}"), timeout=FOREVER) as ranks:
                assert together(ranks, body) == [None] * 3
            for rank, index in itertools.product(range(3), range(len(sizes))):
                assert np.array_equal(arrays[rank][index].view(np.uint32), expected[index].view(np.uint32))
