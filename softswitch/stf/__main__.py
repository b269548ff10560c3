"""Runs one STF test, or every PROGRAM.p4 + PROGRAM.stf of a directory."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from catchment.program import run_program
from catchment.softswitch.command_line import IncludeOption
from catchment.softswitch.stf.suite import Setting, find_tests, run_test


def main(
    program: Annotated[Path, typer.Argument(help="A P4 program, or a folder of programs and tests.")],
    test: Annotated[Path | None, typer.Argument(help="The test; else all beside their programs.")] = None,
    *,
    include_dirs: IncludeOption = None,
) -> int:
    """Run one STF test, or every PROGRAM.p4 + PROGRAM.stf of a folder.

    Exits with 0 only if every expectation holds and nothing else came out.
    """
    pairs = find_tests(program) if test is None else [(program, test)]
    if not pairs:
        raise typer.BadParameter(f"{program}: no test beside a program of its name")
    bad = 0
    for source, expected in pairs:
        outcome = run_test(source, expected, Setting(include_dirs or ()))
        bad += outcome.result != "passed"
        for line in outcome.reasons:
            print(line, file=sys.stderr)
        print(f"{expected}: {outcome.result} in {outcome.seconds:.1f} s")
    return min(bad, 1)


if __name__ == "__main__":
    run_program(main)
