"""Proves everything, and says which planted bugs were found.

usage: python -m catchment.rtl.formal [--fast] [NAME ...]
"""

from __future__ import annotations

import argparse
import sys
import time

from catchment.rtl.formal.prove import FormalError, proofs, run


def main() -> int:
    """Command line entry; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m catchment.rtl.formal", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these proofs")
    parser.add_argument("--fast", action="store_true", help="leave out those that take minutes")
    options = parser.parse_args()
    everything = proofs()
    unknown = set(options.names) - {proof.name for proof in everything}
    if unknown:
        print(f"no proof is called {sorted(unknown)[0]}; see rtl/formal/proofs.toml", file=sys.stderr)
        return 2
    failed = 0
    for proof in everything:
        if (options.names and proof.name not in options.names) or (options.fast and proof.slow):
            continue
        began = time.monotonic()
        try:
            verdicts = run(proof)
        except FormalError as error:
            print(error, file=sys.stderr)
            failed += 1
            continue
        kind = f"to {proof.depth} clocks" if proof.bounded else "proved"
        wrong = [verdict for verdict in verdicts if not verdict.good]
        print(
            f"{proof.name:18} {'FAILED' if wrong else kind:14} {len(proof.mutants)} mutants "
            f"{time.monotonic() - began:5.0f} s  {proof.says}",
            flush=True,
        )
        for verdict in wrong:
            print(f"  {verdict.task}: not so\n{verdict.log}", file=sys.stderr)
        failed += bool(wrong)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
