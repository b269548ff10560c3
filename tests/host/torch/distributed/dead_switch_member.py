"""One rank of a job file's group that trains until its switch dies, and prints what it is told.

python dead_switch_member.py RANK SIZE STORE_FILE
"""

from __future__ import annotations

import json
import sys
from datetime import timedelta

import torch
import torch.distributed as dist

from catchment.host.collectives import CollectiveError


def main() -> None:
    """Add up for ever."""
    rank, size, store = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    dist.init_process_group(
        "catchment", init_method=f"file://{store}", rank=rank, world_size=size, timeout=timedelta(hours=1)
    )
    dist.all_reduce(torch.ones(1000))
    print("started", flush=True)
    told = []
    for call in (lambda: dist.all_reduce(torch.ones(1000)), lambda: dist.all_reduce(torch.ones(10).double())):
        try:
            while True:
                call()
        except CollectiveError as error:
            told.append({"kind": error.kind, "text": str(error)})
    dist.destroy_process_group()
    print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
