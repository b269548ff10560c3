"""Flow mode beside frame mode, and fair rates beside their definition."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from catchment.controlplane.topology import Topology
from catchment.sim.performance import ring_flow
from catchment.sim.performance.cluster import Cluster, rack_spine
from catchment.sim.performance.errors import PerformanceError
from catchment.sim.performance.flow_lines import GAP as GAP_BETWEEN_FRAMES
from catchment.sim.performance.max_min import Flow, completion_time, fair_rates
from catchment.sim.performance.models import LinkModel, SwitchModel, frame_bytes
from catchment.sim.performance.rounds import Rounds
from catchment.sim.performance.run import estimate, simulate
from catchment.sim.performance.steps.generate import Step, ddp
from catchment.sim.performance.steps.graph import Collective, Kind, Task, Trace
from catchment.sim.performance.steps.run import run_step, run_step_in_frames
from catchment.sim.performance.steps.transformer import Transformer
from catchment.sim.world import Faults


def random_flows(rng: random.Random) -> tuple[list[Flow], np.ndarray]:
    lines = rng.randrange(1, 8)
    capacity = np.array([rng.uniform(1, 10) for _ in range(lines)])
    count = rng.randrange(1, 10)
    flows = [
        Flow(tuple(rng.sample(range(lines), rng.randrange(1, lines + 1))), rng.uniform(1, 50)) for _ in range(count)
    ]
    return flows, capacity


def test_rates_are_max_min_fair(rng: random.Random) -> None:
    """Each flow has a full line on which nobody is faster: that is the definition."""
    for _ in range(200):
        flows, capacity = random_flows(rng)
        rates = fair_rates(flows, capacity)
        load = np.zeros(len(capacity))
        for flow, rate in zip(flows, rates, strict=True):
            load[list(flow.lines)] += rate
        assert (load <= capacity * (1 + 1e-9)).all()
        for flow, rate in zip(flows, rates, strict=True):
            assert any(
                load[line] >= capacity[line] * (1 - 1e-9)
                and rate >= max(r for f, r in zip(flows, rates, strict=True) if line in f.lines) - 1e-9
                for line in flow.lines
            )


def test_a_line_alone_bounds_the_time(rng: random.Random) -> None:
    for _ in range(100):
        flows, capacity = random_flows(rng)
        bound = max(sum(f.size for f in flows if line in f.lines) / rate for line, rate in enumerate(capacity))
        assert completion_time(flows, capacity) >= bound * (1 - 1e-6)
        shared = [Flow((0,), flow.size) for flow in flows]
        assert completion_time(shared, capacity) == pytest.approx(sum(f.size for f in flows) / capacity[0])


def with_rates(topology: Topology, rng: random.Random) -> Topology:
    """The same with hosts and links of several rates."""
    hosts = {name: replace(host, rate=rng.choice([0, 50, 200]) * 10**9) for name, host in topology.hosts.items()}
    links = tuple(replace(link, rate=rng.choice([0, 50, 400]) * 10**9) for link in topology.links)
    return replace(topology, hosts=hosts, links=links)


@pytest.mark.parametrize("kind", ["allreduce", "luwu", "ring"])
def test_flow_mode_is_within_five_percent_of_frame_mode_from_a_mebibyte(kind: str, rng: random.Random) -> None:
    for _ in range(8 if kind == "ring" else 3):
        racks = rng.randrange(1, 4)
        hosts = [[f"r{k}h{at}" for at in range(rng.randrange(2, 6))] for k in range(racks)]
        topology = rack_spine(racks=hosts, spines=racks > 1, above=["opt"])
        if rng.random() < 0.5:
            topology = with_rates(topology, rng)
        cluster = Cluster(topology, LinkModel(up_byte=rng.choice([20, 80, 160])))
        rounds = Rounds(rng.randrange(1 << 20, 3 << 20))
        frame, flow = simulate(kind, cluster, rounds).rounds[0], estimate(kind, cluster, rounds).rounds[0]
        assert abs(flow / frame - 1) < 0.05, (flow / frame, kind, hosts, cluster.links, rounds)


@pytest.mark.parametrize("up_byte", [20, 640])
def test_a_short_message_takes_each_line_of_its_way(up_byte: int) -> None:
    """Arithmetic by hand: a frame of 256 B over two racks and a spine, links between switches faster or slower."""
    names, links = [["a", "b"], ["c", "d"]], LinkModel(host_byte=320, up_byte=up_byte)
    cluster = Cluster(rack_spine(racks=names, spines=1, above=["opt"]), links)
    frame = frame_bytes(cluster.switch.vector_bytes) - GAP_BETWEEN_FRAMES
    nics, once = 759_000 + 33_000 + 1_293_000, 265_000 + 400_000
    sums = nics + frame * 2 * (320 + up_byte) + 4 * once - 400_000
    root = 2 * nics + 2 * (frame * (320 + up_byte + 320) + 3 * once - 400_000)
    for kind, picos in ("allreduce", sums), ("luwu", root):
        for way in estimate, simulate:
            assert way(kind, cluster, Rounds(1)).rounds[0] == pytest.approx(picos * 1e-12, rel=1e-9), (kind, way)


@pytest.mark.parametrize("kind", ["allreduce", "luwu", "ring"])
def test_flow_mode_is_within_five_percent_of_frame_mode_below_a_mebibyte(kind: str, rng: random.Random) -> None:
    for _ in range(8):
        hosts = [[f"r{k}h{at}" for at in range(rng.randrange(2, 6))] for k in range(rng.randrange(1, 4))]
        topology = rack_spine(racks=hosts, spines=len(hosts) > 1, above=["opt"])
        if rng.random() < 0.5:
            topology = with_rates(topology, rng)
        links = LinkModel(rng.choice([20, 80, 320]), rng.choice([20, 80, 160]))
        cluster, rounds = Cluster(topology, links), Rounds(int(2 ** rng.uniform(0, 20)))
        frame, flow = simulate(kind, cluster, rounds).rounds[0], estimate(kind, cluster, rounds).rounds[0]
        assert abs(flow / frame - 1) < 0.05, (flow / frame, kind, hosts, topology, links, rounds)


@pytest.mark.parametrize(
    ("kind", "rates", "slots"),
    [
        ("luwu", {"a": 200, "b": 200, "opt": 25}, 1),  # the optimizer node is slower than hosts
        ("luwu", {"a": 25, "b": 50, "opt": 200}, 2),  # and faster
        ("allreduce", {"a": 200, "b": 50, "opt": 100}, 16),  # a host is faster than the slowest
    ],
)
def test_windows_of_few_slots_on_lines_of_several_rates(kind: str, rates: dict[str, int], slots: int) -> None:
    topology = rack_spine(racks=[["a", "b"]], spines=0, above=["opt"])
    hosts = {name: replace(host, rate=rates[name] * 10**9) for name, host in topology.hosts.items()}
    lanes = 256 if kind == "luwu" else 64
    cluster = Cluster(replace(topology, hosts=hosts), LinkModel(latency=50_000), SwitchModel(lanes=lanes))
    rounds = Rounds(1 << 18, slots=slots)
    frame, flow = simulate(kind, cluster, rounds).rounds[0], estimate(kind, cluster, rounds).rounds[0]
    assert flow == pytest.approx(frame, rel=0.07)


@pytest.mark.parametrize("kind", ["allreduce", "luwu", "ring"])
def test_flow_mode_knows_windows_that_are_shorter_than_the_way_and_back(kind: str, rng: random.Random) -> None:
    for racks in (1, 2, 3):
        hosts = [[f"r{k}h{at}" for at in range(rng.randrange(2, 6))] for k in range(racks)]
        topology = rack_spine(racks=hosts, spines=racks > 1, above=["opt"])
        # A ring's window is its own.
        slots = rng.choice([8, 64, 256])
        few = slots == 8 and kind != "ring"  # windows that small take frame mode long over long lines
        latency = rng.choice([265_000, 2_000_000] if few else [265_000, 2_000_000, 10_000_000, 50_000_000])
        cluster = Cluster(topology, LinkModel(host_byte=rng.choice([20, 80]), latency=latency))
        rounds = Rounds(rng.randrange(1 << 20, 4 << 20), slots=slots)
        frame, flow = simulate(kind, cluster, rounds).rounds[0], estimate(kind, cluster, rounds).rounds[0]
        assert abs(flow / frame - 1) < 0.1, (flow / frame, kind, hosts, cluster.links, rounds)


def test_the_window_of_a_ring_slides_over_all_its_steps() -> None:
    """Each chunk is less than a window, and the ring waits for acknowledgements all the same."""
    hosts = [[f"r{rack}h{at}" for at in range(3)] for rack in range(2)]
    cluster = Cluster(rack_spine(racks=hosts, spines=1), LinkModel(host_byte=80, latency=50_000_000))
    frame, flow = (way("ring", cluster, Rounds(1 << 20)).rounds[0] for way in (simulate, estimate))
    assert abs(flow / frame - 1) < 0.01


def test_a_window_bounds_the_rate_of_a_step() -> None:
    """A switch of 16 slots lets 4 KiB be under way, and a frame is acknowledged after two ways there and back."""
    model = Transformer(layers=4, hidden=256)
    names = [f"h{at}" for at in range(4)]
    few = Cluster(rack_spine(racks=[names], spines=0, slots=16), switch=SwitchModel(slots=16))
    step = Step(model)
    (flow, _), (frame, _) = (
        run(few, [ddp(few, step, rank) for rank in range(4)]) for run in (run_step, run_step_in_frames)
    )
    assert flow.seconds == pytest.approx(frame.seconds, rel=0.05)
    assert flow.communicating > 3 * 4 * model.layer_bytes * 8 / 100e9


@pytest.mark.parametrize("kind", ["allreduce", "ring"])
def test_nics_keep_a_line_of_800_gbps_busy(kind: str) -> None:
    """Such a line empties a MAC sooner than a NIC answers."""
    cluster, size = Cluster(rack_spine(racks=[["a", "b"]], spines=0), LinkModel(host_byte=10)), 16 << 20
    payload = 1024 if kind == "ring" else cluster.switch.vector_bytes
    frame = simulate(kind, cluster, Rounds(size)).rounds[0]
    assert frame == pytest.approx(size / payload * frame_bytes(payload) * 10e-12, rel=0.06)


def test_what_waits_in_front_of_slow_lines_holds_up_a_ring() -> None:
    """A ring with 200 Gb/s into 50, and heartbeats that go the same way, takes a fifth more than its slowest line."""
    rates = {"a0": 200, "a1": 50, "b0": 200, "b1": 100, "b2": 200, "b3": 200}
    topology = rack_spine(racks=[["a0", "a1"], ["b0", "b1", "b2", "b3"]], spines=1)
    hosts = {name: replace(host, rate=rates[name] * 10**9) for name, host in topology.hosts.items()}
    links = tuple(replace(link, rate=rate * 10**9) for link, rate in zip(topology.links, (400, 50), strict=True))
    cluster, rounds = Cluster(replace(topology, hosts=hosts, links=links)), Rounds(2_168_853)
    frame, flow = simulate("ring", cluster, rounds).rounds[0], estimate("ring", cluster, rounds).rounds[0]
    assert flow == pytest.approx(frame, rel=0.03)
    assert frame > 1.2 * 2 * 5 * (rounds.size / 6) * 8 / 50e9


def test_a_part_of_a_large_ring_of_several_rates_says_what_all_of_it_takes(
    rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fewer frames of a chunk, and fewer steps, than there are."""
    monkeypatch.setattr(ring_flow, "_LONGEST", 1024)
    monkeypatch.setattr(ring_flow, "_MOST", 1 << 15)
    names = [f"h{at}" for at in range(8)]
    topology = with_rates(rack_spine(racks=[names], spines=0), rng)
    cluster, rounds = Cluster(topology), Rounds(rng.randrange(12 << 20, 16 << 20))
    frame, flow = simulate("ring", cluster, rounds).rounds[0], estimate("ring", cluster, rounds).rounds[0]
    assert flow == pytest.approx(frame, rel=0.05)


