"""One rank of a sharded training; rank VICTIM is killed in a stage of it, and the others print what they are told.

python stage_victim.py RANK SIZE STORE_FILE VICTIM STAGE

A stage is a line of `Links`, as in gather.between; in the partition groups of four ranks on nodes of two, or of two.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from datetime import timedelta
from operator import attrgetter
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from catchment.host.collectives import Communicator
from catchment.host.torch.sharded import MiCS, MiCSOptions, ShardingError

METHODS = {"gather": "all_gather", "scatter": "reduce_scatter", "replicas": "all_reduce"}
WIDTH = 16


def die_in(communicator: Communicator, method: str) -> None:
    """Kill this process as soon as it has started such an operation on `communicator`."""
    start = getattr(Communicator, method)

    def call(self: Communicator, *arguments: Any, **options: Any) -> Any:
        start(self, *arguments, **options)
        if self is communicator:
            os.kill(os.getpid(), signal.SIGKILL)

    setattr(Communicator, method, call)


def main() -> None:
    """Train until somebody dies."""
    rank, size, store, victim, stage = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4]), sys.argv[5]
    dist.init_process_group(
        "catchment", init_method=f"file://{store}", rank=rank, world_size=size, timeout=timedelta(seconds=240)
    )
    torch.manual_seed(1)
    model = nn.Sequential(*(nn.Linear(WIDTH, WIDTH) for _ in range(6)))
    partition_size = 2 if stage == "replicas" else 4
    mics = MiCS(model, MiCSOptions(partition_size=partition_size), node_size=2)

    def step() -> None:
        with mics.micro_step(0):
            mics.model(torch.full((2, WIDTH), rank + 1.0)).square().mean().backward()

    step()
    if rank == victim:
        communicator = attrgetter(stage)(mics.links).communicator
        assert communicator is not None
        die_in(communicator, METHODS[stage.partition(".")[0]])
    try:
        while True:
            step()
    except ShardingError as error:
        print(json.dumps({"error": str(error), "ranks": error.ranks}), flush=True)
    mics.close()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
