"""A worker's process: loads its share, waits for the others, and trains with them through the switch.

python -m catchment.sim.glm.member TASK.json
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

from catchment.host import AllReducer, EndpointError, Stream
from catchment.host.glm import GlmError
from catchment.sim.glm.task import Task
from catchment.sim.lab import events
from catchment.sim.lab.errors import LabError

EPOCH, PROGRESS = "epoch", "progress"
_PROGRESS_SECONDS = 0.5


def member_main() -> None:
    """Entry point: exit code 0, or 1 with an error event."""
    try:
        run_member(Task.read(Path(sys.argv[1])))
    except (LabError, EndpointError, GlmError, OSError) as error:
        events.tell(events.ERROR, kind=type(error).__name__, text=str(error))
        sys.exit(1)


def run_member(task: Task) -> None:
    """All epochs of a task."""
    share = task.open_share()
    progress = _Progress(len(share.ends) * len(task.steps))
    description = task.description
    with AllReducer(
        stream=Stream(**description["sums"]),
        wid=description["wid"],
        local=tuple(description["local"]),
        switch=tuple(description["switch"]),
        port=task.port,
        timeout=task.timeout,
        spin=task.spin,
    ) as reducer:
        events.await_go()
        reducer.all_reduce(np.zeros(1, np.int32))  # no member's clock runs before all are there
        for epoch, step in enumerate(task.all_steps):
            begin = time.perf_counter()
            share.epoch(task.how, step, reducer, progress.batch_done)
            seconds = time.perf_counter() - begin
            np.save(task.weights_after(epoch), share.weights)
            stats = reducer.stats()
            events.tell(
                EPOCH,
                epoch=epoch,
                seconds=seconds,
                saturated=share.saturated,
                sums=stats["pull_latency"]["count"],
                sum_seconds=stats["pull_latency"]["total"],
                resent=stats["retransmissions"],
            )
        events.tell(events.DONE)


class _Progress:
    """Tells how many mini-batches of how many are done, now and then."""

    def __init__(self, batches: int) -> None:
        self._batches = batches
        self._done = 0
        self._reported_at = time.monotonic()

    def batch_done(self) -> None:
        self._done += 1
        now = time.monotonic()
        if now - self._reported_at >= _PROGRESS_SECONDS:
            self._reported_at = now
            events.tell(PROGRESS, done=self._done, of=self._batches)


if __name__ == "__main__":
    member_main()
