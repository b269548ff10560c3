"""One rank that trains with DDP over the controller's job, and compares each step with one that it computes alone.

python torch_rank.py RANK SIZE STORE_FILE STEPS
"""

from __future__ import annotations

import copy
import json
import sys
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

WIDTH = 24


def batch(step: int, rank: int) -> torch.Tensor:
    """What a rank trains on."""
    return torch.randn(8, WIDTH, generator=torch.Generator().manual_seed(1000 * step + rank))


def main() -> None:
    """A line at the end: how many sums of integers were wrong, and how far the parameters are from the reference's."""
    rank, size, store, steps = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    dist.init_process_group(
        "catchment", init_method=f"file://{store}", rank=rank, world_size=size, timeout=timedelta(seconds=240)
    )
    torch.manual_seed(7)
    plain = torch.nn.Linear(WIDTH, WIDTH)
    reference = copy.deepcopy(plain)
    model = DistributedDataParallel(plain)
    wrong = 0
    for step in range(steps):
        model.zero_grad()
        model(batch(step, rank)).square().mean().backward()
        reference.zero_grad()
        for other in range(size):
            (reference(batch(step, other)).square().mean() / size).backward()
        for trained in (plain, reference):
            with torch.no_grad():
                for parameter in trained.parameters():
                    parameter.sub_(0.1 * parameter.grad)
        counted = torch.arange(500, dtype=torch.int32) * (rank + 1) + step
        dist.all_reduce(counted)
        total = size * (size + 1) // 2
        wrong += not torch.equal(counted, torch.arange(500, dtype=torch.int32) * total + size * step)
    off = max(float((a - b).abs().max()) for a, b in zip(plain.parameters(), reference.parameters(), strict=True))
    dist.destroy_process_group()
    print(json.dumps({"wrong": wrong, "off": off}), flush=True)


if __name__ == "__main__":
    main()
