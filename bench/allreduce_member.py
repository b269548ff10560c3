"""One rank of `make bench-allreduce`: does what it is told on its standard input, or a socket, one line at a time.

A line is `{"bytes": B, "warmup": W, "rounds": R}`; the answer is the seconds that each of R all-reduces of B bytes of
fp32 took.  The first line of the output says that the rank is ready.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from collections.abc import Callable
from typing import IO, Any

import torch
import torch.distributed as dist

from catchment.host.collectives import Communicator

AllReduce = Callable[[torch.Tensor], object]

SOME = 1 << 20  # bytes of arrays


def main() -> None:
    """Run as `python -m bench.allreduce_member TASK`."""
    task = json.loads(sys.argv[1])
    torch.set_num_threads(1)
    if "orders" in task:
        all_reduce = _open_mpi()
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(task["orders"])
            with connection.makefile("r") as orders, connection.makefile("w") as answers:
                _obey(all_reduce, orders, answers)
    else:
        _obey(_communicator(task) if "description" in task else _torch(task), sys.stdin, sys.stdout)


def _obey(all_reduce: AllReduce, orders: IO[str], answers: IO[str]) -> None:
    print("ready", file=answers, flush=True)
    for line in orders:
        print(json.dumps(_measure(all_reduce, **json.loads(line))), file=answers, flush=True)


def _measure(all_reduce: AllReduce, *, bytes: int, warmup: int, rounds: int) -> list[float]:  # noqa: A002
    # Other values each time, as long as that takes little memory: exponents change, as a gradient's do.
    arrays = [
        torch.randn(min(bytes // 4, 1 << 16)).repeat(max(1, bytes >> 18)) for _ in range(max(1, min(16, SOME // bytes)))
    ]
    work = torch.empty_like(arrays[0])
    times = []
    for round_ in range(warmup + rounds):
        work.copy_(arrays[round_ % len(arrays)])
        begun = time.perf_counter()
        all_reduce(work)
        if round_ >= warmup:
            times.append(time.perf_counter() - begun)
    return times


def _torch(task: dict[str, Any]) -> AllReduce:
    """What a script does; only the backend's name differs."""
    os.environ |= task["environment"]
    dist.init_process_group(
        task["backend"], init_method=f"file://{task['rendezvous']}", rank=task["rank"], world_size=task["ranks"]
    )
    dist.barrier()
    return dist.all_reduce


def _communicator(task: dict[str, Any]) -> AllReduce:
    """The Python binding of the collectives, without torch.distributed."""
    ranks = Communicator.of_job(task["description"], port=task["port"], timeout=60.0)
    ranks.barrier().wait()
    return lambda tensor: ranks.all_reduce(tensor.numpy()).wait()


def _open_mpi() -> AllReduce:
    """MPI by itself; only its ranks need mpi4py, which needs Open MPI's library."""
    from mpi4py import MPI  # noqa: PLC0415

    world = MPI.COMM_WORLD
    return lambda tensor: world.Allreduce(MPI.IN_PLACE, tensor.numpy())


if __name__ == "__main__":
    main()
