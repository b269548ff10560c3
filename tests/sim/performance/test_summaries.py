"""What the summary of every workload says: exposed communication, utilisation, stragglers, slots."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from catchment.cli import app
from catchment.sim.performance.requests import STEPS, Mode

ADDING = ("allreduce", "luwu", "switchml", "nezha")
FORWARDING = ("ring", "tree")
SHARES = ("exposed", "utilisation", "straggler_cost")
CLUSTER = """
fabric: {kind: rack-spine, racks: 2, per_rack: 2, spines: 1, optimizers: 1}
rails: [{name: a}, {name: b}]
"""
UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "ps": 1e-12}
SLOW = "node: {slow: {r0h1: 2.0}}\n"


def summary(tmp_path: Path, text: str, *words: str) -> dict[str, Any]:
    path = tmp_path / "cluster.yaml"
    path.write_text(text, "utf-8")
    done = CliRunner().invoke(
        app, ["simulate", *words, "--cluster", str(path), "--json"], catch_exceptions=False
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    (only,) = json.loads(done.output)
    assert all(0 <= only[share] <= 1 for share in SHARES), only
    return dict(only)


@pytest.mark.parametrize("mode", [Mode.FRAME, Mode.TRAIN])
@pytest.mark.parametrize("kind", [*ADDING, *FORWARDING])
def test_rounds_of_every_workload(kind: str, mode: Mode, tmp_path: Path) -> None:
    """One host of four computes twice as long: a fifth of what hosts compute is waited for."""
    words = ["--mode", mode, "--set", "size=256KiB", "--set", "slots=64", "--set", "compute=50us", "--set", "rounds=2"]
    told = summary(tmp_path, CLUSTER + SLOW, kind, *words)
    whole = sum(told["rounds"])
    assert told["exposed"] == pytest.approx(1 - 2 * 100e-6 / whole)
    assert told["utilisation"] == pytest.approx(2 * 62.5e-6 / whole)
    assert told["straggler_cost"] == pytest.approx(2 * 37.5e-6 / whole)
    record = told["record"]
    assert 0 < record["busiest"] <= 1
    used = record["slots_used"]
    assert list(used) == ["10%", "50%", "90%"]
    assert 1 >= used["10%"] >= used["50%"] >= used["90%"] >= 0
    assert (used["10%"] > 0) == (kind in ADDING)


@pytest.mark.parametrize("kind", ["allreduce", "luwu", "ring", "nezha"])
def test_rounds_in_flow_mode(kind: str, tmp_path: Path) -> None:
    told = summary(tmp_path, CLUSTER + SLOW, kind, "--mode", "flow", "--set", "compute=50us", "--set", "size=256KiB")
    assert told["exposed"] + told["utilisation"] + told["straggler_cost"] == pytest.approx(1)
    assert told["straggler_cost"] == pytest.approx(37.5e-6 / sum(told["rounds"]))


def test_epochs(tmp_path: Path) -> None:
    told = summary(tmp_path, "fabric: {kind: one-switch, hosts: 4}\n", "p4sgd", "--mode", "flow")
    assert told["exposed"] + told["utilisation"] == pytest.approx(1)
    assert told["straggler_cost"] == 0


@pytest.mark.parametrize("system", STEPS)
@pytest.mark.parametrize("differ", [False, True])
def test_steps_of_every_system(system: str, differ: bool, tmp_path: Path) -> None:
    """The same whether one rank stands for all or every rank is simulated."""
    hosts = "hosts: [{name: opt, peak: 1tflops}]\n" if differ else ""
    small = ["--set", "layers=3", "--set", "hidden=512", "--set", "group=4"]
    even, slow = (summary(tmp_path, CLUSTER + node + hosts, system, *small) for node in ("", SLOW))
    assert even["straggler_cost"] == pytest.approx(0, abs=1e-9)
    assert slow["computing"] == pytest.approx(2 * even["computing"])
    assert slow["straggler_cost"] == pytest.approx((2 - 1.25) * even["computing"] / slow["seconds"])
    assert slow["utilisation"] == pytest.approx(1.25 * even["computing"] / slow["seconds"])
    for told in (even, slow):
        assert told["exposed"] + told["utilisation"] + told["straggler_cost"] == pytest.approx(1)
        # Too small a model has all its layers summed by the proxies.
        assert (0 < told["line"] <= 1) == (system != "coarse")


@pytest.mark.parametrize("words", [["simulate", "coarse"], ["simulate", "ddp"], ["simulate-step", "zero3"]], ids=str)
def test_a_small_step_is_printed_with_its_digits(words: list[str], tmp_path: Path) -> None:
    """Each time of the table is that of --json to four digits, however short."""
    path = tmp_path / "cluster.yaml"
    path.write_text("fabric: {kind: one-switch, hosts: 2}\n", "utf-8")
    numbers = {"layers": 1, "hidden": 16, "batch": 1, "sequence": 1}
    words = [*words, "--cluster", str(path)]
    for key, value in numbers.items():
        words += ["--set", f"{key}={value}"] if words[0] == "simulate" else [f"--{key}", str(value)]
    table, told = (CliRunner().invoke(app, [*words, *more], catch_exceptions=False).output for more in ([], ["--json"]))
    document = json.loads(told)
    step = document if isinstance(document, dict) else document[0]
    printed = [float(number) * UNITS[unit] for number, unit in re.findall(r"([\d.]+) (s|ms|us|ns|ps)\b", table)]
    for key in ("seconds", "computing", "communicating"):
        assert step[key] > 0
        assert pytest.approx(step[key], rel=1e-3) in printed


def test_rounds_beyond_those_shown_are_told(tmp_path: Path) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text(CLUSTER, "utf-8")
    words = ["simulate", "allreduce", "--cluster", str(path), "--set", "size=4KiB"]
    few, more = (
        CliRunner().invoke(app, [*words, "--set", f"rounds={rounds}"], catch_exceptions=False).output.replace("\n", " ")
        for rounds in (4, 5)
    )
    assert "on average" not in few
    assert re.search(r"\b\d\.\d\d\d us, \d\.\d\d\d us", few)
    assert re.search(r"\.\.\. \(5 rounds, [\d.]+ us on average\)", more)
