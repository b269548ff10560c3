"""Steps of training as workloads of `catchment simulate`: volumes of the designs, output, bad input."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from catchment.cli import app
from catchment.controlplane.errors import ControlPlaneError
from catchment.sim.performance.cluster import Cluster, Node, rack_spine
from catchment.sim.performance.errors import PerformanceError
from catchment.sim.performance.requests import STEPS, Request
from catchment.sim.performance.run import workers_of
from catchment.sim.performance.steps import generate
from catchment.sim.performance.steps.generate import GENERATORS, Step, coarse_plan
from catchment.sim.performance.steps.graph import Collective
from catchment.sim.performance.steps.requests import StepRequest
from catchment.sim.performance.steps.run import run_step
from catchment.sim.performance.steps.times import CollectiveTimes
from catchment.sim.performance.steps.transformer import Transformer

CLUSTER = "fabric: {kind: one-switch, hosts: 4}\nnode: {gpus: 2}\n"


def cluster_of(hosts: int, gpus: int) -> Cluster:
    topology = rack_spine(racks=[[f"h{at}" for at in range(hosts)]], spines=0, above=["opt"])
    return Cluster(topology, node=Node(gpus=gpus))


def sent_by_formula(system: str, cluster: Cluster, step: Step, allreduce: str) -> float:
    """Bytes that a host's line sends in a step, as the designs have it."""
    hosts, gpus = len(workers_of(cluster)), cluster.node.gpus
    n, k, p, s = hosts * gpus, gpus, step.group, step.micro_steps
    whole = float(step.model.layers * step.model.layer_bytes)

    def summed(size: float, nodes: int) -> float:
        if nodes < 2:
            return 0.0
        return size if allreduce == "allreduce" else 2 * (nodes - 1) / nodes * size

    if system == "ddp":
        return summed(whole, hosts)
    if system == "zero3":
        return 3 * s * (n - k) / n * whole
    if system == "coarse":
        return summed(coarse_plan(cluster, step).first * step.model.layer_bytes, hosts)
    gathers = 3 * s * max(0, p - k) / p * whole
    return gathers + summed(min(1.0, k / p) * whole, n // max(p, k))


@pytest.mark.parametrize("allreduce", ["allreduce", "ring"])
@pytest.mark.parametrize("system", STEPS)
def test_a_line_sends_what_the_designs_say(system: str, allreduce: str, rng: random.Random) -> None:
    for _ in range(20):
        gpus = rng.choice([1, 2, 4, 8])
        hosts = rng.choice([2, 4, 8])
        group = rng.choice([size for size in (1, 2, 4, 8, 16, 32, 64) if size <= hosts * gpus])
        model = Transformer(rng.randrange(1, 6), 128 * rng.randrange(1, 9), 1, 128)
        step, cluster = Step(model, rng.randrange(1, 5), group), cluster_of(hosts, gpus)
        outcome, _ = run_step(cluster, [GENERATORS[system](cluster, step, 0)], allreduce=allreduce)
        assert outcome.sent == pytest.approx(sent_by_formula(system, cluster, step, allreduce))
        assert outcome.line == pytest.approx(outcome.sent / 12.5e9 / outcome.seconds)
        assert outcome.utilisation == pytest.approx(1 - outcome.exposed)
        every = [GENERATORS[system](cluster, step, rank) for rank in range(hosts * gpus)]
        assert run_step(cluster, every, allreduce=allreduce)[0].sent == pytest.approx(outcome.sent)


@pytest.mark.parametrize("micro_steps", [1, 2, 4, 8])
def test_no_other_cut_of_a_model_is_faster_than_the_plan(micro_steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gradients go to proxies in the last micro-step alone."""
    cluster = Cluster(rack_spine(racks=[[f"h{at}" for at in range(8)]], spines=0))
    step = Step(Transformer(24, 1024, 1, 512), micro_steps)
    plan = coarse_plan(cluster, step)
    took = []
    for first in range(step.model.layers + 1):
        monkeypatch.setattr(generate, "coarse_plan", lambda *_, first=first: replace(plan, first=first))
        took.append(run_step(cluster, [generate.coarse(cluster, step, 0)], allreduce="ring")[0].seconds)
    assert plan.first == 8
    assert took[plan.first] == min(took)
    assert plan.seconds == pytest.approx(min(took), rel=0.1)


def test_groups_with_a_part_of_each_node_share_its_line() -> None:
    size = 1 << 30
    shared, alone = CollectiveTimes(cluster_of(4, 8)), CollectiveTimes(cluster_of(4, 1))
    lane, whole = (0, 8, 16, 24), (0, 1, 2, 3)
    assert shared.seconds(Collective.ALL_REDUCE, lane, size // 8) == pytest.approx(
        alone.seconds(Collective.ALL_REDUCE, whole, size)
    )


def printed(words: list[str]) -> list[dict[str, object]]:
    done = CliRunner().invoke(app, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    found: list[dict[str, object]] = json.loads(done.output)
    return found


@pytest.mark.parametrize("system", STEPS)
def test_the_verb_runs_a_step(system: str, tmp_path: Path) -> None:
    cluster, trace = tmp_path / "cluster.yaml", tmp_path / "step.json"
    cluster.write_text(CLUSTER, "utf-8")
    asked = [
        "simulate",
        system,
        "--cluster",
        str(cluster),
        "--set",
        "layers=3",
        "--set",
        "hidden=512",
        "--set",
        "group=4",
    ]
    asked += ["--set", "node.scale_up=64GBps"]
    (only,) = printed([*asked, "--trace", str(trace), "--json"])
    outcome, _ = StepRequest(system, cluster, Step(Transformer(3, 512), group=4), {"node.scale_up": "64GBps"}).run()
    assert (only["seconds"], only["sent"]) == pytest.approx((outcome.seconds, outcome.sent))
    assert any("forward 2" in str(event.get("name")) for event in json.loads(trace.read_text("utf-8"))["traceEvents"])


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["ddp", "--set", "layers=96", "--set", "hidden=12288"], "GiB a GPU, .* more than the `memory` of"),
        (["zero3", "--set", "depth=3"], "a step has no 'depth'"),
        (["mics", "--set", "group=3"], "no whole number of partition groups of 3"),
        (["coarse", "--mode", "fold", "--set", "layers=2"], "hosts of coarse by allreduce do not all do the same"),
        (["ddp", "--mode", "frame", "--set", "layers=2", "--set", "nic.model=software"], "no endpoints in software"),
        (["ddp", "--sweep", "layers=1,2", "--trace", "x.json"], "no --sweep"),
        (["ddp", "--set", "layers=2", "--sweep", "allreduce=ring,star"], "all-reduce by 'star'"),
        (["ddp", "--set", "layers=2", "--set", "links.loss=0.01"], "no faults"),
    ],
)
def test_bad_input_is_refused(arguments: list[str], says: str, tmp_path: Path) -> None:
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text(CLUSTER, "utf-8")
    with pytest.raises(ControlPlaneError, match=says):
        CliRunner().invoke(app, ["simulate", *arguments, "--cluster", str(cluster)], catch_exceptions=False)


def test_an_unknown_workload_is_told_the_steps(tmp_path: Path) -> None:
    with pytest.raises(PerformanceError, match="steps of training: ddp, zero3, mics, coarse"):
        Request.all_of("fsdp", tmp_path, [], [])
