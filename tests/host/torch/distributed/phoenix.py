"""One rank under torchrun: in the first attempt rank 1 dies, in the second all go on.

python phoenix.py MARKS_FOLDER
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import torch
import torch.distributed as dist


def main() -> None:
    """Add up before and after making the group anew; print the sums of the attempt that ends well."""
    died = Path(sys.argv[1]) / "died"
    sums = []
    for _ in range(2):
        dist.init_process_group("catchment")
        rank, size = dist.get_rank(), dist.get_world_size()
        tensor = torch.full((1000,), float(rank + 1))
        dist.all_reduce(tensor)
        sums.append(tensor[0].item())
        if rank == 1 and not died.exists():
            died.touch()
            os._exit(3)
        dist.barrier()
        dist.destroy_process_group()
    print(f"rank {rank} of {size}: sums {sums}", flush=True)


if __name__ == "__main__":
    main()
