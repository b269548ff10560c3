"""`python -m bench.hand_overs`: an all-reduce of two ranks beside the same hand-overs without a protocol.

Two threads put vectors of fp32 through slots (`bench/hand_overs.cpp`), as ranks do that run the switch's program, but
without headers, tables, timers and exponents: what is between that and ours is software, and what is between that and
Open MPI is the way that the data take.  All take turns; a figure is the median of the turns' medians.
"""

from __future__ import annotations

import json
import subprocess
from contextlib import ExitStack
from statistics import median
from typing import Annotated

import typer

from bench.allreduce_ranks import open_mpi, shared_memory, without_open_mpi
from bench.processors import HAND_OVERS, round_trip
from bench.report import Figure, publish
from catchment.program import run_program

SIZES = [1 << 16, 1 << 20, 1 << 24]
WAYS = {
    "copies": "a copy each",
    "locked": "a copy each, one lock",
    "shared": "slot and one sum",
    "moved": "one sum",
    "slots": "the slot alone",
    "converted": "the slot alone, converted there",
    "direct": "a copy for the other, converted there",
}
OURS, OPEN_MPI = "ours", "Open MPI"


def hand_overs(
    *,
    turns: Annotated[int, typer.Option(help="Turns of each size.", min=1)] = 5,
    most: Annotated[int, typer.Option(help="Bytes of the largest array.", min=1)] = SIZES[-1],
) -> None:
    """Measure all of them in turns."""
    figures: list[Figure] = []
    trips: list[float] = []
    missing = without_open_mpi()
    with ExitStack() as exits:
        ranks = {OURS: exits.enter_context(shared_memory(2, "communicator", in_callers=True))}
        if not missing:
            ranks[OPEN_MPI] = exits.enter_context(open_mpi(2))
        for size in (size for size in SIZES if size <= most):
            rounds = max(5, min(200, (1 << 24) // size))
            seconds: dict[str, list[float]] = {name: [] for name in (*ranks, *WAYS)}
            for _ in range(turns):
                trips.append(round_trip() * 1e9)
                for name, processes in ranks.items():
                    seconds[name].append(processes.seconds(size, rounds))
                for way in WAYS:
                    seconds[way].append(_threads(way, size, rounds))
            medians = {WAYS.get(name, name): median(times) * 1e6 for name, times in seconds.items()}
            least = medians[WAYS["copies"]]
            figures += [
                Figure(f"{size} B, {name}", value, "us", WAYS["copies"], least) for name, value in medians.items()
            ]
    notes = [f"a word there and back between two processors: {min(trips):.0f} to {max(trips):.0f} ns"]
    publish("hand_overs", figures, [*notes, f"Open MPI is left out: {missing}"] if missing else notes)


def _threads(way: str, size: int, rounds: int) -> float:
    """Median seconds of a round of two threads."""
    done = subprocess.run([HAND_OVERS, way, str(size), str(rounds)], check=True, capture_output=True, text=True)
    return float(json.loads(done.stdout)["seconds"])


def main() -> None:
    """Run it as a program."""
    run_program(hand_overs)


if __name__ == "__main__":
    main()
