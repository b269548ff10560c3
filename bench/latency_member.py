"""One worker of `bench.latency`, in a process of its own: all-reduces 8 x int32 again and again, and times each.

Its argument is a JSON object: kind ("slots" or "gloo"), rounds, warmup, and what the kind needs.  It prints the
seconds of each round as a JSON list.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np

LANES = 8


def _timed(run: Callable[[], object], warmup: int, rounds: int) -> list[float]:
    for _ in range(warmup):
        run()
    times = []
    for _ in range(rounds):
        start = perf_counter()
        run()
        times.append(perf_counter() - start)
    return times


def _slots(task: dict[str, Any]) -> list[float]:
    from catchment.host import AllReducer, Stream  # noqa: PLC0415  gloo's processes do without

    description = task["description"]
    array = np.zeros(LANES, np.int32)
    with AllReducer(
        stream=Stream(**description["sums"]),
        wid=description["wid"],
        local=tuple(description["local"]),
        switch=tuple(description["switch"]),
        port=task["port"],
        timeout=20.0,
        spin=task["spin"],
    ) as reducer:
        reduction = reducer.prepare(array)
        first = np.full(LANES, description["wid"] + 1, np.int32)
        reducer.all_reduce(first)
        workers = description["sums"]["workers"]
        if first.tolist() != [workers * (workers + 1) // 2] * LANES:
            raise SystemExit(f"a wrong sum: {first.tolist()}")
        return _timed(reduction.run, task["warmup"], task["rounds"])


def _gloo(task: dict[str, Any]) -> list[float]:
    import torch  # noqa: PLC0415  takes a second that the others need not wait
    import torch.distributed as dist  # noqa: PLC0415

    torch.set_num_threads(1)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group(
        "gloo", init_method=f"file://{task['rendezvous']}", rank=task["rank"], world_size=task["workers"]
    )
    array = torch.zeros(LANES, dtype=torch.int32)
    times = _timed(lambda: dist.all_reduce(array), task["warmup"], task["rounds"])
    dist.destroy_process_group()
    return times


def main() -> None:
    """Run the task of the first argument."""
    task = json.loads(sys.argv[1])
    print(json.dumps((_slots if task["kind"] == "slots" else _gloo)(task)))


if __name__ == "__main__":
    main()
