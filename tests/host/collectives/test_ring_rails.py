"""Rings of TCP connections as rails: the sums of a switch, bit for bit, and the failures of a rail."""

from __future__ import annotations

import contextlib
import random
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from collective_lab import together
from rail_ranks import GBIT, LANES, NAMES, RANKS, SLOTS, values
from test_rail_failures import until

from bench.slow_links import slow_down
from catchment.controlplane.jobs import Allocator, JobRequest
from catchment.controlplane.topology import Topology
from catchment.host.collectives import CollectiveError, RailPolicy, RailSet
from catchment.host.collectives.rail_set import RailHealth
from catchment.sim.golden.collectives import total
from catchment.sim.lab import rail_lab
from catchment.sim.lab.shm_lab import ShmLab
from catchment.wire.generated.constants import DataType

PATIENCE = 60.0
RING = {"lanes": LANES, "rate": GBIT}


class Cable:
    """A TCP relay in front of an address: a link between two ranks that can be cut and mended."""

    def __init__(self, exits: ExitStack, behind: tuple[str, int]) -> None:
        self._behind = behind
        self._ends: list[socket.socket] = []
        self._whole = True
        self._lock = threading.Lock()
        self._listener = exits.enter_context(socket.create_server(("127.0.0.1", 0)))
        self.address = self._listener.getsockname()
        exits.callback(self.cut)
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """End what passes, and let nothing through."""
        with self._lock:
            self._whole = False
            for end in self._ends:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
            self._ends.clear()

    def mend(self) -> None:
        """Let connections through again."""
        with self._lock:
            self._whole = True

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                self._join(near)

    def _join(self, near: socket.socket) -> None:
        try:
            far = socket.create_connection(self._behind)
        except OSError:
            near.close()
            return
        with self._lock:
            whole = self._whole
            if whole:
                self._ends += [near, far]
        if not whole:
            near.close()
            far.close()
            return
        for source, sink in ((near, far), (far, near)):
            threading.Thread(target=_pour, args=(source, sink), daemon=True).start()


def _pour(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            sink.sendall(data)
    for end in (source, sink):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


@contextmanager
def ranks_over(
    labs: dict[str, ShmLab],
    rings: dict[str, dict[str, Any]],
    cables: dict[str, list[Cable]] | None = None,
    *,
    packed: bool = False,
    bits_per_second: float = 0.0,
    **options: Any,
) -> Iterator[list[RailSet]]:
    """All ranks in this process; with `cables`, those that every part of a ring goes through after rank 0.

    Links of rings keep to `bits_per_second`, unless it is 0.
    """
    with ExitStack() as exits:
        rates = [GBIT] * len(labs)
        told = exits.enter_context(rail_lab.deployed(labs, NAMES, rates, slots=SLOTS, rings=rings, packed=packed))
        for ring, used in (cables or {}).items():
            for part in told[NAMES[0]]["parts"].values():
                if part["rail"] == ring:
                    used.append(Cable(exits, tuple(part["next"])))
                    part["next"] = list(used[-1].address)
        for ring in rings if bits_per_second else ():
            slow_down(exits, told, ring, bits_per_second)
        chosen = {"timeout": PATIENCE, "policy": RailPolicy.SLICES, **options}
        yield [exits.enter_context(RailSet.of_job(told[name], **chosen)) for name in NAMES]


def planned_parts(folder: Path, rails: tuple[str, ...]) -> list[dict[str, dict[str, Any]]]:
    """What the control plane says to each rank of a ring b over NICs that have loopback addresses, beside a rail a."""
    net = f"127.{random.SystemRandom().randrange(32, 224)}.{random.SystemRandom().randrange(256)}"
    switches = {"a1": f"{{program: luwu.p4, ip: 10.1.0.254, mac: 02:00:00:01:fe:01, lanes: {LANES}}}",
                "c1": f"{{program: luwu.p4, ip: {net}.254, mac: 02:00:00:02:fe:01}}"}  # fmt: skip
    hosts = {
        name: [
            f"{{ip: 10.1.0.{rank + 1}/24, mac: 02:00:00:01:00:0{rank}, link: a1:{rank + 1}}}",
            f"{{ip: {net}.{rank + 1}/24, mac: 02:00:00:02:00:0{rank}, link: c1:{rank + 1}}}",
        ]
        for rank, name in enumerate(NAMES)
    }
    path = folder / "net.yaml"
    lines = ["switches:", *(f"  {name}: {text}" for name, text in switches.items()), "hosts:"]
    lines += [f"  {name}: [{', '.join(nics)}]" for name, nics in hosts.items()]
    path.write_text("\n".join([*lines, "rails: {a: [a1], c: [c1]}", "rings: {b: {over: c}}"]))
    topology = Topology.load(path)
    group = JobRequest("sums", "allreduce", NAMES, slots=SLOTS, rails=rails).plan(topology, Allocator(topology))
    return [{label: part for label, part in group.describe(name)["parts"].items() if "ring" in part} for name in NAMES]


def test_a_planned_ring_adds_up_beside_a_switch(labs: dict[str, ShmLab], tmp_path: Path, rng: random.Random) -> None:
    with ExitStack() as exits:
        told = exits.enter_context(rail_lab.deployed(labs, NAMES, [GBIT], slots=SLOTS, rings={"b": RING}))
        for name, own in zip(NAMES, planned_parts(tmp_path, ("a", "b")), strict=True):
            there = {label: part for label, part in told[name]["parts"].items() if "ring" in part}
            assert own.keys() == there.keys()
            told[name]["parts"] |= own
        ranks = [
            exits.enter_context(RailSet.of_job(told[name], timeout=PATIENCE, policy=RailPolicy.SLICES))
            for name in NAMES
        ]
        used_at_last(ranks, rng)


def exact(ranks: list[RailSet], rng: random.Random, elements: int) -> None:
    """One all-reduce has the bits of one switch."""
    arrays = [values(rng, rank, elements) for rank in range(RANKS)]
    expected = total(arrays, DataType.FP32, lanes=LANES, slots=SLOTS)
    assert together(ranks, lambda rank: rank.all_reduce(arrays[rank.rank]).wait()) == [None] * RANKS
    assert all(np.array_equal(array.view(np.uint32), expected.view(np.uint32)) for array in arrays)


def used_at_last(ranks: list[RailSet], rng: random.Random) -> None:
    """Operations are exact, and go over all rails, except while a machine that is slow to run one has it in doubt."""
    before = [state.bytes for state in ranks[0].rails()]

    def used() -> bool:
        exact(ranks, rng, rng.randrange(100_000, 200_000))
        return all(state.bytes > bytes_ for state, bytes_ in zip(ranks[0].rails(), before, strict=True))

    until(used, "a rail is not used")


@pytest.fixture
def labs() -> Iterator[dict[str, ShmLab]]:
    with ShmLab(NAMES, lanes=LANES, slots=1024) as lab:
        yield {"a": lab}


def test_two_rings_do_all_that_a_switch_does(rng: random.Random) -> None:
    with ranks_over({}, {"s": RING, "t": RING}) as ranks:
        for elements in (1, 300, rng.randrange(301, 20_000), rng.randrange(100_000, 300_000)):
            exact(ranks, rng, elements)
        words = np.random.default_rng(rng.getrandbits(32)).integers(-(1 << 31), 1 << 31, 5_000, np.int64)
        words = words.astype(np.int32)
        own = [words * np.int32(rank + 1) for rank in range(RANKS)]
        with np.errstate(over="ignore"):
            wrapped = own[0] + own[1] + own[2]
        assert together(ranks, lambda rank: rank.all_reduce(own[rank.rank]).wait()) == [None] * RANKS
        assert all(np.array_equal(array, wrapped) for array in own)
        sent = [words.copy() if rank == 2 else np.zeros_like(words) for rank in range(RANKS)]
        assert together(ranks, lambda rank: rank.broadcast(sent[rank.rank], 2).wait()) == [None] * RANKS
        assert all(np.array_equal(array, words) for array in sent)
        used_at_last(ranks, rng)


def test_a_slow_ring_carries_each_vector_once(rng: random.Random) -> None:
    elements = 100_000
    with ranks_over({}, {"s": RING, "t": RING}, bits_per_second=8e6, policy=RailPolicy.SINGLE) as ranks:
        exact(ranks, rng, elements)
        # A window of vectors is under way for longer than with a switch, and sums overtake each other.
        # What was on its way when the connections were made is sent twice.
        again = [rank.stats()["retransmissions"] for rank in ranks]
        assert max(again) <= elements / LANES / 4, again


@pytest.mark.parametrize("transport", ["tcp", "mptcp"])
def test_a_switch_and_a_ring_carry_parts_of_one_operation(
    labs: dict[str, ShmLab], transport: str, rng: random.Random
) -> None:
    if transport == "mptcp":
        try:
            socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262).close()
        except OSError as error:
            pytest.skip(f"this kernel has no MPTCP: {error}")
    with ranks_over(labs, {"t": {**RING, "transport": transport}}) as ranks:
        used_at_last(ranks, rng)


