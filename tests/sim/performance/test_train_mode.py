"""Train mode gives what frame mode gives, to the picosecond and to the frame, with fewer events."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from catchment.sim.performance.cluster import Cluster, Failure, Node, Rail, Straggle, rack_spine
from catchment.sim.performance.errors import PerformanceError
from catchment.sim.performance.models import LinkModel, ProgramModel, SwitchModel
from catchment.sim.performance.network import Network
from catchment.sim.performance.rounds import Rounds
from catchment.sim.performance.run import Outcome, simulate, simulate_in_trains
from catchment.sim.performance.workload import SETTLED, Action, Workload
from catchment.sim.world import Faults

MICROSECOND = 1_000_000
MILLISECOND = 1_000_000_000


def random_cluster(rng: random.Random) -> Cluster:
    racks = rng.choice([1, 1, 2, 3])
    hosts = [[f"r{k}h{at}" for at in range(rng.randrange(1, 4))] for k in range(racks)]
    hosts[0].append("more")
    topology = rack_spine(racks=hosts, spines=rng.randrange(1, 3) if racks > 1 else 0, above=["opt"])
    links = LinkModel(rng.choice([20, 80]), rng.choice([20, 80, 160]), rng.randrange(10_000, 900_000))
    switch = SwitchModel(rng.randrange(100_000, 900_000), slots=1 << rng.randrange(3, 9), lanes=rng.choice([64, 256]))
    straggle = Straggle(rng.choice([0.0, 0.05]), rng.choice([{}, {"more": 1.5}]))
    return Cluster(topology, links, switch, node=Node(straggle=straggle))


def both(kind: str, cluster: Cluster, rounds: Rounds) -> tuple[Outcome, Outcome]:
    return simulate(kind, cluster, rounds, seed=3), simulate(kind, cluster, rounds, seed=3, trains=True)


def assert_alike(frames: Outcome, trains: Outcome, why: object) -> float:
    """That all but the number of events is the same; gives the share of the time that trains carried."""
    assert frames.record is not None
    assert trains.record is not None
    events, carried = trains.record.events, trains.record.carried
    assert events <= frames.record.events
    speed = trains.record.events_per_second
    same = replace(frames.record, events=events, events_per_second=speed, carried=carried)
    assert trains == replace(frames, record=same), why
    return carried


@pytest.mark.parametrize("kind", ["allreduce", "luwu", "ring", "tree", "switchml"])
def test_all_times_and_counts_are_the_frame_modes(kind: str, rng: random.Random) -> None:
    carried = 0.0
    for _ in range(6):
        cluster = random_cluster(rng)
        rounds = Rounds(rng.randrange(1, 400_000), count=2, compute=rng.choice([0, 300 * MICROSECOND]))
        carried += assert_alike(*both(kind, cluster, rounds), (cluster, rounds))
    cluster = Cluster(rack_spine(racks=[["a", "b"]], spines=0, above=["opt"]))
    carried += assert_alike(*both(kind, cluster, Rounds(100_000, compute=MILLISECOND)), kind)
    assert carried > 0.5


def test_times_when_something_fails_and_comes_back(rng: random.Random) -> None:
    carried = 0.0
    for _ in range(6):
        cluster = random_cluster(rng)
        kind, name = rng.choice([("host", "more"), ("link", "more"), ("switch", "r0")])
        at = rng.randrange(200 * MICROSECOND)
        failure = Failure(kind, name, at, at + rng.randrange(1, 300 * MICROSECOND))
        failing = replace(cluster, failures=(failure,))
        rounds = Rounds(rng.randrange(1, 300_000), count=2, compute=300 * MICROSECOND)
        carried += assert_alike(*both(rng.choice(["allreduce", "luwu", "ring"]), failing, rounds), failing)
    assert carried > 0


def test_messages_over_rails(rng: random.Random) -> None:
    for _ in range(3):
        rails = (
            Rail("a"),
            Rail("b", rng.choice(["switch", "ring"]), LinkModel(rng.choice([80, 320])), 10 * MICROSECOND),
        )
        cluster = replace(random_cluster(rng), rails=rails)
        rounds = Rounds(rng.randrange(1, 400_000), compute=300 * MICROSECOND)
        assert_alike(*both("nezha", cluster, rounds), cluster)
    equal = Cluster(rack_spine(racks=[["a", "b"]], spines=0), rails=(Rail("a"), Rail("b")))
    assert assert_alike(*both("nezha", equal, Rounds(400_000, compute=MILLISECOND)), equal) > 0.5


def test_a_long_ring_is_carried_with_a_tenth_of_the_events() -> None:
    cluster = Cluster(rack_spine(racks=[["a", "b"], ["c", "d"]], spines=1))
    frames, trains = both("ring", cluster, Rounds(16 << 20))
    assert assert_alike(frames, trains, "ring") > 0.9
    assert frames.record is not None
    assert trains.record is not None
    assert trains.record.events < frames.record.events / 10


def test_long_sums_are_carried() -> None:
    cluster = Cluster(rack_spine(racks=[["a", "b", "c"]], spines=0), switch=SwitchModel(slots=64))
    assert assert_alike(*both("allreduce", cluster, Rounds(4 << 20)), "allreduce") > 0.9


@pytest.mark.parametrize("kind", ["allreduce", "luwu", "ring"])
def test_the_mode_gives_the_frame_modes_times(kind: str, rng: random.Random) -> None:
    for _ in range(4):
        cluster = replace(random_cluster(rng), node=Node(straggle=Straggle(rng.choice([0.0, 0.05]))))
        rounds = Rounds(rng.randrange(1, 200_000), count=2, compute=30 * MICROSECOND)
        trains = simulate_in_trains(kind, cluster, rounds, seed=3)
        assert trains.rounds == simulate(kind, cluster, rounds, seed=3).rounds, cluster


def test_hosts_are_folded_where_they_behave_alike() -> None:
    topology = rack_spine(racks=[["a", "b", "c"]], spines=0)
    for cluster, hosts in ((Cluster(topology), 2), (Cluster(topology, node=Node(straggle=Straggle(0.1))), 3)):
        record = simulate_in_trains("allreduce", cluster, Rounds(1000, compute=MICROSECOND)).record
        assert record is not None
        assert record.hosts == hosts


def test_where_lines_lose_frames_none_are_carried_in_trains(rng: random.Random) -> None:
    cluster = replace(random_cluster(rng), links=LinkModel(faults=Faults(loss=0.001)))
    frames, trains = both("allreduce", cluster, Rounds(100_000, compute=300 * MICROSECOND))
    assert assert_alike(frames, trains, cluster) == 0


@pytest.mark.parametrize("latency", [2, 4])
def test_states_are_not_compared_for_longer_than_events_take(latency: int) -> None:
    """Heartbeats are under way by the thousand on lines of milliseconds, and each of them is a part of the state."""
    cluster = Cluster(rack_spine(racks=[["a", "b"]], spines=0), LinkModel(latency=latency * MILLISECOND))
    network, workload = Network(cluster), Workload()
    network.simulation.carry_trains()
    settled = workload.add(Action.DELAY, amount=SETTLED)
    workload.transfer(network.allreduce(["a", "b"]), 1 << 18, each_after=[[settled]] * 2)
    workload.run(network)
    simulation = network.simulation
    assert 0 < simulation.compared < 20 * simulation.events + (1 << 20)


def test_computing_is_carried_over_long_lines_too() -> None:
    cluster = Cluster(rack_spine(racks=[["a", "b"]], spines=0), LinkModel(latency=4 * MILLISECOND))
    rounds = Rounds(1 << 18, count=2, compute=1000 * MILLISECOND)
    assert assert_alike(*both("allreduce", cluster, rounds), "allreduce") > 0.9


def test_hosts_in_software_are_refused() -> None:
    cluster = Cluster(rack_spine(racks=[["a", "b"]], spines=0), nic=ProgramModel())
    with pytest.raises(PerformanceError, match="use --mode frame"):
        simulate("allreduce", cluster, Rounds(1), trains=True)
