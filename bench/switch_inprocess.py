"""Frames per second of luwu.p4 in-process on one core, beside a loop that only copies the same frames.

python -m bench.switch_inprocess [--lanes 64] [--workers 4] [--seconds 2]
"""

from __future__ import annotations

import argparse

from bench.aggregation import GROUP, SEQ_OFFSET, SLOTS, entries, frame
from bench.report import Figure, publish
from catchment.checkout import ROOT
from catchment.softswitch import native
from catchment.softswitch.build import build
from catchment.softswitch.inprocess import Switch


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lanes", type=int, nargs="*", default=[8, 64, 256])
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=2.0)
    arguments = parser.parse_args()
    figures = [measure(lanes, arguments.workers, arguments.seconds) for lanes in arguments.lanes]
    publish("switch_inprocess", figures, [f"{SLOTS} slots, one core, batches of 64"])


if __name__ == "__main__":
    main()