@pytest.mark.sampled(4)
def test_a_ring_whose_link_is_cut_is_a_rail_that_fails_and_returns(labs: dict[str, ShmLab], rng: random.Random) -> None:
    cables: dict[str, list[Cable]] = {"t": []}
    with ranks_over(labs, {"t": RING}, cables) as ranks:
        exact(ranks, rng, 100_000)
        works = [[rank.all_reduce(np.ones(200_000, np.float32)) for _ in range(3)] for rank in ranks]
        for cable in cables["t"]:
            cable.cut()
        for work in (work for own in works for work in own):
            work.wait(PATIENCE)
        exact(ranks, rng, 100_000)
        until(lambda: all(rank.rails()[1].health is not RailHealth.UP for rank in ranks), "the ring is not down")
        assert all(rank.rails()[1].carrier == "a" for rank in ranks)
        for cable in cables["t"]:
            cable.mend()
        until(lambda: all(rank.rails()[1].health is RailHealth.UP for rank in ranks), "the ring does not return")
        used_at_last(ranks, rng)


def test_a_switch_that_dies_is_replaced_by_the_ring(labs: dict[str, ShmLab], rng: random.Random) -> None:
    with ranks_over(labs, {"t": RING}) as ranks:
        arrays = [[values(rng, rank, 150_000) for _ in range(3)] for rank in range(RANKS)]
        expected = [total([own[at] for own in arrays], DataType.FP32, lanes=LANES, slots=SLOTS) for at in range(3)]
        works = [rank.all_reduce(array) for rank in ranks for array in arrays[rank.rank]]
        labs["a"].kill_switch()
        for work in works:
            work.wait(PATIENCE)
        for own in arrays:
            assert all(np.array_equal(a.view(np.uint32), e.view(np.uint32)) for a, e in zip(own, expected, strict=True))
        # The operations may have ended before the switch did; nobody looks at a rail that nobody uses.
        exact(ranks, rng, 150_000)
        until(lambda: all(rank.rails()[0].carrier == "t" for rank in ranks), "the ring does not carry for the switch")


def test_a_ring_over_something_else_is_refused(labs: dict[str, ShmLab]) -> None:
    with (
        pytest.raises(CollectiveError, match="a ring over udp"),
        ranks_over(labs, {"t": {**RING, "transport": "udp"}}),
    ):
        pass
