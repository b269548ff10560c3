"""One rank that adds up, and checks every sum, until somebody's file says enough.

python restart_member.py RANK SIZE STORE_FILE ENOUGH_FILE
"""

from __future__ import annotations

import json
import sys
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist

ELEMENTS = 200_000


def main() -> None:
    """A line at the first sum, and one at the end: how many sums there were, and which were wrong."""
    rank, size, store, enough = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], Path(sys.argv[4])
    dist.init_process_group(
        "catchment", init_method=f"file://{store}", rank=rank, world_size=size, timeout=timedelta(seconds=240)
    )
    ramp = torch.arange(ELEMENTS, dtype=torch.int32)
    step, ends, wrong = 0, False, []
    while not ends:
        tensor = ramp * (rank + 1) + step
        tensor[0] = int(enough.exists())  # any rank may end it, and all hear of it in the same sum
        dist.all_reduce(tensor)
        expected = ramp * (size * (size + 1) // 2) + size * step
        ends = int(tensor[0]) > 0
        if not torch.equal(tensor[1:], expected[1:]):
            wrong.append(step)
        if step == 0:
            print(json.dumps({"sums": 1}), flush=True)
        step += 1
    dist.destroy_process_group()
    print(json.dumps({"sums": step, "wrong": wrong}), flush=True)


if __name__ == "__main__":
    main()
