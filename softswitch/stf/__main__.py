"""Runs one STF test, or every PROGRAM.p4 + PROGRAM.stf of a directory."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from catchment.softswitch.stf.suite import Setting, find_tests, run_test


def main() -> int:
    """0 only if every expectation holds and nothing else came out."""
    parser = argparse.ArgumentParser(prog="stf", description=__doc__)
    parser.add_argument("program", type=Path, help="a P4 program, or a directory of programs and tests")
    parser.add_argument("test", type=Path, nargs="?")
    parser.add_argument("-I", dest="include_dirs", type=Path, action="append", default=[])
    arguments = parser.parse_args()
    pairs = find_tests(arguments.program) if arguments.test is None else [(arguments.program, arguments.test)]
    if not pairs:
        parser.error(f"{arguments.program}: no test beside a program of its name")
    bad = 0
    for program, test in pairs:
        outcome = run_test(program, test, Setting(arguments.include_dirs))
        bad += outcome.result != "passed"
        for line in outcome.reasons:
            print(line, file=sys.stderr)
        print(f"{test}: {outcome.result} in {outcome.seconds:.1f} s")
    return min(bad, 1)


if __name__ == "__main__":
    sys.exit(main())
