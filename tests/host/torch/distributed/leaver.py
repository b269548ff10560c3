"""One rank that makes groups and destroys them, again and again, and prints what it holds before and after each time.

python leaver.py RANK SIZE FOLDER

Then it waits for a line; with that one more group is made, in which the last rank is killed.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import signal
import sys
import time
from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

import catchment.host.torch.distributed  # noqa: F401  makes the backend known
from catchment.host.collectives import CollectiveError

TIMES = 2
PATIENCE = 60.0  # s, for threads that end by themselves


def held() -> dict[str, dict[str, int]]:
    """The threads, descriptors and shared memory of this process: how many there are of each name."""
    gc.collect()
    threads, descriptors, memory = Counter[str](), Counter[str](), Counter[str]()
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a thread that ended since it was listed
            threads[(task / "comm").read_text().strip()] += 1
    for descriptor in list(Path("/proc/self/fd").iterdir()):
        with contextlib.suppress(OSError):  # that of the listing itself
            descriptors[str(descriptor.readlink()).partition(":[")[0]] += 1
    for line in Path("/proc/self/maps").read_text().splitlines():
        words = line.split(maxsplit=5)
        if len(words) > 5 and ("memfd:" in words[5] or "/dev/shm" in words[5]):
            memory[words[5]] += 1
    return {"threads": dict(threads), "descriptors": dict(descriptors), "memory": dict(memory)}


def settled(wanted: dict[str, dict[str, int]]) -> dict[str, dict[str, int]]:
    """What this process holds, as soon as it is what is wanted, or when that does not come."""
    until = time.monotonic() + PATIENCE
    while (now := held()) != wanted and time.monotonic() < until:
        time.sleep(0.05)
    return now


def use(rank: int, size: int, store: Path, victim: int | None = None) -> None:
    """Make a group of all ranks, one of two and one of each, add up in them and beside the switch, and destroy them."""
    dist.init_process_group(
        "catchment", init_method=f"file://{store}", rank=rank, world_size=size, timeout=timedelta(seconds=240)
    )
    pair = dist.new_group([0, 1])
    alone = [dist.new_group([other]) for other in range(size)][rank]  # without a switch
    for group in (None, pair, alone) if rank < 2 else (None, alone):
        dist.all_reduce(torch.ones(5000), group=group)
        dist.all_reduce(torch.ones(5, dtype=torch.float64), group=group)
    if victim is not None:
        dist.barrier()
        if rank == victim:
            os.kill(os.getpid(), signal.SIGKILL)
        with pytest.raises(CollectiveError, match=f"the process of rank {victim} has ended"):
            train_for_ever()
    dist.destroy_process_group()


def train_for_ever() -> None:
    while True:
        dist.all_reduce(torch.ones(5000))


def main() -> None:
    """See the top."""
    rank, size, folder = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    before = held()
    print(json.dumps(before), flush=True)
    for turn in range(TIMES):
        use(rank, size, folder / f"store {turn}")
        print(json.dumps(settled(before)), flush=True)
    sys.stdin.readline()
    use(rank, size, folder / "store of a victim", victim=size - 1)
    print(json.dumps(settled(before)), flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    main()
