"""One rank of a training; rank VICTIM is killed in an all_reduce, and the others print what they are told.

Then these make a group of themselves, which goes on.

python victim.py RANK SIZE STORE_FILE VICTIM
"""

from __future__ import annotations

import json
import os
import signal
import sys
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    """Train until somebody dies."""
    rank, size, store, victim = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    dist.init_process_group(
        "catchment", init_method=f"file://{store}", rank=rank, world_size=size, timeout=timedelta(seconds=240)
    )
    model = DistributedDataParallel(nn.Linear(3000, 1000))
    model(torch.ones(1, 3000)).sum().backward()
    if rank == victim:
        dist.all_reduce(torch.ones(1_000_000), async_op=True)
        os.kill(os.getpid(), signal.SIGKILL)
    errors = []
    for call in (
        lambda: dist.all_reduce(torch.ones(1_000_000)),
        lambda: model(torch.ones(1, 3000)).sum().backward(),
        lambda: dist.barrier(async_op=True).get_future().wait(),
        lambda: dist.new_group(range(size)),
    ):
        try:
            while True:
                call()
        except RuntimeError as error:
            errors.append({"error": str(error), "type": type(error).__name__})
    left = [r for r in range(size) if r != victim]
    others = dist.new_group(left, timeout=timedelta(seconds=60), use_local_synchronization=True)
    total = torch.ones(3)
    dist.all_reduce(total, group=others)
    dist.destroy_process_group()
    print(json.dumps({"errors": errors, "total": total.tolist()}), flush=True)


if __name__ == "__main__":
    main()
