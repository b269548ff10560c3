"""Folded mode gives the frame mode's times, to the picosecond, and refuses where hosts do not behave alike."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from catchment.sim.performance.cluster import Cluster, Failure, Node, Straggle, rack_spine
from catchment.sim.performance.errors import PerformanceError
from catchment.sim.performance.folding import fold
from catchment.sim.performance.models import LinkModel, SwitchModel
from catchment.sim.performance.rounds import Rounds
from catchment.sim.performance.run import simulate, simulate_folded
from catchment.sim.world import Faults


def random_cluster(rng: random.Random) -> Cluster:
    racks = rng.choice([1, 2, 3, 5])
    hosts = [[f"r{k}h{at}" for at in range(rng.randrange(1, 7))] for k in range(racks)]
    topology = rack_spine(racks=hosts, spines=rng.randrange(1, 3) if racks > 1 else 0, above=["opt"])
    links = LinkModel(rng.choice([20, 80]), rng.choice([20, 80, 160]), rng.randrange(10_000, 900_000))
    switch = SwitchModel(rng.randrange(100_000, 900_000), slots=1 << rng.randrange(2, 11), lanes=rng.choice([64, 256]))
    return Cluster(topology, links, switch)


@pytest.mark.parametrize("kind", ["allreduce", "luwu"])
def test_times_are_the_frame_modes(kind: str, rng: random.Random) -> None:
    compared = 0
    while compared < 20:
        cluster = random_cluster(rng)
        rounds = Rounds(rng.randrange(1, 200_000), count=3, compute=rng.choice([0, 3_000_000]))
        full = simulate(kind, cluster, rounds)
        assert full.record is not None
        if full.record.resent:
            # A line between switches was so slow that timers ran out, each host's after a delay of its own.
            with pytest.raises(PerformanceError, match="sent again"):
                simulate_folded(kind, cluster, rounds)
            continue
        compared += 1
        assert simulate_folded(kind, cluster, rounds).rounds == full.rounds, (cluster, rounds)


def of_kinds(cluster: Cluster, rng: random.Random) -> Cluster:
    """The cluster with hosts and links of two kinds each: rates, GPUs, fixed stragglers."""
    topology, slow_gpus = cluster.topology, replace(cluster.node, flops=cluster.node.flops / 2)
    rates, ups = rng.choice([(0, 0), (0, 50 * 10**9)]), rng.choice([(0, 0), (0, 400 * 10**9)])
    hosts = {name: replace(host, rate=rng.choice(rates)) for name, host in topology.hosts.items()}
    links = tuple(replace(link, rate=rng.choice(ups)) for link in topology.links)
    workers = [name for name in hosts if not name.startswith("opt")]
    slow = {name: 1.5 for name in workers if rng.random() < rng.choice([0, 0.3])}
    nodes = {name: slow_gpus for name in workers if rng.random() < rng.choice([0, 0.5])}
    node = replace(cluster.node, straggle=Straggle(slow=slow))
    return replace(cluster, topology=replace(topology, hosts=hosts, links=links), node=node, nodes=nodes)


@pytest.mark.parametrize("kind", ["allreduce", "luwu"])
def test_hosts_of_several_kinds_each_have_some_that_stand_for_them(kind: str, rng: random.Random) -> None:
    compared = fewer = 0
    while compared < 20:
        cluster = of_kinds(random_cluster(rng), rng)
        rounds = Rounds(rng.randrange(1, 200_000), count=2, compute=rng.choice([0, 3_000_000]))
        full = simulate(kind, cluster, rounds)
        if full.record is None or full.record.resent:
            continue
        compared += 1
        folded = simulate_folded(kind, cluster, rounds)
        assert folded.rounds == full.rounds, (cluster, rounds)
        shares = [(each.exposed, each.utilisation, each.straggler_cost) for each in (folded, full)]
        assert shares[0] == pytest.approx(shares[1]), (cluster, rounds)
        fewer += len(fold(kind, cluster).hosts) < len(cluster.hosts)
    assert fewer


def test_a_host_or_a_rack_that_differs_in_one_thing_stands_for_itself() -> None:
    alone = Cluster(rack_spine(racks=[["a", "b", "c", "d", "e"]], spines=0))
    assert sorted(fold("allreduce", alone).hosts) == ["a", "e"]
    hosts = alone.topology.hosts
    for differs in (
        replace(alone, node=replace(alone.node, straggle=Straggle(slow={"c": 1.5}))),
        replace(alone, nodes={"c": replace(alone.node, flops=1e12)}),
        replace(alone, topology=replace(alone.topology, hosts=hosts | {"c": replace(hosts["c"], rate=5 * 10**9)})),
    ):
        assert sorted(fold("allreduce", differs).hosts) == ["a", "c", "e"], differs
    racks = Cluster(rack_spine(racks=[[f"r{k}a", f"r{k}b"] for k in range(5)], spines=1))
    assert sorted(fold("allreduce", racks).hosts) == ["r0a", "r0b", "r4a", "r4b"]
    links = [replace(link, rate=5 * 10**9 if at == 2 else link.rate) for at, link in enumerate(racks.topology.links)]
    slow = fold("allreduce", replace(racks, topology=replace(racks.topology, links=tuple(links))))
    assert sorted(slow.hosts) == ["r0a", "r0b", "r2a", "r2b", "r4a", "r4b"]


def test_two_kinds_of_thousands_need_a_few_hosts() -> None:
    racks = [[f"r{k}h{at}" for at in range(32)] for k in range(64)]
    cluster = Cluster(rack_spine(racks=racks, spines=1))
    slow = replace(cluster.node, flops=1e12)
    mixed = replace(cluster, nodes={name: slow for name in cluster.hosts if name.endswith(("h3", "h7", "h9"))})
    assert len(fold("allreduce", mixed).hosts) == 8
    apart = replace(cluster, nodes={name: slow for name in cluster.hosts if name < "r3"})
    assert len(fold("allreduce", apart).hosts) == 8


def test_hosts_that_do_not_behave_alike_are_refused() -> None:
    topology = rack_spine(racks=[["a", "b", "c"]], spines=0)
    plain = Cluster(topology)
    assert len(fold("allreduce", plain).hosts) == 2
    for kind, cluster, says in (
        ("ring", plain, "no 'ring'"),
        ("allreduce", Cluster(topology, LinkModel(faults=Faults(loss=0.1))), "do not behave alike"),
        ("allreduce", Cluster(topology, failures=(Failure("host", "a", 1),)), "do not behave alike"),
        ("allreduce", Cluster(topology, node=Node(straggle=Straggle(0.1))), "whose times are drawn"),
        ("allreduce", Cluster(topology, switch=SwitchModel(max_workers=2)), "has 3 members"),
    ):
        with pytest.raises(PerformanceError, match=says):
            fold(kind, cluster)
