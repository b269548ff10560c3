"""What arrives in the simulator is the sum of every worker's contribution, once each, whatever lines do to frames."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from catchment.sim.performance.cluster import Cluster, rack_spine
from catchment.sim.performance.models import LinkModel, SwitchModel
from catchment.sim.performance.network import Network
from catchment.sim.performance.workload import Workload
from catchment.sim.world import Faults

M32 = (1 << 32) - 1


def contribution(identity: int, seq: int) -> int:
    """The contribution, as native/nic_sender.hpp makes it."""
    return ((seq * 0x9E3779B1 & M32) ^ ((identity + 1) * 0x85EBCA6B & M32)) * 0xC2B2AE35 & M32


def expected_digest(workers: int, frames: int) -> int:
    sums = (sum(contribution(worker, seq) for worker in range(workers)) for seq in range(frames))
    return sum((2 * seq + 1) * total for seq, total in enumerate(sums)) & M32


def random_cluster(rng: random.Random, faults: Faults) -> Cluster:
    racks = rng.choice([1, 1, 2, 3, 5])
    hosts = [[f"r{k}h{at}" for at in range(rng.randrange(1, 6))] for k in range(racks)]
    topology = rack_spine(racks=hosts, spines=rng.randrange(1, 3) if racks > 1 else 0, above=["opt"])
    if rng.random() < 0.5:
        rates = {name: rng.choice([0, 25, 50, 400]) * 10**9 for name in topology.hosts}
        topology = replace(
            topology, hosts={name: replace(host, rate=rates[name]) for name, host in topology.hosts.items()}
        )
    return Cluster(topology, LinkModel(faults=faults), SwitchModel(slots=rng.choice([4, 16, 64])))


@pytest.mark.parametrize("faults", [Faults(), Faults(loss=0.02, damage=0.01, duplicate=0.02, reorder=0.05)])
def test_every_receiver_gets_every_sum_once(faults: Faults, rng: random.Random) -> None:
    for _ in range(5):
        cluster = random_cluster(rng, faults)
        workers = [name for name in cluster.hosts if name != "opt"]
        size = rng.randrange(1, 60_000)
        for to_root in (False, True):
            network = Network(cluster, seed=rng.getrandbits(32))
            stream = network.reduce(workers, "opt") if to_root else network.allreduce(workers)
            workload = Workload()
            workload.transfer(stream, size)
            workload.run(network)
            frames = stream.frames(size)
            for member in stream.receivers:
                counts = network.simulation.member(member)
                assert counts["received"] == frames
                assert counts["digest"] == expected_digest(len(workers), frames)


def test_one_seed_is_one_run(rng: random.Random) -> None:
    cluster = random_cluster(rng, Faults(loss=0.01, duplicate=0.01, reorder=0.03))
    workers = [name for name in cluster.hosts if name != "opt"]

    def play(seed: int) -> tuple[int, int, tuple[int, ...]]:
        network = Network(cluster, seed=seed)
        workload = Workload()
        workload.transfer(network.reduce(workers, "opt"), 100_000)
        workload.transfer(network.broadcast("opt", workers), 100_000)
        times = workload.run(network)
        return network.simulation.now, network.simulation.events, tuple(times.ravel().tolist())

    seed = rng.getrandbits(32)
    assert play(seed) == play(seed)
    assert play(seed) != play(seed + 1)


def test_a_message_of_one_byte_and_pulls_before_pushes(rng: random.Random) -> None:
    cluster = random_cluster(rng, Faults())
    workers = [name for name in cluster.hosts if name != "opt"]
    network = Network(cluster)
    workload = Workload()
    for _ in range(3):
        workload.transfer(network_stream := network.allreduce(workers), 1)
    workload.run(network)
    assert network.simulation.member(network_stream.receivers[0])["received"] == 1
