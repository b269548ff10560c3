"""Clusters whose hosts are not all the same: what their files say, and that each host is as its own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from catchment.checkout import ROOT
from catchment.sim.performance.cluster import Cluster
from catchment.sim.performance.cluster_file import load_cluster
from catchment.sim.performance.errors import ClusterError, PerformanceError
from catchment.sim.performance.rails import rail_clusters
from catchment.sim.performance.requests import Mode, Request
from catchment.sim.performance.rounds import Rounds
from catchment.sim.performance.run import compute_times, simulate, simulate_in_trains, workers_of
from catchment.sim.performance.steps.generate import GENERATORS, Step
from catchment.sim.performance.steps.graph import Collective
from catchment.sim.performance.steps.ranks import rank_hosts
from catchment.sim.performance.steps.requests import StepRequest
from catchment.sim.performance.steps.run import run_step
from catchment.sim.performance.steps.times import CollectiveTimes
from catchment.sim.performance.steps.transformer import Transformer

FABRIC = "fabric: {kind: rack-spine, racks: 2, per_rack: 3, optimizers: 1}\n"
SMALL = Step(Transformer(2, 256, 1, 128), group=3)


def load(folder: Path, text: str) -> Cluster:
    path = folder / "cluster.yaml"
    path.write_text(text)
    return load_cluster(path)


def test_each_host_is_as_its_lines_say_and_a_later_line_counts(tmp_path: Path) -> None:
    cluster = load(
        tmp_path,
        FABRIC + "node: {gpus: 2, peak: 100tflops, mfu: 0.5}\n"
        "hosts:\n"
        "  - {name: 'r0*', link: 25gbps, gpus: 4, memory: 40GiB}\n"
        "  - {name: r0h1, link: 50gbps, mfu: 0.25}\n"
        "  - {name: r1h2, peak: 200tflops, scale_up: 64GBps}\n"
        "trunks: [{name: r1-s0, rate: 400gbps}]\n",
    )
    assert [cluster.host_byte(name) for name in ("r0h0", "r0h1", "r1h0")] == [320, 160, 80]
    assert [cluster.node_of(name).gpus for name in ("r0h0", "r0h1", "r1h2")] == [4, 4, 2]
    flops = [cluster.node_of(name).flops / 1e12 for name in ("r0h0", "r0h1", "r1h0", "r1h2")]
    assert flops == pytest.approx([50, 25, 50, 100])
    assert cluster.node_of("r0h1").memory == 40 * 2**30 and cluster.node_of("r1h2").scale_up == 64e9
    assert [cluster.trunk_byte(link) for link in cluster.topology.links] == [cluster.links.up_byte, 20]
    assert rank_hosts(cluster)[3:9] == ("r0h0", "r0h1", "r0h1", "r0h1", "r0h1", "r0h2")
    assert not cluster.alike


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("hosts: [{name: x*, gpus: 2}]\n", r":2: .*name: no host is called 'x\*'"),
        ("hosts: [{name: r0h0, link: 3gbps}]\n", ":2: .*whole picoseconds"),
        ("hosts: [{name: r0h0, rate: 25gbps}]\n", ":2: .*rate is unknown"),
        ("hosts: [{name: r0h0, peak: 25GBps}]\n", ":2: .*no unit of a speed"),
        ("trunks: [{name: r0-r1, rate: 25gbps}]\n", ":2: .*no link between switches is called"),
        ("trunks: [{name: r0-s0}]\n", ":2: .*rate"),
    ],
)
def test_a_mistake_is_named_with_its_line(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(ClusterError, match=says):
        load(tmp_path, FABRIC + text)


def test_the_rates_of_a_topology_file_count(tmp_path: Path) -> None:
    text = (ROOT / "sim" / "topologies" / "two-racks.yaml").read_text("utf-8")
    (tmp_path / "plain.yaml").write_text(text)
    host = next(line for line in text.splitlines() if "link:" in line)
    (tmp_path / "slow.yaml").write_text(text.replace(host, host.replace("link:", "rate: 10gbit, link:", 1)))
    plain, slow = (load(tmp_path, f"topology: {name}.yaml\n") for name in ("plain", "slow"))
    assert plain.alike and not slow.alike
    before, after = (simulate("allreduce", each, Rounds(1 << 18)).rounds[0] for each in (plain, slow))
    assert 7 < after / before < 11


def test_the_slowest_link_decides_what_a_sum_takes(tmp_path: Path) -> None:
    one = load(tmp_path, FABRIC + "hosts: [{name: r1h1, link: 25gbps}]\n")
    every = load(tmp_path, FABRIC + "links: {host: 25gbps, up: 100gbps}\n")
    quick = load(tmp_path, FABRIC)
    rounds = Rounds(1 << 20)
    taken, slow, fast = (simulate("allreduce", each, rounds).rounds[0] for each in (one, every, quick))
    assert taken == pytest.approx(slow, rel=0.01) and taken > 3 * fast
    trunk = load(tmp_path, FABRIC + "trunks: [{name: r0-s0, rate: 25gbps}]\n")
    assert simulate("allreduce", trunk, rounds).rounds[0] == pytest.approx(slow, rel=0.01)


def test_faster_trunks_do_not_make_losses_dearer(tmp_path: Path) -> None:
    """Nothing waits in front of them, so that timeouts need not be longer."""
    took = []
    for rate in ("100gbps", "400gbps"):
        cluster = load(tmp_path, FABRIC + f"links: {{host: 100gbps, up: {rate}, loss: 0.005}}\n")
        took.append(sum(simulate("allreduce", cluster, Rounds(1 << 18), seed=seed).rounds[0] for seed in range(1, 9)))
    assert took[1] < 1.3 * took[0]


def test_hosts_that_differ_take_in_train_mode_what_they_take_in_frame_mode(tmp_path: Path) -> None:
    cluster = load(tmp_path, FABRIC.replace("3", "5") + "hosts: [{name: r0h1, link: 50gbps}]\n")
    Request("allreduce", tmp_path / "cluster.yaml", (), (), 1, Mode.FOLD).check()
    rounds = Rounds(1 << 18, 2)
    trains, frames = (run("allreduce", cluster, rounds) for run in (simulate_in_trains, simulate))
    assert trains.rounds == frames.rounds
    assert trains.record is not None
    assert frames.record is not None
    assert trains.record.hosts < frames.record.hosts


@pytest.mark.parametrize("system", sorted(GENERATORS))
def test_a_step_of_hosts_that_differ_takes_the_same_in_train_and_frame_mode(tmp_path: Path, system: str) -> None:
    text = (
        FABRIC.replace("3", "4") + "node: {peak: 100tflops, slow: {r1h2: 1.25}}\n"
        "hosts: [{name: 'r0h[12]', peak: 50tflops}, {name: 'r1*', link: 50gbps}]\n"
        "trunks: [{name: r0-s0, rate: 200gbps}]\n"
    )
    (tmp_path / "cluster.yaml").write_text(text)
    request = StepRequest(system, tmp_path / "cluster.yaml", replace(SMALL, group=4))
    frame, train = (replace(request, mode=mode).run()[0] for mode in (Mode.FRAME, Mode.TRAIN))
    assert (train.seconds, train.exposed, train.ranks) == (frame.seconds, frame.exposed, frame.ranks)
    assert (train.utilisation, train.straggler_cost) == pytest.approx((frame.utilisation, frame.straggler_cost))


def test_a_host_half_as_fast_computes_twice_as_long(tmp_path: Path) -> None:
    cluster = load(tmp_path, FABRIC + "node: {peak: 100tflops}\nhosts: [{name: r0h1, peak: 50tflops}]\n")
    (times,) = compute_times(cluster, workers_of(cluster), Rounds(1, compute=1000), seed=1)
    assert times.tolist() == [1000, 2000, 1000, 1000, 1000, 1000]


def test_rails_have_rates_of_their_own(tmp_path: Path) -> None:
    cluster = load(tmp_path, FABRIC + "rails: [{name: a}]\nhosts: [{name: r0h1, link: 50gbps}]\n")
    with pytest.raises(PerformanceError, match="rates of their `rails`"):
        rail_clusters(cluster)


@pytest.mark.parametrize("system", sorted(GENERATORS))
def test_a_step_of_hosts_that_are_equal_is_the_same_one_by_one(tmp_path: Path, system: str) -> None:
    """Each rank simulated gives what one that stands for all gives."""
    node = "node: {peak: 100tflops}\n"
    alike = load(tmp_path, FABRIC + node)
    (tmp_path / "cluster.yaml").write_text(FABRIC + node + "hosts: [{name: opt, peak: 1tflops}]\n")
    request = StepRequest(system, tmp_path / "cluster.yaml", SMALL)
    outcome, spans = request.run()
    assert len({span.rank for span in spans}) == 6
    alone, _ = run_step(alike, [GENERATORS[system](alike, SMALL, 0)])
    assert outcome.seconds == pytest.approx(alone.seconds) and outcome.exposed == pytest.approx(alone.exposed)


def test_the_slowest_gpu_decides_a_step_and_its_memory_what_fits(tmp_path: Path) -> None:
    def step(text: str) -> float:
        (tmp_path / "cluster.yaml").write_text(FABRIC + "node: {gpus: 2, peak: 100tflops}\n" + text)
        return StepRequest("ddp", tmp_path / "cluster.yaml", SMALL).run()[0].seconds

    one, every = step("hosts: [{name: r1h1, peak: 25tflops}]\n"), step("hosts: [{name: 'r*', peak: 25tflops}]\n")
    assert one == pytest.approx(every) and one > step("")
    with pytest.raises(PerformanceError, match="more than the `memory` of r0h2"):
        step("hosts: [{name: r0h2, memory: 1MiB}]\n")


def test_the_node_with_the_slowest_links_inside_decides_a_collective(tmp_path: Path) -> None:
    def seconds(text: str) -> float:
        cluster = load(tmp_path, FABRIC + "node: {gpus: 4, scale_up: 100GBps}\n" + text)
        return CollectiveTimes(cluster).seconds(Collective.ALL_GATHER, tuple(range(24)), 1 << 30)

    inside = 3 / 4 * (1 << 30)
    slower = seconds("hosts: [{name: r1h0, scale_up: 25GBps}]\n") - seconds("")
    assert slower == pytest.approx(inside / 25e9 - inside / 100e9)
