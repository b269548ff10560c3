"""One rank of `make bench-allreduce`: does what it is told on its standard input, one line at a time.

A line is `{"bytes": B, "warmup": W, "rounds": R}`; the answer is the seconds that each of R all-reduces of B bytes of
fp32 took.  The first line of the output says that the rank is ready.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from host.collectives import Communicator

AllReduce = Callable[[NDArray[np.float32]], None]


def main() -> None:
    """Run as `python -m bench.allreduce_member TASK`."""
    task = json.loads(sys.argv[1])
    all_reduce = _gloo(task) if task["kind"] == "gloo" else _catchment(task)
    print("ready", flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        print(json.dumps(_measure(all_reduce, **order)), flush=True)


def _measure(all_reduce: AllReduce, *, bytes: int, warmup: int, rounds: int) -> list[float]:  # noqa: A002
    tile = np.random.default_rng().standard_normal(1 << 16).astype(np.float32)
    array = np.resize(tile, bytes // 4)
    work = np.empty_like(array)
    times = []
    for round_ in range(warmup + rounds):
        np.copyto(work, array)
        begun = time.perf_counter()
        all_reduce(work)
        if round_ >= warmup:
            times.append(time.perf_counter() - begun)
    return times


def _catchment(task: dict[str, Any]) -> AllReduce:
    ranks = Communicator.of_job(task["told"], port=task["port"], timeout=60.0, spin=task["spin"])

    def all_reduce(array: NDArray[np.float32]) -> None:
        ranks.all_reduce(array).wait()

    ranks.barrier().wait()
    return all_reduce


def _gloo(task: dict[str, Any]) -> AllReduce:
    import torch  # noqa: PLC0415  only where gloo is the peer
    import torch.distributed as dist  # noqa: PLC0415

    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=f"file://{task['rendezvous']}", rank=task["rank"], world_size=task["ranks"]
    )

    def all_reduce(array: NDArray[np.float32]) -> None:
        dist.all_reduce(torch.from_numpy(array))

    dist.barrier()
    return all_reduce


if __name__ == "__main__":
    main()
