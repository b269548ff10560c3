"""Failures that are drawn, and of links between switches."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from statistics import mean

import pytest

from catchment.sim.performance.cluster import Breakdown, Cluster, Failure, rack_spine
from catchment.sim.performance.cluster_file import load_cluster
from catchment.sim.performance.errors import ClusterError, PerformanceError
from catchment.sim.performance.failures import failures_of
from catchment.sim.performance.models import LinkModel
from catchment.sim.performance.network import Network
from catchment.sim.performance.rounds import Rounds
from catchment.sim.performance.run import simulate
from catchment.sim.performance.workload import SETTLED, Action, Workload
from catchment.sim.world import Burst, Faults

FABRIC = "fabric: {kind: rack-spine, racks: 2, per_rack: 2}\n"
MS = 10**9


def load(folder: Path, failures: str, settings: Mapping[str, str] | None = None) -> Cluster:
    path = folder / "cluster.yaml"
    path.write_text(FABRIC + failures)
    return load_cluster(path, settings or {})


def test_a_file_says_how_often_how_long_and_until_when(tmp_path: Path) -> None:
    cluster = load(tmp_path, "failures: [{what: link, name: 'r0*', every: 10ms, lasts: 2ms, within: 1s}]\n")
    assert cluster.breakdowns == (Breakdown("link", ("r0h0", "r0h1"), 10 * MS, 2 * MS, 1000 * MS),)
    assert cluster.fails and not cluster.failures
    named = load(tmp_path, "failures: [{what: trunk, name: '*-s0', at: 1ms, until: 2ms}]\n")
    assert named.failures == tuple(Failure("trunk", f"r{k}-s0", MS, 2 * MS) for k in range(2))


@pytest.mark.parametrize(
    ("failure", "says"),
    [
        ("what: link, name: 'x*', every: 1ms, lasts: 1ms, within: 1s", "no such link; there are r0h0"),
        ("what: trunk, name: r0-r1, at: 1ms", "no such trunk; there are r0-s0, r1-s0"),
        ("what: link, name: r0h0, every: 1ms, within: 1s", "lasts"),
        ("what: link, name: r0h0, every: 1ms, lasts: 1ms, within: 1s, at: 1ms", "failures at times"),
        ("what: link, name: r0h0, at: 1ms, lasts: 1ms", "failures that are drawn"),
        ("what: link, name: r0h0, every: 0ms, lasts: 1ms, within: 1s", "more than 0"),
        ("what: link, name: r0h0, every: 1ns, lasts: 1ns, within: 1s", "more than 100000 failures"),
    ],
)
def test_a_mistake_is_named_with_its_line(tmp_path: Path, failure: str, says: str) -> None:
    with pytest.raises(ClusterError, match=rf":2: .*{says}"):
        load(tmp_path, f"failures: [{{{failure}}}]\n")


def test_what_is_drawn_has_these_means_and_is_of_its_seed(tmp_path: Path) -> None:
    cluster = load(tmp_path, "failures: [{what: host, name: '*', every: 10ms, lasts: 2ms, within: 20s}]\n")
    drawn = failures_of(cluster, 7)
    assert drawn == failures_of(cluster, 7) != failures_of(cluster, 8)
    for host in cluster.hosts:
        own = [(f.at, f.until or 0) for f in drawn if f.name == host]
        assert len(own) > 1000
        ends = [0, *(until for _, until in own)]
        assert mean(at - end for (at, _), end in zip(own, ends, strict=False)) == pytest.approx(10 * MS, rel=0.15)
        assert mean(until - at for at, until in own) == pytest.approx(2 * MS, rel=0.15)
        assert all(at < 20_000 * MS for at, _ in own)
    assert len({f.at for f in drawn}) == len(drawn)


def test_a_link_between_switches_holds_a_sum_up_until_it_is_back(tmp_path: Path) -> None:
    calm = simulate("allreduce", load(tmp_path, ""), Rounds(1 << 20)).rounds[0]
    cluster = load(tmp_path, "failures: [{what: trunk, name: r1-s0, at: 50us, until: 1ms}]\n")
    took = simulate("allreduce", cluster, Rounds(1 << 20)).rounds[0]
    assert took > 0.9e-3 > 5 * calm


ALL, ONE = "{what: link, name: 'r*', at: 20us, until: 3ms}", "{what: link, name: r0h0, at: 10us, until: 9ms}"


@pytest.mark.parametrize("order", [(ALL, ONE), (ONE, ALL)])
def test_what_two_failures_hold_down_is_back_after_the_last(tmp_path: Path, order: tuple[str, str]) -> None:
    def took(*failures: str) -> float:
        return simulate("allreduce", load(tmp_path, f"failures: [{', '.join(failures)}]\n"), Rounds(1 << 20)).rounds[0]

    both = took(*order)
    assert both > 8.9e-3
    assert both == pytest.approx(took(ONE), rel=0.05)
    for_good = ONE.replace(", until: 9ms", "")
    with pytest.raises(PerformanceError, match="nothing has moved"):
        took(*(for_good if failure is ONE else failure for failure in order))


@pytest.mark.parametrize("trains", [False, True])
def test_what_comes_back_is_waited_for_however_long_it_takes(tmp_path: Path, trains: bool) -> None:
    """Longer than the time after which nothing is going to move by itself, and beside many hosts' heartbeats."""
    failure = "failures: [{what: link, name: r0h0, at: 10us, until: 100ms}]\n"
    there = load(tmp_path, failure, {"fabric.per_rack": "16"})
    assert 0.1 < simulate("allreduce", there, Rounds(1 << 16), trains=trains).rounds[0] < 0.11


