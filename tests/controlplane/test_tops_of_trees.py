"""The top of an all-reduce: the one that a search from every switch finds, without one from every switch."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from ipaddress import IPv4Interface

import pytest

from catchment.checkout import ROOT
from catchment.controlplane.jobs import tree
from catchment.controlplane.topology import Host, Link, PortRef, Topology, racks

PROGRAM = ROOT / "p4src" / "luwu.p4"
PATTERN = racks([["a"]], [], program=PROGRAM).switches["r1"]


def network(switches: Sequence[str], links: Sequence[tuple[str, str]], on: Sequence[str], **more: object) -> Topology:
    """Hosts h0, h1, ... on these switches, which these links join."""
    hosts = {
        f"h{at}": Host(f"h{at}", IPv4Interface(f"10.0.{at // 200}.{at % 200 + 1}/8"), "", PortRef(switch, 1000 + at))
        for at, switch in enumerate(on)
    }
    cables = tuple(Link(PortRef(a, 2 * at), PortRef(b, 2 * at + 1)) for at, (a, b) in enumerate(links))
    return Topology("drawn", {name: replace(PATTERN, name=name) for name in switches}, hosts, cables, **more)  # type: ignore[arg-type]


def searched(topology: Topology, workers: Sequence[Host], load: tree.Load) -> str:
    """The first switch by height, being a worker's, load and name: a search from each, however many there are."""
    leaves = {worker.link.switch for worker in workers}

    def height(start: str) -> int:
        hops, queue = {start: 0}, [start]
        for here in queue:
            for peer in topology.wiring.trunks[here].values():
                rack = topology.rack_of(here)
                may_pass = rack in (None, topology.rack_of(start), topology.rack_of(peer.switch))
                if may_pass and peer.switch not in hops:
                    hops[peer.switch] = hops[here] + 1
                    queue.append(peer.switch)
        return max(hops.get(leaf, len(topology.switches)) for leaf in leaves)

    of_workers = {None, *map(topology.rack_of, leaves)}
    candidates = [name for name in topology.switches if topology.rack_of(name) in of_workers]
    return min(candidates, key=lambda name: (height(name), name not in leaves, load(name), name))


def drawn(rng: random.Random) -> Topology:
    names = [f"s{at}" for at in rng.sample(range(20), rng.randint(1, 9))]
    links = [(a, b) for a in names for b in names if a < b and rng.random() < rng.choice([0.1, 0.3, 0.6])]
    links += rng.choices(links, k=1) if links else []
    in_racks: dict[str, tuple[str, ...]] = {}
    for name in names:
        if rng.random() < 0.6:
            rack = f"k{rng.randrange(4)}"
            in_racks[rack] = (*in_racks.get(rack, ()), name)
    return network(names, links, rng.choices(names, k=6), racks=in_racks if rng.random() < 0.7 else {})


def test_the_top_is_that_of_a_search_from_every_switch(rng: random.Random) -> None:
    for _ in range(600):
        topology = drawn(rng)
        workers = rng.sample(list(topology.hosts.values()), rng.randint(1, 6))
        loads = {name: (rng.randrange(2), rng.randrange(3)) for name in topology.switches}
        assert tree._top(topology, workers, None, loads.__getitem__) == searched(topology, workers, loads.__getitem__)


def three_tiers(number: int) -> Topology:
    """Racks below two switches of their group of four each, and those below four cores."""
    links = [(f"r{rack}", f"g{rack // 4}-{side}") for rack in range(number) for side in (0, 1)]
    middle = [f"g{group}-{side}" for group in range(number // 4) for side in (0, 1)]
    cores = [f"c{at}" for at in range(4)]
    links += [(name, core) for name in middle for core in cores]
    of_hosts = [f"r{rack}" for rack in range(number)]
    return network([*of_hosts, *middle, *cores], links, of_hosts, racks={f"k{name}": (name,) for name in of_hosts})


def two_tiers(number: int) -> Topology:
    names = [f"r{rack}" for rack in range(number)]
    spines = ["s0", "s1", "s2"]
    links = [(name, spine) for name in names for spine in spines]
    return network([*names, *spines], links, names, racks={f"k{name}": (name,) for name in names})


@pytest.mark.parametrize("made", [two_tiers, three_tiers])
def test_four_times_the_racks_take_no_more_searches(made: object, monkeypatch: pytest.MonkeyPatch) -> None:
    searches = 0

    def counted(search: object) -> object:
        def search_and_count(*arguments: object) -> object:
            nonlocal searches
            searches += 1
            return search(*arguments)  # type: ignore[operator]

        return search_and_count

    for name in ("_distances", "_hops"):
        if hasattr(tree, name):
            monkeypatch.setattr(tree, name, counted(getattr(tree, name)))
    counts = []
    for number in (16, 64):
        searches = 0
        topology = made(number)  # type: ignore[operator]
        tree.tree_of(topology, list(topology.hosts.values()), None)
        counts.append(searches)
    assert counts[0] == counts[1] <= 8
