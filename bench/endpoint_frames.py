"""`make bench-endpoint_frames`: frames per second and core of the endpoint over loopback, 64 fp32 lanes.

A worker pushes and a root pulls through a reflector that costs as little as a process can; the figure is frames per
second of processor time of the endpoint's thread, so that other load on the machine does not count.  Beside it: what
sendmmsg and recvmmsg of frames of the same size cost alone, from the reflector's own thread.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bench.report import Figure, publish
from catchment.host import Endpoint, Stream, _reflector

LANES, FRAMES, GOAL = 64, 200_000, 300_000
LOOPBACK = ("127.0.0.1", 0)


@dataclass(frozen=True, slots=True)
class Result:
    """Frames per second of processor time, and of wall time."""

    worker: float
    root: float
    reflector: float
    elapsed: float


def measure(slots: int) -> Result:
    """Push FRAMES vectors from one worker to the root with `slots` in flight."""
    reflector = _reflector.Reflector()
    up = Stream(gen=1, workers=1, slots=slots, lanes=LANES)
    switch = ("127.0.0.1", reflector.port)
    with (
        Endpoint.worker(gradients=up, wid=0, local=LOOPBACK, switch=switch, timeout=60.0) as worker,
        Endpoint.root(gradients=up, local=LOOPBACK, switch=switch, timeout=60.0) as root,
    ):
        reflector.start(worker.local[1], root.local[1])
        values = np.random.default_rng(1).standard_normal(FRAMES * LANES).astype(np.float32)
        sums = np.zeros_like(values)
        pull = root.pull(sums)
        worker.push(values, 4).wait()
        pull.wait()
        used = [end.stats()["processor_time"] for end in (worker, root)]
        result = Result(FRAMES / used[0], FRAMES / used[1], FRAMES / reflector.processor_time, FRAMES / pull.latency)
        reflector.stop()
    return result


def main() -> None:
    """Measure and publish."""
    figures = []
    for slots in (64, 256, 1024):
        result = measure(slots)
        for name, value in (("worker, sending", result.worker), ("root, receiving", result.root)):
            figures.append(Figure(f"{name}, {slots} slots", value, "frames/s/core", f"goal {GOAL:,}", GOAL, goal=1.0))
        figures.append(
            Figure(f"elapsed, {slots} slots", result.elapsed, "frames/s", "bare socket loop", result.reflector)
        )
    publish(
        "endpoint_frames", figures, ["A bare socket loop receives and sends each frame; the endpoints do one each."]
    )


if __name__ == "__main__":
    main()
