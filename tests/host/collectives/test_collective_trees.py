"""Collectives over trees of switches: the bits of one switch, and errors that name ranks through the tree."""

from __future__ import annotations

import random
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Interface

import numpy as np
import pytest
from collective_lab import communicators, together
from numpy.typing import NDArray

from catchment.controlplane.topology import Host, Link, PortRef, Switch, Topology, racks
from catchment.host.collectives import Block, CollectiveError, Communicator, Scaling, Whole
from catchment.sim.golden import collectives as golden
from catchment.sim.lab.shm_lab import LUWU
from catchment.sim.lab.tree_lab import TreeLab
from catchment.wire.generated.constants import DataType

SLOTS = 16


def four_racks() -> Topology:
    """16 hosts in 4 racks below a spine."""
    return racks([[f"w{4 * rack + place}" for place in range(4)] for rack in range(4)], program=LUWU)


def three_levels() -> Topology:
    """A top, 2 switches below it, 4 below these, 2 hosts on each."""
    names = ["t", "m0", "m1", "r0", "r1", "r2", "r3"]
    switches = {
        name: Switch(
            name, LUWU, IPv4Address(f"10.7.{number}.254"), f"02:00:00:07:fe:{number:02x}", device_id=number + 1
        )
        for number, name in enumerate(names)
    }
    links = [Link(PortRef(f"m{m}", 3), PortRef("t", m + 1)) for m in range(2)]
    links += [Link(PortRef(f"r{r}", 3), PortRef(f"m{r // 2}", r % 2 + 1)) for r in range(4)]
    hosts = {
        f"w{w}": Host(
            f"w{w}",
            IPv4Interface(f"10.7.{w // 2}.{w % 2 + 1}/16"),
            f"02:00:00:07:{w // 2:02x}:{w % 2 + 1:02x}",
            PortRef(f"r{w // 2}", w % 2 + 1),
        )
        for w in range(8)
    }
    return Topology("levels", switches, hosts, tuple(links))


TREES = {"four racks": four_racks, "three levels": three_levels}


@pytest.fixture(scope="module", params=TREES)
def lab(request: pytest.FixtureRequest) -> Iterator[TreeLab]:
    with TreeLab(TREES[request.param]()) as lab:
        yield lab


def values(rng: random.Random, elements: int) -> NDArray[np.float32]:
    """Values of many magnitudes, so that vectors have different largest elements."""
    numbers = np.random.default_rng(rng.getrandbits(64))
    return (numbers.normal(size=elements) * 2.0 ** numbers.integers(-12, 12, elements)).astype(np.float32)


def ranks_of(lab: TreeLab, rng: random.Random) -> list[str]:
    """All hosts, in any order: neighbours of a rack are not neighbours in the job."""
    names = list(lab.topology.hosts)
    rng.shuffle(names)
    return names


@pytest.mark.sampled(4)
def test_the_bits_of_a_tree_are_those_of_one_switch(lab: TreeLab, rng: random.Random) -> None:
    names = ranks_of(lab, rng)
    job = lab.allreduce(names, slots=SLOTS, name="bits")
    assert len(job.tree) == len(lab.topology.switches)
    sizes = [1, 7, 300, 5000, rng.randrange(5000, 20_000)]
    arrays = [[values(rng, size) for size in sizes] for _ in names]
    for scaling in (Whole(), Block(), Block(packed=True)):

        def body(rank: Communicator, scaling: Scaling = scaling) -> list[NDArray[np.float32]]:
            ours = [array.copy() for array in arrays[rank.rank]]
            for work in [rank.all_reduce(array, scaling=scaling) for array in ours]:
                work.wait(100)
            return ours

        if scaling != Whole():
            job = lab.allreduce(names, slots=SLOTS, packed=scaling.packed, name=f"block-{scaling.packed}")
        with communicators(lab, job) as ranks:
            sums = together(ranks, body)
        for at, size in enumerate(sizes):
            expected = golden.total(
                [array[at] for array in arrays], DataType.FP32, lanes=64, slots=SLOTS, op="sum",
                whole=isinstance(scaling, Whole), packed=scaling.packed,
            )  # fmt: skip
            for outcome in sums:
                assert np.array_equal(outcome[at].view(np.uint32), expected.view(np.uint32)), (scaling, size)


@pytest.mark.sampled(4)
def test_who_calls_something_else_and_who_is_gone_is_named_through_the_tree(lab: TreeLab, rng: random.Random) -> None:
    names = ranks_of(lab, rng)
    odd, gone = rng.sample(range(len(names)), 2)
    with communicators(lab, lab.allreduce(names, slots=SLOTS, name="blame"), timeout=20.0) as ranks:

        def differs(rank: Communicator) -> CollectiveError:
            with pytest.raises(CollectiveError) as caught:
                rank.all_reduce(np.ones(500 if rank.rank == odd else 400, np.float32)).wait(100)
            rank.barrier().wait(100)
            return caught.value

        for rank, error in enumerate(together(ranks, differs)):
            assert error.kind == "mismatch", error
            assert rank == odd or odd in error.peers, (odd, error)

        ranks[gone].close(0.0)

        def misses(rank: Communicator) -> CollectiveError | None:
            if rank.rank == gone:
                return None
            with pytest.raises(CollectiveError) as caught:
                rank.all_reduce(np.ones(400, np.float32), timeout=2.0).wait(100)
            return caught.value

        for rank, missed in enumerate(together(ranks, misses)):
            if missed is not None:
                assert (missed.kind, missed.peers) == ("missing", (gone,)), (rank, gone, missed)