def test_long_ways_are_no_standstill(tmp_path: Path) -> None:
    there = load(tmp_path, "", {"links.latency": "100ms", "fabric.per_rack": "8"})
    assert 0.4 < simulate("allreduce", there, Rounds(1 << 16)).rounds[0] < 3


def test_a_failure_that_comes_later_is_not_waited_for(tmp_path: Path) -> None:
    lost, later = "{what: link, name: r0h0, at: 10us}", "{what: link, name: r0h1, at: 10s, until: 11s}"
    with pytest.raises(PerformanceError, match=r"nothing has moved.* after 0\."):
        simulate("allreduce", load(tmp_path, f"failures: [{lost}, {later}]\n"), Rounds(1 << 20))


@pytest.mark.parametrize("loss", ["0.01", "1"])
def test_a_standstill_names_the_loss(tmp_path: Path, loss: str) -> None:
    """Lost frames can be why nothing moves, too: beside a link that is down, or alone."""
    down = "failures: [{what: link, name: r0h0, at: 10us}]\n" if loss != "1" else ""
    said = rf"nothing has moved.*, or takes that long; each line loses {loss} of its frames: give less as links\.loss$"
    with pytest.raises(PerformanceError, match=said):
        simulate("allreduce", load(tmp_path, down, {"links.loss": loss}), Rounds(1 << 16))


@pytest.mark.parametrize(
    ("one", "other"),
    [("host", "host"), ("switch", "switch"), ("trunk", "trunk"), ("rail", "link"), ("link", "rail"), ("rail", "rail")],
)
def test_failures_of_every_kind_add_up(tmp_path: Path, one: str, other: str) -> None:
    """A rail's lines are those of its hosts' links."""
    names = {"host": "r0h0", "switch": "r0", "trunk": "r0-s0", "link": "r0h0", "rail": "a"}

    def took(*lines: str) -> float:
        text = f"rails: [{{name: a}}]\nfailures: [{', '.join(lines)}]\n"
        return simulate("nezha", load(tmp_path, text), Rounds(1 << 20)).rounds[0]

    long = f"{{what: {one}, name: {names[one]}, at: 10us, until: 6ms}}"
    within = f"{{what: {other}, name: {names[other]}, at: 20us, until: 2ms}}"
    behind = f"{{what: {one}, name: {names[one]}, at: 6ms, until: 8ms}}"
    assert took(within, long) > 5.9e-3
    assert took(long, within) > 5.9e-3
    assert took(behind, long) > 7.9e-3


def test_what_is_drawn_repairs_nothing_else(tmp_path: Path) -> None:
    drawn = "{what: link, name: r0h0, every: 100us, lasts: 100us, within: 1s}"
    text = f"failures: [{drawn}, {{what: link, name: r0h0, at: 10us, until: 5ms}}]\n"
    assert simulate("allreduce", load(tmp_path, text), Rounds(1 << 20)).rounds[0] > 4.9e-3


def test_a_line_that_begins_to_lose_frames_loses_those_that_it_would_have_lost_all_along() -> None:
    """What becomes of a frame depends on its number on the line, also of those that went before it without faults."""

    def times(before: Faults) -> list[int]:
        topology = rack_spine(racks=[["a", "b", "c"]], spines=0)
        network = Network(Cluster(topology, LinkModel(faults=before)), seed=5)
        stream = network.allreduce(["a", "b", "c"])
        for line in (line for both in network.host_lines.values() for line in both):
            network.simulation.fail_line(30_000_000, line, Faults(loss=0.01, duplicate=0.02))
        workload = Workload()
        settled = workload.add(Action.DELAY, amount=SETTLED)
        workload.transfer(stream, 1 << 19, [settled])
        return workload.run(network)[:, 1].tolist()

    never = Faults(burst=Burst(enter=1e-300, loss=0))
    assert times(Faults()) == times(never)


def test_rounds_go_on_through_failures_by_chance(tmp_path: Path) -> None:
    cluster = load(tmp_path, "failures: [{what: link, name: 'r*', every: 300us, lasts: 50us, within: 1s}]\n")
    calm = simulate("allreduce", load(tmp_path, ""), Rounds(1 << 18, 60))
    one, again, other = (simulate("allreduce", cluster, Rounds(1 << 18, 60), seed=seed) for seed in (3, 3, 4))
    assert one.rounds == again.rounds != other.rounds
    assert sum(one.rounds) > 1.1 * sum(calm.rounds)
    assert one.record is not None and one.record.lost > 0
