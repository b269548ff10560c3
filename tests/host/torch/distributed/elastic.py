"""One rank under torchrun's elastic agents: adds up until somebody's file says enough, however many ranks there are.

python elastic.py FOLDER
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import torch
import torch.distributed as dist


def main() -> None:
    """Leave a file for each attempt that has begun to add up, named after its size and this process."""
    folder = Path(sys.argv[1])
    dist.init_process_group("catchment")
    size = dist.get_world_size()
    ends = False
    while not ends:
        tensor = torch.ones(1000, dtype=torch.int32)
        tensor[0] = int((folder / "enough").exists())  # any rank may end it, and all hear of it in the same sum
        dist.all_reduce(tensor)
        assert tensor[1].item() == size
        ends = tensor[0].item() > 0
        (folder / f"size-{size}-{os.getpid()}").touch()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
