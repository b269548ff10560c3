"""STF tests as files: a program and its test, or a folder of them."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from catchment.softswitch.build import build
from catchment.softswitch.compiler.diagnostics import CompileError
from catchment.softswitch.errors import SwitchError
from catchment.softswitch.inprocess import Switch
from catchment.softswitch.stf.language import StfError
from catchment.softswitch.stf.runner import run


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


def run_test(
    program: Path, test: Path, include_dirs: Sequence[Path] = (), defines: Mapping[str, str] | None = None
) -> Outcome:
    """Builds the program and runs the test on a fresh switch."""
    began = time.monotonic()
    try:
        built = build(program, include_dirs, defines, unique_names=False)
        report = run(Switch(built, seed=1), built.p4info, test.read_text(), str(test))
    except CompileError as error:
        result, reasons = "refused", str(error).splitlines()
    except (StfError, SwitchError, OSError, UnicodeDecodeError) as error:
        result, reasons = "error", str(error).splitlines()
    else:
        result, reasons = ("passed", []) if report.ok else ("failed", report.failures)
    return Outcome(program, test, result, time.monotonic() - began, tuple(reasons))
