"""`make bench-switch-workers`: what a switch built for 64 workers costs 32 of them, beside one built for 32.

Frames of 32 workers run through luwu.p4 in-process on one core, built for either, turn by turn; the figure is the turn
whose ratio is the median. A build for 32 (`workers: 32` of a switch in the topology) has the registers of the program
that took 32 at most; a test holds it.
"""

from __future__ import annotations

from statistics import quantiles
from typing import Annotated

import typer

from bench.aggregation import SEQ_OFFSET, SLOTS, frame
from bench.report import Figure, publish
from bench.switch_inprocess import set_up
from catchment.checkout import ROOT
from catchment.program import run_program
from catchment.softswitch import native
from catchment.softswitch.build import build
from catchment.softswitch.inprocess import Switch

LANES = [8, 64, 256]
WORKERS = 32
BUILT = (64, 32)
ROUNDS = {8: 60, 64: 40, 256: 12}
"""Replays of all frames in a turn, some tens of milliseconds."""
GOAL = 0.97


def measured(lanes: int, turns: int) -> tuple[Figure, str]:
    """Frames per second of 32 workers, of both builds."""
    defines = {"LANES": str(lanes), "SLOTS": str(SLOTS)}
    programs = [build(ROOT / "p4src" / "luwu.p4", defines={**defines, "MAX_WORKERS": str(most)}) for most in BUILT]
    frames = [(worker + 1, frame(lanes, worker, seq)) for seq in range(SLOTS) for worker in range(WORKERS)]
    done, pairs = ROUNDS[lanes] * len(frames), []
    for turn in range(turns + 1):  # the first fills caches
        rates = {}
        for at in (0, 1) if turn % 2 else (1, 0):
            switch = Switch(programs[at], seed=1)  # sequence numbers begin anew
            set_up(switch, WORKERS)
            took, left = native.runtime().replay(switch.dataplane, frames, ROUNDS[lanes], SEQ_OFFSET, SLOTS)
            if left * WORKERS != done:
                raise RuntimeError(f"{left} sums left for {done} contributions of {WORKERS} workers")
            rates[at] = done / took
        if turn:
            pairs.append((rates[0] / rates[1], rates[0], rates[1]))
    pairs.sort()
    low, _, high = quantiles([ratio for ratio, *_ in pairs], n=4)
    _, ours, fewer = pairs[len(pairs) // 2]
    row = f"luwu.p4, {lanes} lanes, {WORKERS} workers, built for {BUILT[0]}"
    figure = Figure(row, ours, "frames/s", f"built for {BUILT[1]}", fewer, GOAL)
    return figure, f"{row}: quartiles {low:.2f}, {high:.2f}"


def main(*, turns: Annotated[int, typer.Option(help="Of each build and number of lanes.", min=3)] = 101) -> None:
    """Measure and report."""
    figures, notes = [], []
    for lanes in LANES:
        figure, note = measured(lanes, turns)
        figures.append(figure)
        notes.append(note)
    publish("bench-switch-workers", figures, notes)


if __name__ == "__main__":
    run_program(main)
