"""Folded mode gives the frame mode's times, to the picosecond, and refuses where hosts differ."""

from __future__ import annotations

import random

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


def test_hosts_that_differ_are_refused() -> None:
    topology = rack_spine(racks=[["a", "b", "c"]], spines=0)
    plain = Cluster(topology)
    assert len(fold("allreduce", plain).hosts) == 2
    for kind, cluster, says in (
        ("ring", plain, "no 'ring'"),
        ("allreduce", Cluster(topology, LinkModel(faults=Faults(loss=0.1))), "do not behave alike"),
        ("allreduce", Cluster(topology, failures=(Failure("host", "a", 1),)), "do not behave alike"),
        ("allreduce", Cluster(topology, node=Node(straggle=Straggle(0.1))), "stragglers"),
        ("allreduce", Cluster(topology, node=Node(straggle=Straggle(slow={"a": 2.0}))), "stragglers"),
        ("allreduce", Cluster(topology, switch=SwitchModel(max_workers=2)), "has 3 members"),
    ):
        with pytest.raises(PerformanceError, match=says):
            fold(kind, cluster)
