"""Externs of a program's own, in C++ and in Python: the example of docs/howto/user-externs.md."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from typer.testing import CliRunner

from catchment.cli import app
from catchment.controlplane.errors import ControlPlaneError
from catchment.softswitch.build import build
from catchment.softswitch.compiler.diagnostics import CompileError
from catchment.softswitch.compiler.frontend import check_file
from catchment.softswitch.errors import SwitchError
from catchment.softswitch.inprocess import Switch
from catchment.softswitch.interpreter import InterpretedSwitch, InterpreterError

HERE = Path(__file__).parent
PROGRAM, CPP, PYTHON = (HERE / f"bloom.{suffix}" for suffix in ("p4", "hpp", "py"))


def probe(key: int, rounds: int = 0) -> bytes:
    return key.to_bytes(4, "big") + bytes([rounds]) + bytes(7)


def test_compiled_and_interpreted_do_the_same(rng: random.Random) -> None:
    compiled = Switch(build(PROGRAM, strict=True, externs=CPP))
    interpreted = InterpretedSwitch(check_file(PROGRAM).program, externs=PYTHON)
    for _ in range(200):
        frame = probe(rng.choice((1, 2, 3, 50, 99, 100, 7000, 0xFFFFFFFF, rng.getrandbits(32))), rng.randrange(256))
        assert compiled.inject(0, frame) == interpreted.inject(0, frame), frame.hex()


@pytest.mark.parametrize("engine", ["compiled", "interpreted"])
def test_results_and_state(engine: str) -> None:
    """Worked out by hand: flags are odd (1), seen by `first` (2), seen by `second` (4)."""
    if engine == "compiled":
        switch: Switch | InterpretedSwitch = Switch(build(PROGRAM, strict=True, externs=CPP))
    else:
        switch = InterpretedSwitch(check_file(PROGRAM).program, externs=PYTHON)

    def send(key: int, rounds: int) -> tuple[int, int, int, int]:
        [(port, frame)] = switch.inject(0, probe(key, rounds))
        assert port == 1
        return frame[4], int.from_bytes(frame[5:7], "big"), frame[7], int.from_bytes(frame[8:12], "big")

    assert send(0x00020001, 7) == (8, 3, 1, 0)  # `second` is empty: 0 - 1 + 1
    assert send(0x00020001, 255) == (0, 3, 3, 0)
    assert send(50, 0) == (1, 50, 0, 50)
    assert send(50, 0) == (1, 50, 6, 50)
    for key in (1000, 1002, 1004, 1006):
        send(key, 0)
    assert send(50, 0)[2] == 4, "`first` has forgotten it, `second` has not"


@pytest.mark.sampled(4)
def test_the_verbs_take_them(tmp_path: Path) -> None:
    test = tmp_path / "bloom.stf"
    test.write_text("packet 0 00020001 07 0000 00 00000000\nexpect 1 00020001 08 0003 01 00000000 $\n")
    arguments = ["p4", "stf", str(PROGRAM), str(test), "--both", "--externs", str(CPP), "--externs", str(PYTHON)]
    shown = CliRunner().invoke(app, arguments)
    assert shown.exit_code == 0, shown.output
    run = ["p4", "run", str(PROGRAM), probe(50).hex(), "--externs", str(PYTHON)]
    assert CliRunner().invoke(app, run).output.startswith("1 00000032010032")
    made = CliRunner().invoke(app, ["p4", "compile", str(PROGRAM), "--externs", str(CPP), "-o", str(tmp_path / "out")])
    assert made.exit_code == 0, made.output
    assert (tmp_path / "out" / "bloom.so").is_file()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--externs", "missing.hpp"], "no such file"),
        (["--externs", str(PROGRAM)], "not a .hpp"),
        (["--externs", str(CPP), "--externs", str(CPP)], "one .hpp file"),
    ],
)
def test_wrong_files_are_told(arguments: list[str], message: str) -> None:
    shown = CliRunner().invoke(app, ["p4", "compile", str(PROGRAM), *arguments])
    assert isinstance(shown.exception, ControlPlaneError) and message in str(shown.exception)


def test_without_them_the_program_is_refused_at_its_place(tmp_path: Path) -> None:
    with pytest.raises(CompileError, match=r"bloom.p4:\d+:\d+: error: extern Seen, .*--externs FILE.hpp"):
        build(PROGRAM)
    with pytest.raises(InterpreterError, match=r"extern Seen: no file implements it"):
        InterpretedSwitch(check_file(PROGRAM).program)
    only = tmp_path / "only.py"
    only.write_text(PYTHON.read_text().replace("def most", "def least"))
    switch = InterpretedSwitch(check_file(PROGRAM).program, externs=only)
    with pytest.raises(InterpreterError, match=r"extern Seen.most is not implemented"):
        switch.inject(0, probe(1))


def test_what_python_returns_is_checked(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.py"
    wrong.write_text(PYTHON.read_text().replace("rounds + 1, value % 2 != 0", "rounds + 1"))
    switch = InterpretedSwitch(check_file(PROGRAM).program, externs=wrong)
    with pytest.raises(InterpreterError, match=r"extern fold returned .*: 3 numbers are due"):
        switch.inject(0, probe(1))


def test_an_error_in_the_cpp_names_the_file(tmp_path: Path) -> None:
    broken = tmp_path / "broken.hpp"
    broken.write_text(CPP.read_text().replace("bool add(", "bool added("))
    with pytest.raises(SwitchError, match=r"broken\.hpp"):
        build(PROGRAM, externs=broken)


@pytest.mark.sampled(4)
def test_a_change_of_the_cpp_is_compiled_anew(tmp_path: Path) -> None:
    changed = tmp_path / "changed.hpp"
    changed.write_text(CPP.read_text())
    first = build(PROGRAM, externs=changed).shared_object
    changed.write_text(CPP.read_text().replace("rounds + 1", "rounds + 2"))
    assert build(PROGRAM, externs=changed).shared_object != first


def test_headers_are_not_handed_over(tmp_path: Path) -> None:
    program = tmp_path / "bloom.p4"
    text = PROGRAM.read_text().replace("extern Seen {", "extern void take<T>(in T value);\nextern Seen {")
    program.write_text(text.replace("sm.egress_spec = 1;", "sm.egress_spec = 1; take(hdr.probe);"))
    with pytest.raises(CompileError, match="extern take with a value of type probe_h"):
        build(program, externs=CPP)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("\ndef fold(:\n", "wrong.py: SyntaxError: invalid syntax (wrong.py, line 2)"),
        ("raise SystemExit(3)", "wrong.py:1: SystemExit: 3"),
        ("def end():\n    exit()\n\nend()\n", "wrong.py:2: SystemExit: None"),
        ("import nothing_of_the_kind", "wrong.py:1: ModuleNotFoundError: No module named 'nothing_of_the_kind'"),
        ("open('/nonexistent')", "wrong.py:1: No such file or directory"),
        ("\0", "wrong.py: "),
    ],
)
@pytest.mark.parametrize("verb", ["run", "stf"])
def test_a_file_that_cannot_be_imported_is_one_message(tmp_path: Path, content: str, said: str, verb: str) -> None:
    wrong = tmp_path / "wrong.py"
    wrong.write_text(content)
    (tmp_path / "test.stf").write_text("packet 0 00\n")
    words = [probe(50).hex()] if verb == "run" else [str(tmp_path / "test.stf"), "--interpret"]
    result = CliRunner().invoke(app, ["p4", verb, str(PROGRAM), *words, "--externs", str(wrong)])
    assert result.exit_code == 1
    complaint = str(result.exception) if isinstance(result.exception, ControlPlaneError) else result.output
    assert f"{tmp_path}/{said}" in complaint


@pytest.mark.parametrize("line", ["exit(3)", "1 / 0", "open('/nonexistent')"])
@pytest.mark.parametrize("where", ["    return (value >> 16)", "        self.size = size"])
def test_what_a_users_function_raises_is_one_message(tmp_path: Path, line: str, where: str) -> None:
    wrong = tmp_path / "wrong.py"
    text = PYTHON.read_text()
    at = text.index(where)
    indent = where[: len(where) - len(where.lstrip())]
    wrong.write_text(f"{text[:at]}{indent}{line}\n{text[at:]}")
    result = CliRunner().invoke(app, ["p4", "run", str(PROGRAM), probe(50).hex(), "--externs", str(wrong)])
    assert isinstance(result.exception, ControlPlaneError)
    said = {"exit(3)": "SystemExit: 3", "1 / 0": "ZeroDivisionError: ", "open('/nonexistent')": "No such file"}[line]
    place = f"{wrong}:{text[:at].count(chr(10)) + 1}: {said}"
    assert str(result.exception).startswith(str(PROGRAM)) and place in str(result.exception)
