"""One rank that trains over the rails of a job file, and waits for somebody's file in the middle of it.

python rail_training_member.py RANK SIZE STORE_FILE WRAPPER GO_FILE
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel
from training_cases import Text, decoder, flat, whole

from catchment.controlplane.diagnosis.rails import all_reports

STEPS, PAUSE = 6, 2


def main() -> None:
    """A line when rank 0 pauses; at the end one with the losses, the weights' digest, and how the rails were."""
    rank, size, store, wrapper, go = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4], Path(sys.argv[5])
    dist.init_process_group(
        "catchment", init_method=f"file://{store}", rank=rank, world_size=size, timeout=timedelta(seconds=240)
    )
    model = decoder()
    if wrapper == "fsdp2":
        for block in model.blocks:
            fully_shard(block)
        fully_shard(model)
    trained = DistributedDataParallel(model) if wrapper == "ddp" else model
    optimizer, text, losses = torch.optim.SGD(model.parameters(), lr=0.5), Text(rank, size), []
    for step in range(STEPS):
        if step == PAUSE:
            print(json.dumps({"paused": step}), flush=True)
            while rank == 0 and not go.exists():  # the others have sent, and wait for this one
                time.sleep(0.01)
        optimizer.zero_grad()
        loss = text.loss(trained, step)
        loss.backward()
        optimizer.step()
        losses.append(loss.item().hex())
    weights = flat(model) if wrapper == "ddp" else whole(model)
    (report,) = [one for one in all_reports() if one.rank == rank]
    dist.destroy_process_group()
    rails = {rail.name: [rail.state, rail.parts, rail.incidents] for rail in report.rails}
    digest = hashlib.sha256(weights.numpy().tobytes()).hexdigest()
    print(json.dumps({"losses": losses, "weights": digest, "rails": rails}), flush=True)


if __name__ == "__main__":
    main()
