"""What a set of rails says to bad input: another policy or other rails, a rail that is not there."""

from __future__ import annotations

import logging
import random
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import numpy as np
import pytest
from collective_lab import together
from rail_ranks import GBIT, LANES, NAMES, RANKS, SLOTS, deployed, values
from test_rail_failures import until

from catchment.host.collectives import CollectiveError, RailPolicy, RailSet
from catchment.host.collectives.rail_set import RailHealth
from catchment.sim.golden.collectives import total
from catchment.sim.lab.shm_lab import ShmLab
from catchment.wire.generated.constants import DataType

PATIENCE = 60.0


@pytest.fixture
def labs() -> Iterator[list[ShmLab]]:
    with ExitStack() as exits:
        yield [exits.enter_context(ShmLab(NAMES, lanes=LANES, slots=1024)) for _ in range(2)]


def opened(
    exits: ExitStack, told: dict[str, dict[str, Any]], own: list[dict[str, Any]], **options: Any
) -> list[RailSet]:
    """A rank for each member, with options of its own."""
    return [
        exits.enter_context(RailSet.of_job(told[name], **{"timeout": PATIENCE, **options, **mine}))
        for name, mine in zip(NAMES, own, strict=True)
    ]


@pytest.mark.parametrize(
    "other", [{"policy": RailPolicy.SLICES}, {"rails": ("b", "a")}], ids=["another policy", "another order of rails"]
)
def test_ranks_that_are_set_up_differently_are_named(
    labs: list[ShmLab], other: dict[str, Any], rng: random.Random
) -> None:
    odd = rng.randrange(1, RANKS)
    with ExitStack() as exits:
        told = exits.enter_context(deployed(labs, [GBIT, GBIT]))
        ranks = opened(exits, told, [other if rank == odd else {} for rank in range(RANKS)], policy=RailPolicy.FIXED)
        # The first round says so, before anything is called.
        until(lambda: all(rank.error is not None for rank in ranks), "nobody is told")
        for rank in ranks:
            with pytest.raises(CollectiveError, match=rf"rank {odd}: other rails, rates or another policy") as caught:
                rank.all_reduce(np.ones(10_000, np.float32)).wait()
            assert (caught.value.kind, caught.value.peers) == ("mismatch", (odd,))


def test_a_rail_that_was_never_up_is_done_without_and_said_once(
    labs: list[ShmLab], rng: random.Random, caplog: pytest.LogCaptureFixture
) -> None:
    """Rail b is over UDP, to an address where no switch is."""
    with ExitStack() as exits:
        nobody = exits.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        nobody.bind(("127.0.0.1", 0))  # takes frames, and answers none
        told = exits.enter_context(deployed(labs, [GBIT, GBIT]))
        for member in told.values():
            for part in member["parts"].values():
                if part["rail"] == "b":
                    del part["port"]
                    part |= {"local": ["127.0.0.1", 0], "switch": list(nobody.getsockname())}
        caplog.set_level(logging.WARNING, "catchment.rails")
        ranks = opened(exits, told, [{}] * RANKS, policy=RailPolicy.FIXED)
        for _ in range(3):
            arrays = [values(rng, rank, 100_000) for rank in range(RANKS)]
            expected = total(arrays, DataType.FP32, lanes=LANES, slots=SLOTS)
            assert together(ranks, lambda rank, own=arrays: rank.all_reduce(own[rank.rank]).wait()) == [None] * RANKS
            assert all(np.array_equal(array.view(np.uint32), expected.view(np.uint32)) for array in arrays)

        def said() -> list[str]:
            return [record.getMessage() for record in caplog.records if "rail b" in record.getMessage()]

        until(lambda: len(said()) >= RANKS, "nobody says that b was never up")
        assert sorted(said()) == [
            f"job rails, rank {rank}: rail b was never up; operations go on without it" for rank in range(RANKS)
        ]
        states = [rank.rails()[1] for rank in ranks]
        assert [(state.health, state.joined, state.carrier) for state in states] == [
            (RailHealth.DOWN, False, "a")
        ] * RANKS
    assert len(said()) == RANKS, "once each"
