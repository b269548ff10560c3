"""`catchment p4 stf` on compiled code, on the interpreter and on both; and that Ctrl-C ends it."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from catchment.cli import app
from catchment.controlplane.errors import ControlPlaneError
from catchment.softswitch import interpreter
from catchment.softswitch.stf import Engine, Setting, find_tests, run_test, suite

PROGRAMS = Path(__file__).parent / "programs"
LOOPS = Path(__file__).parents[1] / "runtime" / "loops.p4"


@pytest.mark.sampled(4)
def test_the_interpreter_passes_what_the_compiled_switch_does(rng: random.Random) -> None:
    for program, test in rng.sample(find_tests(PROGRAMS), 4):
        outcome = run_test(program, test, Setting(engine=Engine.BOTH))
        assert outcome.result == "passed", "\n".join(outcome.reasons)


@pytest.mark.slow
@pytest.mark.parametrize(("program", "test"), find_tests(PROGRAMS), ids=lambda path: path.stem)
def test_both_pass_every_program(program: Path, test: Path) -> None:
    outcome = run_test(program, test, Setting(engine=Engine.BOTH))
    assert outcome.result == "passed", "\n".join(outcome.reasons)


def test_interpreting_needs_no_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suite, "build", None)
    test = tmp_path / "loops.stf"
    test.write_text("packet 0 0103 0000 00000000\nexpect 1 0103 0000 00000000 $\n")
    shown = CliRunner().invoke(app, ["p4", "stf", str(LOOPS), str(test), "--interpret"])
    assert (shown.exit_code, shown.output) == (0, f"{test}: passed\n")


def test_a_difference_between_both_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the test expects nothing of that port."""
    test = tmp_path / "loops.stf"
    test.write_text("packet 0 0103 0000 00000000\nexpect 1\n")
    arguments = ["p4", "stf", str(LOOPS), str(test), "--both"]
    assert CliRunner().invoke(app, arguments).exit_code == 0
    honest = interpreter.InterpretedSwitch.inject

    def wrong(self: interpreter.InterpretedSwitch, port: int, frame: bytes) -> list[tuple[int, bytes]]:
        return [(port, out + b"\x77") for port, out in honest(self, port, frame)]

    monkeypatch.setattr(interpreter.InterpretedSwitch, "inject", wrong)
    shown = CliRunner().invoke(app, arguments)
    assert shown.exit_code == 1
    assert "port 1, frame 1: compiled code sends 0103000000000000, the interpreter 010300000000000077" in shown.output


@pytest.mark.parametrize(("name", "said"), [("absent.stf", "^no test at"), ("", "^/.* is a folder, no test")])
def test_a_test_that_is_not_there_is_one_message(tmp_path: Path, name: str, said: str) -> None:
    todo = r"give a \.stf file, or none to run those beside .*loops\.p4"
    with pytest.raises(ControlPlaneError, match=f"{said}.*: {todo}"):
        CliRunner().invoke(app, ["p4", "stf", str(LOOPS), str(tmp_path / name)], catch_exceptions=False)


def test_one_engine_at_a_time() -> None:
    shown = CliRunner().invoke(app, ["p4", "stf", str(LOOPS), "--both", "--interpret"])
    assert isinstance(shown.exception, ControlPlaneError) and "--interpret and --both" in str(shown.exception)


@pytest.mark.parametrize("engine", ["--interpret", "--both"])
def test_the_step_limit_is_an_option(engine: str, tmp_path: Path) -> None:
    test = tmp_path / "loops.stf"
    test.write_text("packet 0 010A 0000 00000000\nexpect 1\n")
    arguments = ["p4", "stf", str(LOOPS), str(test), engine, "--max-steps"]
    assert CliRunner().invoke(app, [*arguments, "10"]).exit_code == 0
    shown = CliRunner().invoke(app, [*arguments, "9"])
    assert shown.exit_code == 1
    assert "its loops took more than 9 steps" in shown.output


def test_control_c_ends_it(tmp_path: Path) -> None:
    """Thousands of packets whose loops have no end are waiting."""
    test = tmp_path / "loops.stf"
    test.write_text("packet 0 01FF 0000 00000000\n" * 100_000)
    command = [sys.executable, "-m", "catchment.cli", "p4", "stf", str(LOOPS), str(test), "--max-steps", str(1 << 24)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            assert "its loops took more than" in process.stderr.readline()
            process.send_signal(signal.SIGINT)
            assert process.wait(120) != 0
        finally:
            process.kill()
