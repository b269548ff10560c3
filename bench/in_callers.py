"""`python -m bench.in_callers`: an all-reduce whose ranks run the switch's program, beside the switch's process.

Two communicators of as many ranks on two switches of this machine, one started with `--in-callers`; they take turns,
and a figure is the median of the turns' medians.  A ratio below 1: the program is faster in its callers.
"""

from __future__ import annotations

from statistics import median
from typing import Annotated

import typer

from bench.allreduce_ranks import shared_memory
from bench.report import Figure, publish
from catchment.program import run_program

SIZES = [1 << 10, 1 << 16, 1 << 20, 1 << 24, 1 << 26]
GOAL = 1.0


def in_callers(
    *,
    ranks: Annotated[int, typer.Option(help="Processes.", min=2)] = 2,
    turns: Annotated[int, typer.Option(help="Turns of each size.", min=1)] = 7,
    most: Annotated[int, typer.Option(help="Bytes of the largest array.", min=1)] = SIZES[-1],
) -> None:
    """Measure both ways in turns."""
    figures = []
    ours = shared_memory(ranks, "communicator", in_callers=True)
    with shared_memory(ranks, "communicator", in_callers=False) as rings, ours as callers:
        for size in (size for size in SIZES if size <= most):
            rounds = max(3, min(200, (1 << 24) // size))
            pairs = [(callers.seconds(size, rounds), rings.seconds(size, rounds)) for _ in range(turns)]
            own, other = (median(column) for column in zip(*pairs, strict=True))
            figures.append(Figure(f"{ranks} ranks, {size} B", own * 1e6, "us", "switch's process", other * 1e6, GOAL))
    publish("in_callers", figures)


def main() -> None:
    """Run it as a program."""
    run_program(in_callers)


if __name__ == "__main__":
    main()
