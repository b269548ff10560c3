"""STF tests as files: a program and its test, or a folder of them; on compiled code, on the interpreter, or on both."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from catchment.softswitch.build import build
from catchment.softswitch.compiler.diagnostics import CompileError
from catchment.softswitch.compiler.frontend import check_file
from catchment.softswitch.compiler.p4info import make_p4info
from catchment.softswitch.errors import SwitchError
from catchment.softswitch.inprocess import Switch
from catchment.softswitch.interpreter import InterpretedSwitch
from catchment.softswitch.interpreter.errors import InterpreterError
from catchment.softswitch.interpreter.switch import DEFAULT_MAX_STEPS
from catchment.softswitch.stf.language import StfError
from catchment.softswitch.stf.runner import Report, run


class Engine(StrEnum):
    """What runs the program."""

    COMPILED = "compiled"
    INTERPRETED = "interpreted"
    BOTH = "both"
    """One after the other; every port must send the same frames."""


@dataclass(frozen=True, slots=True)
class Setting:
    """How tests are run: the compiler's options, the engine, the rounds of loops per packet, what hears the log."""

    include_dirs: Sequence[Path] = ()
    defines: Mapping[str, str] = field(default_factory=dict)
    engine: Engine = Engine.COMPILED
    max_steps: int = DEFAULT_MAX_STEPS
    on_log: Callable[[str], None] | None = None
    externs: Sequence[Path] = ()
    """Files that implement the program's own externs: `.hpp` for compiled code, `.py` for the interpreter."""

    def externs_of(self, suffix: str) -> Path | None:
        """The file for one of them."""
        return next((file for file in self.externs if file.suffix == suffix), None)


@dataclass(frozen=True, slots=True)
class Outcome:
    """One test's result: "passed", "failed" (an expectation), "refused" (the program) or "error" (the test); why."""

    program: Path
    test: Path
    result: str
    seconds: float
    reasons: tuple[str, ...]


def find_tests(place: Path) -> list[tuple[Path, Path]]:
    """(program, test) of a folder: each PROGRAM.p4 with PROGRAM.stf and PROGRAM-*.stf; or those of one program."""
    programs = sorted(place.glob("*.p4")) if place.is_dir() else [place]
    pairs = []
    taken: set[Path] = set()
    for program in sorted(programs, key=lambda p: -len(p.stem)):  # a-b.stf is the test of a-b.p4, if that exists
        own = program.with_suffix(".stf")
        tests = [own, *program.parent.glob(f"{program.stem}-*.stf")]
        found = [test for test in tests if test.is_file() and test not in taken]
        taken.update(found)
        pairs += [(program, test) for test in found]
    return sorted(pairs)


def run_test(program: Path, test: Path, setting: Setting = Setting()) -> Outcome:
    """Runs the test on a fresh switch, or on one of each kind."""
    began = time.monotonic()
    try:
        text = test.read_text("utf-8", errors="replace")
        failures = _failures(program, test, text, setting)
    except CompileError as error:
        result, reasons = "refused", str(error).splitlines()
    except (StfError, SwitchError, InterpreterError, OSError, UnicodeDecodeError) as error:
        result, reasons = "error", str(error).splitlines()
    else:
        result, reasons = ("failed", failures) if failures else ("passed", [])
    return Outcome(program, test, result, time.monotonic() - began, tuple(reasons))


def _failures(program: Path, test: Path, text: str, setting: Setting) -> list[str]:
    if setting.engine is Engine.COMPILED:
        return _compiled(program, test, text, setting).failures
    if setting.engine is Engine.INTERPRETED:
        return _interpreted(program, test, text, setting).failures
    compiled = _compiled(program, test, text, setting)
    interpreted = _interpreted(program, test, text, setting)
    return [
        *(f"compiled: {failure}" for failure in compiled.failures),
        *(f"interpreted: {failure}" for failure in interpreted.failures),
        *_differences(test, compiled, interpreted),
    ]


def _compiled(program: Path, test: Path, text: str, setting: Setting) -> Report:
    built = build(
        program, setting.include_dirs, setting.defines, unique_names=False, externs=setting.externs_of(".hpp")
    )
    switch = Switch(built, seed=1, max_steps=setting.max_steps)
    if setting.on_log is not None:
        switch.on_log(setting.on_log)
    return run(switch, built.p4info, text, str(test))


def _interpreted(program: Path, test: Path, text: str, setting: Setting) -> Report:
    checked = check_file(program, setting.include_dirs, setting.defines)
    switch = InterpretedSwitch(checked.program, seed=1, max_steps=setting.max_steps, externs=setting.externs_of(".py"))
    if setting.on_log is not None:
        switch.on_log(setting.on_log)
    return run(switch, make_p4info(checked.program, unique_names=False), text, str(test))


def _differences(test: Path, compiled: Report, interpreted: Report) -> list[str]:
    """The first frame of each port that only one sends, or that both send with other bytes."""
    out = []
    for port in sorted({*compiled.received, *interpreted.received}):
        one, other = (list(report.received.get(port, [])) for report in (compiled, interpreted))
        if one == other:
            continue
        same = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
        shown = [frames[same].hex().upper() if same < len(frames) else "nothing" for frames in (one, other)]
        out.append(f"{test}: port {port}, frame {same + 1}: compiled code sends {shown[0]}, the interpreter {shown[1]}")
    return out
