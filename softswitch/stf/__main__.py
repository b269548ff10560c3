"""Runs one STF test, or every PROGRAM.p4 + PROGRAM.stf of a directory."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from softswitch.build import build
from softswitch.compiler.diagnostics import CompileError
from softswitch.errors import SwitchError
from softswitch.inprocess import Switch
from softswitch.stf.language import StfError
from softswitch.stf.runner import run


def run_files(program: Path, test: Path, include_dirs: list[Path]) -> tuple[str, list[str]]:
    """("passed" | "failed" | "refused" | "error", what was wrong)."""
    try:
        built = build(program, include_dirs)
        report = run(Switch(built, seed=1), built.p4info, test.read_text(), str(test))
    except CompileError as error:
        return "refused", str(error).splitlines()
    except (StfError, SwitchError) as error:
        return "error", str(error).splitlines()
    return ("passed", []) if report.ok else ("failed", report.failures)


def _directory(folder: Path, include_dirs: list[Path]) -> int:
    table = Table(title=str(folder))
    for heading in ("program", "result", "why"):
        table.add_column(heading)
    bad = 0
    for test in sorted(folder.glob("*.stf")):
        program = test.with_suffix(".p4")
        if program.exists():
            result, lines = run_files(program, test, include_dirs)
            bad += result != "passed"
            table.add_row(program.stem, result, lines[0] if lines else "")
    Console().print(table)
    return min(bad, 1)


def main() -> int:
    """0 only if every expectation holds and nothing else came out."""
    parser = argparse.ArgumentParser(prog="stf", description=__doc__)
    parser.add_argument("program", type=Path, help="a P4 program, or a directory of programs and tests")
    parser.add_argument("test", type=Path, nargs="?")
    parser.add_argument("-I", dest="include_dirs", type=Path, action="append", default=[])
    arguments = parser.parse_args()
    if arguments.program.is_dir():
        return _directory(arguments.program, arguments.include_dirs)
    if arguments.test is None:
        parser.error("a test is needed")
    result, lines = run_files(arguments.program, arguments.test, arguments.include_dirs)
    for line in lines:
        print(line, file=sys.stderr)
    print(result)
    return 0 if result == "passed" else 1


if __name__ == "__main__":
    sys.exit(main())
