"""Lints every module; any warning is an error.

usage: python -m catchment.rtl.lint
"""

from __future__ import annotations

import sys

from catchment.rtl.verilate import RtlError, lint_all


def main() -> int:
    """Command line entry; returns the exit status."""
    try:
        lint_all()
    except RtlError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
