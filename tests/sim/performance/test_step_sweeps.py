"""Steps of training with every combination of settings, in processes."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest
from typer.testing import CliRunner

from catchment.checkout import ROOT
from catchment.cli import app
from catchment.sim.performance.errors import PerformanceError
from catchment.sim.performance.requests import STEPS
from catchment.sim.performance.steps.generate import Step
from catchment.sim.performance.steps.requests import StepRequest, run_steps
from catchment.sim.performance.steps.transformer import Transformer

REQUEST = StepRequest("ddp", ROOT / "sim" / "clusters" / "four-racks.yaml", Step(Transformer(4, 1024)))


def test_each_combination_is_what_it_is_alone() -> None:
    sweeps = ["layers=2,4", "links.host=25gbps,100gbps", "allreduce=ring"]
    shares: list[float] = []
    outcomes = run_steps(REQUEST.swept(sweeps), 2, shares.append)
    assert [tuple(request.varied.values()) for request, _ in outcomes] == [
        (layers, host, "ring") for layers in ("2", "4") for host in ("25gbps", "100gbps")
    ]
    for request, outcome in outcomes:
        alone = StepRequest(
            "ddp", REQUEST.cluster, Step(Transformer(int(request.varied["layers"]), 1024)),
            {"links.host": request.varied["links.host"]}, allreduce="ring",
        )  # fmt: skip
        assert outcome == alone.run()[0]
    times = [outcome.seconds for _, outcome in outcomes]
    assert times[0] > times[1]
    assert times[3] > times[1]
    assert shares == [0.25, 0.5, 0.75, 1.0]


@pytest.mark.parametrize("system", STEPS)
def test_the_verb_prints_each_combination(system: str) -> None:
    words = ["simulate", system, "--cluster", str(REQUEST.cluster), "--set", "layers=3", "--set", "hidden=512"]
    words += ["--set", "node.gpus=2", "--set", "links.up=800gbps", "--sweep", "links.host=10gbps,100gbps", "--json"]
    done = CliRunner().invoke(app, words, catch_exceptions=False)
    for one, host in zip(json.loads(done.output), ("10gbps", "100gbps"), strict=True):
        settings = {"node.gpus": "2", "links.up": "800gbps", "links.host": host}
        assert one["settings"] == {"layers": "3", "hidden": "512", **settings}
        alone = StepRequest(system, REQUEST.cluster, Step(Transformer(3, 512)), settings).run()[0]
        assert one == {"settings": one["settings"], **asdict(alone)}


def test_what_a_step_was_set_to_is_in_its_sweep() -> None:
    words = ["simulate-step", "ddp", "--cluster", str(REQUEST.cluster), "--layers", "2", "--hidden", "256"]
    words += ["--set", "links.host=25gbps", "--sweep", "batch=1,2", "--json"]
    found = json.loads(CliRunner().invoke(app, words, catch_exceptions=False).output)
    assert [one["settings"] for one in found] == [{"links.host": "25gbps", "batch": size} for size in ("1", "2")]


def test_what_rounds_were_set_to_is_with_them() -> None:
    words = ["simulate", "allreduce", "--cluster", str(REQUEST.cluster), "--mode", "flow", "--set", "size=64KiB"]
    words += ["--set", "links.host=25gbps", "--sweep", "rounds=1,2", "--json"]
    found = json.loads(CliRunner().invoke(app, words, catch_exceptions=False).output)
    told = {"size": "64KiB", "links.host": "25gbps"}
    assert [one["settings"] for one in found] == [{**told, "rounds": count} for count in ("1", "2")]
    assert [len(one["rounds"]) for one in found] == [1, 2]


@pytest.mark.parametrize(
    ("sweep", "says"),
    [
        ("depth=1,2", "no 'depth'"),
        ("layers=2,x", "layers=x"),
        ("links.speed=1gbps", "speed"),
        ("layers", "not KEY=VALUE"),
        ("node.memory=1MiB", "memory"),
        ("layers=2_0", "layers=2_0: give a whole number"),
        ("micro_steps=50001", "50001 micro-steps of 4 layers: a step has 200000 passes of layers at most"),
        ("batch=1000000000", r"needs 7\.81e\+06 GiB a GPU, 7\.81e\+06 more"),
    ],
)
def test_what_cannot_be_swept_is_refused_before_anything_runs(sweep: str, says: str) -> None:
    with pytest.raises(PerformanceError, match=says):
        REQUEST.swept([sweep])
