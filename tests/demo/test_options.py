"""Options, schedule, events, command line."""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from catchment.demo import LabError, TrainingOptions
from catchment.demo import __main__ as command_line
from catchment.program import run_program
from catchment.sim.lab import events
from catchment.sim.training.options import Plan, defaults_for
from catchment.sim.training.root import WEIGHTS_FILE, collect, initial_layers


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], TrainingOptions()),
        (["--target", "bmv2"], defaults_for("bmv2")),
        (
            ["--steps", "7", "--target", "bmv2", "--out-of-core", "--no-reference", "--output", "there"],
            replace(defaults_for("bmv2"), steps=7, out_of_core=True, reference=False, output=Path("there")),
        ),
    ],
)
def test_the_command_line_gives_the_same_defaults(
    words: list[str], expected: TrainingOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = []
    monkeypatch.setattr(command_line, "run", lambda options, _console: given.append(options))
    with pytest.raises(SystemExit) as ended:
        run_program(command_line.demo, words)
    assert (ended.value.code, given) == (0, [expected])


def test_a_path_is_no_markup(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(command_line, "run", lambda options, console: console.print(f"report in {options.output}"))
    with pytest.raises(SystemExit) as ended:
        run_program(command_line.demo, ["--output", "p[/x]:smile:"])
    assert (ended.value.code, capsys.readouterr().out) == (0, "report in p[/x]:smile:\n")


def test_a_slow_target_starts_from_a_small_training() -> None:
    slow, usual = defaults_for("bmv2"), defaults_for("embedded")
    assert slow.target == "bmv2"
    assert slow.shape.parameters * slow.steps < usual.shape.parameters * usual.steps / 100
    # what the root multicasts in one window fits a queue of 64 packets per port, five ports
    assert slow.slots * (slow.workers + 1) <= 64


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"workers": 0}, "workers 0"),
        ({"workers": 65}, "workers 65"),
        ({"preset": "huge"}, "one of tiny, demo"),
        ({"steps": 0}, "steps 0"),
        ({"loss": 0.7}, "loss 0.7"),
        ({"lanes": 100}, "lanes 100"),
        ({"slots": 48}, "power of two"),
        ({"wire": "fp8"}, "bf16 or fp32"),
        ({"target": "tofino"}, "target"),
        ({"network": "air"}, "network"),
        ({"mtu": 100}, "mtu"),
        ({"rate": 0.0}, "rate"),
        ({"rate": float("inf")}, "rate inf"),
        ({"seed": -1}, "seed -1: 0 to"),
        ({"seed": 1 << 64}, "seed 18446744073709551616: 0 to 18446744073709551615"),
        ({"batch": 0}, "batch"),
        ({"evaluate": 0}, "evaluate"),
        ({"timeout": 0.0}, "timeout"),
        ({"arena": -1}, "arena -1"),
    ],
)
def test_wrong_options_say_what_is_right(wrong: dict[str, object], text: str) -> None:
    with pytest.raises(LabError, match=text):
        TrainingOptions(**wrong)


def test_main_gives_an_exit_code_and_a_message(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        run_program(command_line.demo, ["--network", "memory", "--loss", "0.1"])
    assert caught.value.code == 1
    assert "could lose packets" in capsys.readouterr().err
    with pytest.raises(SystemExit) as caught:
        run_program(command_line.demo, ["--steps", "0"])
    assert caught.value.code == 2
    assert "steps 0: at least 1" in capsys.readouterr().err
    with pytest.raises(SystemExit) as caught:
        run_program(command_line.demo, ["--network", "memory", "--preset", "tiny", "--roots", "99"])
    assert caught.value.code == 1
    assert "99 nodes for 29 pieces" in capsys.readouterr().err
    with pytest.raises(SystemExit) as caught:
        run_program(command_line.demo, ["--preset", "huge"])
    assert caught.value.code == 2
    assert "'huge' is not one of: tiny, demo" in capsys.readouterr().err


def test_an_output_that_cannot_be_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "file"
    place.touch()
    with pytest.raises(SystemExit) as caught:
        run_program(command_line.demo, ["--network", "memory", "--preset", "tiny", "--output", str(place)])
    said = capsys.readouterr().err
    assert caught.value.code == 1
    assert said == f"demo: cannot write --output {place}: {place} is no folder; give another path\n"


def test_weights_that_do_not_fit_the_disk_leave_those_that_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    options = TrainingOptions(preset="tiny", output=tmp_path)
    (tmp_path / WEIGHTS_FILE).write_bytes(b"of an earlier run")
    torch.save(initial_layers(options)[1], tmp_path / "part-0.pt")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(LabError, match=r"weights.pt: cannot be written: No space left on device"):
        collect(options)
    assert (tmp_path / WEIGHTS_FILE).read_bytes() == b"of an earlier run"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["part-0.pt", WEIGHTS_FILE]


def test_the_schedule_validates_first_last_and_between() -> None:
    passes = TrainingOptions(steps=7, evaluate=3).passes
    assert passes == (False, True, True, True, False, True, True, True, False, True, False)
    assert TrainingOptions(steps=4, evaluate=100).passes == (False, True, True, True, True, False)


def test_the_learning_rate_rises_then_falls() -> None:
    options = TrainingOptions(steps=100)
    rates = [options.warmed(step) for step in range(100)]
    assert rates[0] == pytest.approx(0.1)
    assert max(rates) == pytest.approx(1.0)
    assert rates[:10] == sorted(rates[:10])
    assert rates[10:] == sorted(rates[10:], reverse=True)
    assert 0.1 <= rates[-1] < 0.11


def test_a_plan_survives_its_file(tmp_path: Path) -> None:
    plan = Plan(TrainingOptions(output=tmp_path, loss=0.01, seed=4), {"w0": {"role": "worker", "wid": 0}})
    plan.write()
    assert Plan.read(plan.path) == plan


def test_events_refuse_what_is_none() -> None:
    assert events.parse('{"event": "pass", "x": 1}') == {"event": "pass", "x": 1}
    for line in ("nonsense", "[1]", '{"x": 1}', '{"event": 3}'):
        with pytest.raises(LabError, match="not an event"):
            events.parse(line)


def test_processes_that_run_elsewhere_find_the_output() -> None:
    """`catchment demo` in any folder: hosts of the network begin in the checkout's."""
    assert Path(TrainingOptions(output=Path("there")).to_json()["output"]) == Path.cwd() / "there"
