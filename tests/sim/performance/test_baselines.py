"""Rings and trees against their closed forms, and what stragglers cost."""

from __future__ import annotations

import random

import pytest

from catchment.sim.performance.baselines import PAYLOAD
from catchment.sim.performance.cluster import Cluster, Node, Straggle, rack_spine
from catchment.sim.performance.models import FRAME_OVERHEAD, LinkModel, NicModel, SwitchModel, frame_bytes
from catchment.sim.performance.rounds import Rounds
from catchment.sim.performance.run import simulate
from catchment.sim.world import GAP_BYTES


@pytest.mark.parametrize("hosts", [2, 5, 8])
def test_a_ring_takes_the_time_of_the_closed_form(hosts: int, rng: random.Random) -> None:
    """2 (p - 1) steps of a latency and a chunk's frames on one link."""
    cluster = Cluster(rack_spine(racks=[[f"h{at}" for at in range(hosts)]], spines=0))
    frames = rng.randrange(1, 60)
    nic, links, switch = NicModel(), LinkModel(), SwitchModel()
    first = (FRAME_OVERHEAD + PAYLOAD + GAP_BYTES - 12) * links.host_byte
    alpha = nic.push + nic.respond + 2 * (links.latency + first) + switch.pipeline + nic.pull
    step = alpha + (frames - 1) * frame_bytes(PAYLOAD) * links.host_byte
    took = simulate("ring", cluster, Rounds(frames * PAYLOAD * hosts)).rounds[0]
    assert took == pytest.approx(2 * (hosts - 1) * step / 1e12, rel=0.001)


@pytest.mark.parametrize("kind", ["allreduce", "ring", "tree", "switchml", "luwu"])
def test_stragglers_cost_what_the_slowest_computes_longer(kind: str) -> None:
    names = [f"h{at}" for at in range(5)]
    topology = rack_spine(racks=[names], spines=0, above=["opt"])
    plain = simulate(kind, Cluster(topology), Rounds(4096)).rounds[0]
    rounds = Rounds(4096, count=2, compute=50_000_000)
    slow = Cluster(topology, node=Node(straggle=Straggle(slow={"h3": 3.0})))
    outcome = simulate(kind, slow, rounds)
    for took in outcome.rounds:
        # In a ring and in trees much is done before the slowest host joins in; sums need all vectors.
        assert 150e-6 < took < 1.05 * (150e-6 + plain)
    assert outcome.straggler_cost == pytest.approx(80e-6 * 2 / sum(outcome.rounds), rel=0.01)
    assert outcome.exposed == pytest.approx(1 - 300e-6 / sum(outcome.rounds), rel=0.01)


def test_sums_in_switches_beat_a_ring_and_trees_between() -> None:
    topology = rack_spine(racks=[[f"h{at}" for at in range(16)]], spines=0)
    times = {
        kind: simulate(kind, Cluster(topology), Rounds(1 << 16)).rounds[0] for kind in ("allreduce", "ring", "tree")
    }
    assert times["allreduce"] < times["tree"] < times["ring"]