@pytest.mark.parametrize("spines", [1, 2])
def test_an_all_to_all_takes_what_its_fullest_line_does(spines: int) -> None:
    """Arithmetic by hand: four hosts of a rack send four of the others an eighth each, over all spines."""
    cluster = Cluster(rack_spine(racks=[list("abcd"), ["e", "f"], ["g", "h"]], spines=spines), LinkModel(80, 640))
    size, payload = 8 << 20, cluster.switch.vector_bytes
    task = Task(0, "t", Kind.COLLECTIVE, collective=Collective.ALL_TO_ALL, size=size)
    outcome, _ = run_step(cluster, [Trace(rank, (task,)) for rank in range(8)])
    on_trunk = 4 * 4 * (size / 8) / spines / payload * frame_bytes(payload) * 640e-12
    assert outcome.seconds == pytest.approx(on_trunk, rel=1e-3)
    wide, _ = run_step(replace(cluster, links=LinkModel(80, 20)), [Trace(rank, (task,)) for rank in range(8)])
    assert wide.seconds == pytest.approx(7 * (size / 8) / payload * frame_bytes(payload) * 80e-12, rel=1e-2)


def test_an_all_to_all_needs_a_switch_between_those_of_its_hosts() -> None:
    topology = rack_spine(racks=[["a"], ["b"], ["c"]], spines=2)
    apart = tuple(link for link in topology.links if (link.a.switch, link.b.switch) not in {("r0", "s1"), ("r2", "s0")})
    task = Task(0, "t", Kind.COLLECTIVE, collective=Collective.ALL_TO_ALL, size=1024)
    with pytest.raises(PerformanceError, match="no switch joins r0 to r2"):
        run_step(Cluster(replace(topology, links=apart)), [Trace(rank, (task,)) for rank in range(3)])


def test_flow_mode_refuses_what_it_cannot_say() -> None:
    topology = rack_spine(racks=[["a", "b"]], spines=0)
    with pytest.raises(PerformanceError, match="no faults"):
        estimate("allreduce", Cluster(topology, LinkModel(faults=Faults(loss=0.1))), Rounds(100))
    with pytest.raises(PerformanceError, match="no 'tree'"):
        estimate("tree", Cluster(topology), Rounds(100))
    with pytest.raises(PerformanceError, match="optimizer node"):
        estimate("luwu", Cluster(topology), Rounds(100))
