"""Rank 0 sends to a rank that ends, and receives from it, which gloo does; it prints what it is told.

python lost_peer.py RANK STORE_FILE WHEN    # WHEN rank 1 ends: before | waiting (gloo is connected) | meeting (not yet)
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from catchment.host.collectives import CollectiveError


def told(call: Callable[[], Any]) -> dict[str, Any]:
    """The error that `call` raises."""
    try:
        call()
    except CollectiveError as error:
        return {"kind": error.kind, "peers": error.peers, "text": str(error)}
    return {}


def main() -> None:
    """See the top."""
    rank, store, when = int(sys.argv[1]), sys.argv[2], sys.argv[3]
    dist.init_process_group(
        "catchment", init_method=f"file://{store}", rank=rank, world_size=2, timeout=timedelta(seconds=240)
    )
    dist.barrier()
    tensor, waiting = torch.ones(3), torch.ones(3)
    if when == "waiting" and rank == 0:
        dist.recv(tensor, 1)
        work = dist.irecv(waiting, 1)
        dist.send(tensor, 1)
    elif when == "waiting":
        dist.send(tensor, 0)
        dist.recv(tensor, 0)
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    said = []
    if when == "waiting":
        said.append(told(work.wait))
    elif when == "before":
        said.append(told(lambda: [dist.barrier() for _ in range(10**9)]))
    world = dist.group.WORLD
    assert world is not None
    calls: list[Callable[[], Any]] = [
        lambda: dist.recv(tensor, 1),
        lambda: dist.send(tensor, 1),
        lambda: dist.recv(tensor),
        lambda: world.monitored_barrier(timedelta(seconds=240)),
    ]
    said += [told(call) for call in calls]
    dist.destroy_process_group()
    print(json.dumps({"said": said}), flush=True)


if __name__ == "__main__":
    main()
