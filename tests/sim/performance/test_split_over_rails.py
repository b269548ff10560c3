"""Messages over several rails: the project's balancer decides, and each share goes on its rail's own network."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from catchment.checkout import ROOT
from catchment.host.collectives.rail_split import RailPolicy, RailShare
from catchment.sim.performance.cluster import Cluster, Failure, Rail, rack_spine
from catchment.sim.performance.cluster_file import load_cluster
from catchment.sim.performance.errors import ClusterError, PerformanceError
from catchment.sim.performance.models import LinkModel
from catchment.sim.performance.rails import NEZHA, rail_costs, rail_shares
from catchment.sim.performance.requests import Mode, Request
from catchment.sim.performance.rounds import Rounds, Splitting
from catchment.sim.performance.run import estimate, simulate
from catchment.sim.world import Faults

TWO_RAILS = ROOT / "sim" / "clusters" / "two-rails.yaml"
FAST, SLOW = LinkModel(host_byte=80, up_byte=80), LinkModel(host_byte=160, up_byte=160)


def cluster_of(*rails: Rail, racks: int = 2) -> Cluster:
    topology = rack_spine(racks=[[f"r{k}h{at}" for at in range(3)] for k in range(racks)], spines=int(racks > 1))
    return Cluster(topology, rails=rails)


def test_one_rail_is_the_all_reduce_itself(rng: random.Random) -> None:
    cluster = cluster_of(Rail("only"))
    size = rng.randrange(4, 200_000) // 4 * 4
    assert simulate(NEZHA, cluster, Rounds(size)).rounds == simulate("allreduce", cluster, Rounds(size)).rounds


def test_equal_rails_take_half_of_a_long_message_each_and_nothing_of_a_short_one() -> None:
    pair = cluster_of(Rail("a"), Rail("b"))
    alone = simulate("allreduce", pair, Rounds(1 << 22)).rounds[0]
    both = simulate(NEZHA, pair, Rounds(1 << 22)).rounds[0]
    assert both == pytest.approx(alone / 2 + 50e-6, rel=0.02)
    short = Rounds(1 << 14)
    assert simulate(NEZHA, pair, short).rounds == simulate("allreduce", pair, short).rounds


def test_every_frame_of_a_message_is_sent_once_on_one_of_the_rails() -> None:
    cluster = cluster_of(Rail("a"), Rail("b", links=SLOW), racks=1)
    record = simulate(NEZHA, cluster, Rounds(1 << 22)).record
    assert record is not None
    assert record.frames["PA"] == 3 * (1 << 22) // cluster.switch.vector_bytes


@pytest.mark.parametrize("by", ["switch", "ring"])
def test_flow_mode_gives_what_frame_mode_gives(by: str, rng: random.Random) -> None:
    cluster = cluster_of(Rail("a", links=FAST), Rail("b", by, SLOW, start=rng.randrange(20_000_000)))
    for policy in (RailPolicy.WATERFILL, RailPolicy.FIXED, RailPolicy.PAPER, RailPolicy.SINGLE):
        rounds = Rounds(1 << 22, splitting=Splitting(policy))
        flow, frame = estimate(NEZHA, cluster, rounds).rounds[0], simulate(NEZHA, cluster, rounds).rounds[0]
        assert flow == pytest.approx(frame, rel=0.05)


def test_the_balancer_beats_every_other_policy(rng: random.Random) -> None:
    links = [replace(FAST, host_byte=byte, up_byte=byte) for byte in rng.choices([80, 160, 320], k=2)]
    cluster = cluster_of(Rail("a", links=links[0]), Rail("b", "ring", links[1], start=rng.randrange(30_000_000)))
    times = {
        policy: simulate(NEZHA, cluster, Rounds(1 << 21, splitting=Splitting(policy))).rounds[0]
        for policy in RailPolicy
    }
    assert times[RailPolicy.WATERFILL] <= 1.05 * min(times.values())


def test_shares_follow_rates_and_starts() -> None:
    cluster = cluster_of(Rail("a", links=FAST), Rail("b", links=SLOW), Rail("late", links=SLOW, start=10**12))
    costs = rail_costs(cluster, cluster.hosts)
    assert costs[0].bytes_per_ms == pytest.approx(2 * costs[1].bytes_per_ms, rel=0.01)
    assert costs[2].start_ns == costs[1].start_ns + 10**9
    assert [cost.nominal for cost in costs] == [100_000, 50_000, 50_000]
    first, second = rail_shares(costs, 1 << 28, Splitting())
    assert (first.rail, second.rail) == (0, 1)
    assert first.elements == pytest.approx(2 * second.elements, rel=0.03)
    assert rail_shares(costs, 4, Splitting()) == [RailShare(0, 0, 1)]


def test_a_rail_that_fails_and_comes_back_keeps_its_share_waiting() -> None:
    calm = cluster_of(Rail("a"), Rail("b"))
    before = simulate(NEZHA, calm, Rounds(1 << 21)).rounds[0]
    back = replace(calm, failures=(Failure("rail", "b", 60_000_000, 160_000_000),))
    assert simulate(NEZHA, back, Rounds(1 << 21)).rounds[0] > before + 50e-6
    gone = replace(calm, failures=(Failure("rail", "b", 60_000_000),))
    with pytest.raises(PerformanceError, match="nothing has moved"):
        simulate(NEZHA, gone, Rounds(1 << 21))


def test_what_a_file_says_of_rails(tmp_path: Path) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text(
        "fabric: {kind: rack-spine, racks: 2, per_rack: 4, oversubscription: 2}\n"
        "links: {loss: 0.5}\n"
        "rails: [{name: a, host: 400gbps}, {name: b, by: ring, latency: 2us, start: 10us}]\n"
        "failures: [{what: rail, name: b, at: 1ms}]\n"
    )
    cluster = load_cluster(path)
    faults = Faults(loss=0.5)
    assert cluster.rails == (
        Rail("a", "switch", LinkModel(20, 10, 265_000, faults)),
        Rail("b", "ring", LinkModel(80, 40, 2_000_000, faults), 10_000_000),
    )
    assert cluster.failures == (Failure("rail", "b", 10**9),)
    for rails, says in (
        ("[{name: a}, {name: a}]", "rail 'a' is there twice"), ("[{name: a, by: tcp}]", "not one of: switch, ring"),
        ("[{name: a, host: 100}]", "has no unit"), ("[{host: 100gbps}]", "name"),
    ):  # fmt: skip
        path.write_text(f"fabric: {{kind: one-switch, hosts: 2}}\nrails: {rails}\n")
        with pytest.raises(ClusterError, match=says) as raised:
            load_cluster(path)
        assert str(raised.value).startswith(f"{path}:2: ")


def test_requests_for_rails_are_checked_before_anything_runs() -> None:
    (request,) = Request.all_of(NEZHA, TWO_RAILS, ["size=8MiB", "policy=slices", "together=1us"], [], mode=Mode.FLOW)
    slices = request.run().rounds[0]
    assert slices > 1.5 * Request.all_of(NEZHA, TWO_RAILS, ["size=8MiB"], [], mode=Mode.FLOW)[0].run().rounds[0]
    for workload, settings, says in (
        (NEZHA, ["policy=luck"], "no policy 'luck'; there are: waterfill"),
        ("allreduce", ["policy=paper"], "no 'policy'"),
    ):
        with pytest.raises(PerformanceError, match=says):
            Request.all_of(workload, TWO_RAILS, settings, [])
    with pytest.raises(PerformanceError, match="needs 1 to 8 rails"):
        Request.all_of(NEZHA, ROOT / "sim" / "clusters" / "four-racks.yaml", [], [])
