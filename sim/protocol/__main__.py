"""Checks every protocol model; exit status 1 if one does not come out as it must."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from catchment.program import run_program
from catchment.sim.protocol.cases import CASES
from catchment.sim.protocol.spin import SpinError, check


def main(*, verbose: Annotated[bool, typer.Option("--verbose", help="Print the counterexamples.")] = False) -> int:
    """Check every protocol model; exit status 1 if one does not come out as it must."""
    wrong = 0
    for case in CASES:
        try:
            verdict = check(case)
        except SpinError as error:
            print(f"protocol-check: {error}", file=sys.stderr)
            return 2
        found = "holds" if verdict.errors == 0 else "fails"
        mark = "" if verdict.as_expected else "   <-- NOT AS IT MUST"
        print(f"{found}  {verdict.states:>9} states  {case.name}{mark}", flush=True)
        if verdict.trail and (verbose or not verdict.as_expected):
            print(verdict.trail)
        wrong += not verdict.as_expected
    return 1 if wrong else 0


if __name__ == "__main__":
    run_program(main)
