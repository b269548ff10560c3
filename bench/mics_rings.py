"""Bytes that a node of eight sends to another while gloo's rings gather 16 ranks' parts, counted at its interfaces.

python -m bench.mics_rings RANK RANKS NODE_SIZE RENDEZVOUS    # a rank; gathers in one ring or in two stages, as told
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import torch
import torch.distributed as dist

from bench.limited_hosts import LIMITED, limited_hosts
from bench.rank_processes import RankProcesses
from bench.report import Figure
from catchment.host.torch.sharded.groups import Groups

RANKS, NODE, ELEMENTS = 16, 8, 1 << 23
RATE = 1_000_000_000
_COUNTER = f"/sys/class/net/{LIMITED}/statistics/tx_bytes"


def main() -> None:
    """Gather once for each line of the standard input: staged or not."""
    rank, ranks, node_size = map(int, sys.argv[1:4])
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{sys.argv[4]}", rank=rank, world_size=ranks)
    kinds = Groups.of(ranks, ranks, node_size).all()
    own = {
        kind: next(group for group in [dist.new_group(list(each)) for each in kinds[kind]] if _is_in(group))
        for kind in ("lane", "node")
    }
    chunk = torch.full((ELEMENTS // ranks,), float(rank))
    wanted = torch.arange(ranks).repeat_interleave(ELEMENTS // ranks).float()
    for kind in (None, *own):  # connections are made
        dist.all_gather_into_tensor(
            torch.empty(chunk.numel() * dist.get_world_size(own.get(kind or ""))), chunk, group=own.get(kind or "")
        )
    print("ready", flush=True)
    for line in sys.stdin:
        out = torch.empty(ELEMENTS)
        if json.loads(line):
            lane = torch.empty(ranks // node_size, chunk.numel())
            dist.all_gather_into_tensor(lane.view(-1), chunk, group=own["lane"])
            for of_node, part in zip(out.view(ranks // node_size, -1), lane, strict=True):
                dist.all_gather_into_tensor(of_node, part, group=own["node"])
        else:
            dist.all_gather_into_tensor(out, chunk)
        assert torch.equal(out, wanted)
        print("done", flush=True)


def _is_in(group: dist.ProcessGroup) -> bool:
    """Whether this rank is in a group, instead of which torch gives others a number."""
    return isinstance(group, dist.ProcessGroup)


def counted() -> Figure:
    """What two stages spare, of the bytes that the first node sends to the other.

    Raises:
        SystemExit: a rank ended.
    """
    with ExitStack() as exits:
        folder = Path(exits.enter_context(tempfile.TemporaryDirectory()))
        places = exits.enter_context(limited_hosts(RANKS, NODE, RATE))
        arguments = [[str(value) for value in (rank, RANKS, NODE, folder / "rendezvous")] for rank in range(RANKS)]
        processes = RankProcesses("bench.mics_rings", arguments, places)
        exits.callback(processes.close)

        def sent() -> int:
            return sum(int(subprocess.check_output([*place, "cat", _COUNTER])) for place in places[:NODE])

        volumes = []
        for staged in (False, True):
            before = sent()
            processes.run([staged] * RANKS)
            volumes.append(sent() - before)
    flat, staged_bytes = volumes
    wanted = 100 * (1 - (RANKS - NODE) / (RANKS - 1))
    name = f"gloo's rings, p = {RANKS}, counted: two stages less"
    return Figure(name, 100 * (1 - staged_bytes / flat), "%", "formula", wanted, 1.0)


if __name__ == "__main__":
    main()
