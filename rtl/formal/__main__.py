"""Proves everything, and says which planted bugs were found."""

from __future__ import annotations

import sys
import time
from typing import Annotated

import typer

from catchment.program import run_program
from catchment.rtl.formal.prove import FormalError, proofs, run


def main(
    names: Annotated[list[str] | None, typer.Argument(metavar="NAME", help="Only these proofs.")] = None,
    *,
    fast: Annotated[bool, typer.Option("--fast", help="Leave out those that take minutes.")] = False,
) -> int:
    """Prove everything, and say which planted bugs were found."""
    everything = proofs()
    unknown = set(names or ()) - {proof.name for proof in everything}
    if unknown:
        print(f"no proof is called {sorted(unknown)[0]}; see rtl/formal/proofs.toml", file=sys.stderr)
        return 2
    failed = 0
    for proof in everything:
        if (names and proof.name not in names) or (fast and proof.slow):
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
    run_program(main)
