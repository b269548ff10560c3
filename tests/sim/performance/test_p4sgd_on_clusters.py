"""P4SGD's epochs on clusters: the cycle model over the cluster's links and switch."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from bench.glm_table3 import all_reduce
from catchment.checkout import ROOT
from catchment.sim.golden.glm_cycles import CLOCK_HZ, PAPER_WORKLOADS, Setting, Workload
from catchment.sim.performance.cluster import Cluster, rack_spine
from catchment.sim.performance.errors import PerformanceError
from catchment.sim.performance.glm import GlmTraining, all_reduce_seconds, glm_epochs, round_seconds
from catchment.sim.performance.models import LinkModel, SwitchModel
from catchment.sim.performance.requests import Mode, Request

ONE_SWITCH = ROOT / "sim" / "clusters" / "one-switch.yaml"


def cluster_of(workers: int, links: LinkModel | None = None) -> Cluster:
    return Cluster(rack_spine(racks=[[f"w{at}" for at in range(workers)]], spines=0), links or LinkModel())


def test_an_all_reduce_takes_what_the_bench_of_the_hardware_says() -> None:
    figures, _ = all_reduce()
    assert 1e6 * round_seconds(cluster_of(8)) == pytest.approx(figures[0].value)


def test_an_epoch_is_its_micro_batches_and_an_all_reduce_and_56_clocks_a_mini_batch() -> None:
    cluster = cluster_of(8)
    for data in PAPER_WORKLOADS[1:]:
        clocks = 8 * Setting(workers=8).shares(data).engine_chunks * 4 + 56
        one = clocks / CLOCK_HZ + all_reduce_seconds(cluster)
        expected = -(-data.samples // 64) * one
        assert glm_epochs(cluster, GlmTraining(data)).rounds[0] == pytest.approx(expected, rel=0.01)


def test_longer_ways_and_more_features_take_longer(rng: random.Random) -> None:
    near, far = cluster_of(4), cluster_of(4, LinkModel(latency=rng.randrange(1_000_000, 9_000_000)))
    samples, features = rng.randrange(64, 5000), rng.randrange(1, 100_000)
    training = GlmTraining(Workload("", samples, features))
    first, second = (glm_epochs(cluster, training) for cluster in (near, far))
    assert first.rounds[0] < second.rounds[0] and first.exposed < second.exposed
    slower = replace(near, switch=SwitchModel(pipeline=4_000_000))
    assert first.rounds[0] < glm_epochs(slower, training).rounds[0]
    wider = GlmTraining(Workload("", samples, features + 64 * 4 * 8 * 4))
    assert first.rounds[0] < glm_epochs(near, wider).rounds[0]


def test_a_mini_batch_that_is_larger_than_the_data_takes_as_long_as_all_of_it() -> None:
    data = Workload("", samples=1000, features=20_000)
    all_of_it, larger = (glm_epochs(cluster_of(8), GlmTraining(data, batch)) for batch in (1000, 1 << 24))
    assert larger.rounds[0] == all_of_it.rounds[0] and larger.exposed == all_of_it.exposed


def test_a_request_gives_an_epoch_each_round() -> None:
    (request,) = Request.all_of("p4sgd", ONE_SWITCH, ["data=1000x20000", "batch=32", "rounds=3"], [], mode=Mode.FLOW)
    outcome = request.run()
    assert len(outcome.rounds) == 3 and len(set(outcome.rounds)) == 1 and 0 < outcome.exposed < 1


@pytest.mark.parametrize(
    ("settings", "mode", "says"),
    [
        ([], Mode.FRAME, "without frames: use --mode flow"),
        (["data=mnist"], Mode.FLOW, "no data 'mnist'; give gisette"),
        (["bits=9"], Mode.FLOW, "1 to 8 bits"),
        (["batch=many"], Mode.FLOW, "p4sgd: batch=many: give a whole number"),
        (["batch=0"], Mode.FLOW, "mini-batch of 0 samples: give a multiple of 8"),
        (["batch=7"], Mode.FLOW, "mini-batch of 7 samples: give a multiple of 8"),
        (["batch=100000000"], Mode.FLOW, "at most 16777216"),
        (["data=0x7"], Mode.FLOW, "at least one sample"),
        (["engines=9"], Mode.FLOW, "9 engines"),
        (["rounds=0"], Mode.FLOW, "at least one epoch"),
        (["size=1MiB"], Mode.FLOW, "p4sgd has no 'size'; it has data"),
        (["fabric.hosts=33"], Mode.FLOW, "33 workers"),
        (["links.loss=0.1"], Mode.FLOW, "knows no faults"),
    ],
)
def test_what_p4sgd_cannot_do_is_refused_before_anything_runs(settings: list[str], mode: Mode, says: str) -> None:
    with pytest.raises(PerformanceError, match=says):
        Request.all_of("p4sgd", ONE_SWITCH, settings, [], mode=mode)


def test_workers_of_several_switches_are_refused() -> None:
    cluster = Cluster(rack_spine(racks=[["a", "b"], ["c"]], spines=1))
    with pytest.raises(PerformanceError, match=r"one switch, these are on 2 \(r0, r1"):
        all_reduce_seconds(cluster)
