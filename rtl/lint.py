"""Lints every module; any warning is an error.

usage: python -m catchment.rtl.lint
"""

from __future__ import annotations

import sys

from catchment.program import run_program
from catchment.rtl.verilate import RtlError, lint_all


def main() -> int:
    """Lint every hardware module; any warning is an error."""
    try:
        lint_all()
    except RtlError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    run_program(main)
