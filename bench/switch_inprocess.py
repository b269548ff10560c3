"""Frames per second of luwu.p4 in-process on one core, beside a loop that only copies the same frames.

python -m bench.switch_inprocess [--lanes 64] [--workers 4] [--seconds 2]
"""

from __future__ import annotations

from typing import Annotated

import typer

from bench.aggregation import GROUP, SEQ_OFFSET, SLOTS, entries, frame
from bench.report import Figure, publish
from catchment.checkout import ROOT
from catchment.program import run_program
from catchment.softswitch import native
from catchment.softswitch.build import build
from catchment.softswitch.inprocess import Switch

LANES = [8, 64, 256]


def set_up(switch: Switch, workers: int) -> None:
    for entry in entries(workers):
        switch.insert(entry.table, entry.match, entry.action, **entry.params)
    switch.multicast(GROUP, range(1, workers + 1))


def measure(lanes: int, workers: int, seconds: float) -> Figure:
    """Every frame is a new contribution; every `workers`-th completes a slot and leaves as a sum."""
    program = build(ROOT / "p4src" / "luwu.p4", defines={"LANES": str(lanes), "SLOTS": str(SLOTS)})
    frames = [(worker + 1, frame(lanes, worker, seq)) for seq in range(SLOTS) for worker in range(workers)]
    runtime = native.runtime()
    rounds = 20
    while True:
        switch = Switch(program, seed=1)  # sequence numbers begin anew
        set_up(switch, workers)
        took, left = runtime.replay(switch.dataplane, frames, rounds, SEQ_OFFSET, SLOTS)
        if took > seconds / 3:
            break
        rounds *= 3
    done = rounds * len(frames)
    if left * workers != done:
        raise RuntimeError(f"{left} sums left for {done} contributions of {workers} workers")
    copied = done / runtime.copy_limit(frames, rounds)
    size = len(frames[0][1])
    return Figure(
        f"luwu.p4, {lanes} lanes, {workers} workers, {size} bytes", done / took, "frames/s", "a copy loop", copied
    )


def main(
    *,
    lanes: Annotated[list[int], typer.Option(help="32-bit lanes per frame, repeatable.")] = LANES,
    workers: int = 4,
    seconds: float = 2.0,
) -> None:
    """Measure frames per second of luwu.p4 in-process on one core, beside a loop that only copies the same frames."""
    figures = [measure(count, workers, seconds) for count in lanes]
    publish("switch_inprocess", figures, [f"{SLOTS} slots, one core, batches of 64"])


if __name__ == "__main__":
    run_program(main)
