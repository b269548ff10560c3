"""What a set of rails says to bad input: another policy or other rails, a rail that is not there."""

from __future__ import annotations

import logging
import os
import random
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
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
    """Nothing goes through rail b while its switch's process is stopped."""
    with ExitStack() as exits:
        yield [
            exits.enter_context(ShmLab(NAMES, lanes=LANES, slots=1024, in_callers=inside)) for inside in (None, False)
        ]


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


def elsewhere(told: dict[str, dict[str, Any]], rail: str, where: dict[str, Any]) -> None:
    """Have all parts of a rail, of every member, go there."""
    for member in told.values():
        for part in member["parts"].values():
            if part["rail"] == rail:
                del part["port"]
                part.update(where)


def exact(ranks: list[RailSet], rng: random.Random) -> None:
    """Some all-reduces have the bits of one rail."""
    for _ in range(3):
        arrays = [values(rng, rank, 100_000) for rank in range(RANKS)]
        expected = total(arrays, DataType.FP32, lanes=LANES, slots=SLOTS)
        assert together(ranks, lambda rank, own=arrays: rank.all_reduce(own[rank.rank]).wait()) == [None] * RANKS
        assert all(np.array_equal(array.view(np.uint32), expected.view(np.uint32)) for array in arrays)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("way", ["udp", "shared memory"])
def test_a_rail_that_was_never_up_is_done_without_and_said_once(
    way: str, labs: list[ShmLab], rng: random.Random, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    """Rail b is over UDP to an address where no switch is, or over a shared-memory port that none has made."""
    with ExitStack() as exits:
        nobody = exits.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        nobody.bind(("127.0.0.1", 0))  # takes frames, and answers none
        told = exits.enter_context(deployed(labs, [GBIT, GBIT]))
        if way == "udp":
            elsewhere(told, "b", {"local": ["127.0.0.1", 0], "switch": list(nobody.getsockname())})
        else:
            for name in NAMES:
                elsewhere({name: told[name]}, "b", {"port": f"shm:{tmp_path}/{name}"})
        caplog.set_level(logging.WARNING, "catchment.rails")
        ranks = opened(exits, told, [{}] * RANKS, policy=RailPolicy.FIXED)
        exact(ranks, rng)

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


@pytest.mark.sampled(4)
def test_a_rail_whose_switch_comes_later_is_used_then(labs: list[ShmLab], rng: random.Random, tmp_path: Path) -> None:
    """The sockets of rail b are where its switch's will be, and nothing is there while the ranks open."""
    with ExitStack() as exits:
        told = exits.enter_context(deployed(labs, [GBIT, GBIT]))
        for name in NAMES:
            elsewhere({name: told[name]}, "b", {"port": f"shm:{tmp_path}/{name}"})
        ranks = opened(exits, told, [{}] * RANKS, policy=RailPolicy.FIXED)
        exact(ranks, rng)
        assert [rank.rails()[1].health for rank in ranks] == [RailHealth.DOWN] * RANKS
        for name in NAMES:
            (tmp_path / name).symlink_to(labs[1].path(name))
        until(lambda: all(rank.rails()[1].health is RailHealth.UP for rank in ranks), "rail b does not come up")
        before = ranks[0].rails()[1].bytes
        exact(ranks, rng)
        assert all(rank.rails()[1].joined for rank in ranks)
        assert ranks[0].rails()[1].bytes > before


def test_without_any_switch_opening_fails_and_names_all_rails(tmp_path: Path, labs: list[ShmLab]) -> None:
    with deployed(labs, [GBIT, GBIT]) as told:
        for rail in "ab":
            elsewhere(told, rail, {"port": f"shm:{tmp_path}/{rail}"})
        with pytest.raises(CollectiveError) as caught:
            RailSet.of_job(told[NAMES[0]], timeout=0.2)
    assert caught.value.kind == "system"
    assert f"no switch to attach to at {tmp_path}/a (rail a), {tmp_path}/b (rail b)" in str(caught.value)
    assert caught.value.hint


def without_one(
    labs: list[ShmLab], missing: int, wait: Callable[[list[RailSet]], list[Any]], timeout: float
) -> list[CollectiveError]:
    """What the others' operations raise, called by `wait`, when one rank never comes."""
    with ExitStack() as exits:
        told = exits.enter_context(deployed(labs, [GBIT, GBIT]))
        there = [
            exits.enter_context(RailSet.of_job(told[name], timeout=timeout))
            for rank, name in enumerate(NAMES)
            if rank != missing
        ]
        raised = wait(there)
    for error in raised:
        assert isinstance(error, CollectiveError) and (error.kind, error.peers) == ("missing", (missing,)), raised
    return raised


def call(there: list[RailSet]) -> list[Any]:
    return together(there, lambda rank: rank.all_reduce(np.ones(100_000, np.float32)).wait(PATIENCE))


def test_a_rank_that_never_comes_is_named_on_each_rail(labs: list[ShmLab], rng: random.Random) -> None:
    """The others' operations wait for it no longer than their timeout, though ranks never agree about rails."""
    missing = rng.randrange(RANKS)
    who = f"rank {missing} cannot be heard"
    for error in without_one(labs, missing, call, 2.0):
        assert f"no rail joins all ranks: on rail a {who}; on rail b {who}" in str(error)


def test_ranks_behind_a_switch_that_is_not_run_are_not_missing(labs: list[ShmLab], rng: random.Random) -> None:
    """Rail b brings nobody's words, which makes the ranks that live no more missing than this one."""
    missing, stopped = rng.randrange(RANKS), labs[1].switch.pid

    def while_stopped(there: list[RailSet]) -> list[Any]:
        os.kill(stopped, signal.SIGSTOP)
        try:
            return call(there)
        finally:
            os.kill(stopped, signal.SIGCONT)

    for error in without_one(labs, missing, while_stopped, 2.0):
        said = f"no rail joins all ranks: on rail a rank {missing} cannot be heard; on rail b the switch is silent"
        assert said in str(error)
