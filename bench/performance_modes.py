"""Holds the simulator's other modes to its frame mode: train mode exactly, flow mode within 5 % from 1 MiB."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import cycle, islice

from bench.performance_rows import Row
from catchment.controlplane.topology import Topology
from catchment.sim.performance.cluster import Cluster, Node, Straggle, rack_spine
from catchment.sim.performance.collectives import COLLECTIVES
from catchment.sim.performance.flow import FLOWS
from catchment.sim.performance.models import LinkModel
from catchment.sim.performance.rails import NEZHA
from catchment.sim.performance.rounds import Rounds
from catchment.sim.performance.run import Outcome, estimate, simulate, simulate_in_trains

DRAWS = 24
_FLOW_BOUND = 0.05

Run = Callable[[str, Cluster, Rounds], Outcome]


def random_cluster(rng: random.Random, *, rates: bool) -> Cluster:
    """One to three racks of two to five hosts and an optimizer node; `rates`: on links of several."""
    racks = [[f"r{k}h{at}" for at in range(rng.randrange(2, 6))] for k in range(rng.randrange(1, 4))]
    topology = rack_spine(racks=racks, spines=len(racks) > 1, above=["opt"])
    return Cluster(_several_rates(topology, rng) if rates else topology, LinkModel(up_byte=rng.choice([20, 80, 160])))


def _several_rates(topology: Topology, rng: random.Random) -> Topology:
    hosts = {name: replace(host, rate=rng.choice([0, 50, 200]) * 10**9) for name, host in topology.hosts.items()}
    links = tuple(replace(link, rate=rng.choice([0, 50, 400]) * 10**9) for link in topology.links)
    return replace(topology, hosts=hosts, links=links)


def train_rows(seed: int, trains: Run = simulate_in_trains) -> Iterator[Row]:
    """Rounds without losses, with stragglers and without, of every collective: the sums of their times, in ns."""
    rng = random.Random(seed)
    kinds = [kind for kind in COLLECTIVES if kind != NEZHA]
    for kind in islice(cycle(kinds), DRAWS):
        cluster = random_cluster(rng, rates=rng.random() < 0.5)
        cluster = replace(cluster, node=Node(straggle=Straggle(rng.choice([0.0, 0.1]))))
        rounds = Rounds(rng.randrange(1 << 12, 1 << 19), count=2, slots=64, compute=rng.choice([0, 300_000_000]))
        got, expected = (1e9 * sum(run(kind, cluster, rounds).rounds) for run in (trains, simulate))
        yield Row(f"train mode by frame mode: {_what(kind, cluster, rounds)}, ns", got, expected, 0)


def flow_rows(seed: int, flow: Run = estimate) -> Iterator[Row]:
    """Messages from 1 MiB, in us."""
    rng = random.Random(seed)
    for kind in islice(cycle(FLOWS), DRAWS):
        cluster = random_cluster(rng, rates=rng.random() < 0.7)
        rounds = Rounds(rng.randrange(1 << 20, 3 << 20))
        got, expected = (1e6 * sum(run(kind, cluster, rounds).rounds) for run in (flow, simulate))
        yield Row(f"flow mode by frame mode: {_what(kind, cluster, rounds)}, us", got, expected, _FLOW_BOUND * expected)


def _what(kind: str, cluster: Cluster, rounds: Rounds) -> str:
    racks = "+".join(str(sum(name.startswith(f"{rack}h") for name in cluster.hosts)) for rack in cluster.topology.racks)
    alike = "" if cluster.alike else " at several rates"
    return f"{kind} of {rounds.size} B, {racks} hosts{alike}"
