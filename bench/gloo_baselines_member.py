"""One rank of `make bench-gloo-baselines`: trains by gloo what its command line says, prints seconds as JSON."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

from catchment.host.torch.partition import layers_of
from catchment.sim.training.model import Decoder, ModelShape, initialise, next_byte_loss

SHAPE = ModelShape(layers=6, heads=8, hidden=256, sequence=128)
_SEQUENCES = 2
_STEPS, _WARM = 10, 3
_ITERATIONS, _WARM_ITERATIONS = 200, 40


@dataclass(frozen=True, slots=True)
class Parts:
    """Seconds of a step's parts, medians."""

    forward: float
    backward: float
    optimizer: float


def parts_of_a_step(rank: int, *, sharded: bool) -> Parts:
    """Train the decoder under FSDP2, or unsharded without any communication."""
    decoder = Decoder(SHAPE)
    initialise(decoder, 1)
    if sharded:
        mesh = init_device_mesh("cpu", (dist.get_world_size(),))
        for layer in layers_of(decoder):
            fully_shard(layer.module, mesh=mesh)
        fully_shard(decoder, mesh=mesh)
    optimizer = torch.optim.AdamW(decoder.parameters(), lr=1e-3)
    noise = torch.Generator().manual_seed(rank)
    taken: list[Parts] = []
    for _ in range(_STEPS):
        tokens = torch.randint(0, 256, (_SEQUENCES, SHAPE.sequence), generator=noise)
        dist.barrier()
        began = time.perf_counter()
        loss = next_byte_loss(decoder(tokens), tokens)
        forward = time.perf_counter()
        loss.backward()  # type: ignore[no-untyped-call]
        backward = time.perf_counter()
        optimizer.step()
        ended = time.perf_counter()
        optimizer.zero_grad()
        taken.append(Parts(forward - began, backward - forward, ended - backward))
    late = taken[_WARM:]
    return Parts(*(median(getattr(one, key) for one in late) for key in ("forward", "backward", "optimizer")))


def iteration(rank: int, features: int, batch: int) -> float:
    """Seconds of a mini-batch of logistic regression: data parallel, floats, this rank's share of the samples."""
    own = batch // dist.get_world_size()
    model = DistributedDataParallel(nn.Linear(features, 1, bias=False))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    noise = torch.Generator().manual_seed(rank)
    samples = torch.rand((own, features), generator=noise)
    labels = torch.randint(0, 2, (own, 1), generator=noise).float()
    taken = []
    for _ in range(_ITERATIONS):
        began = time.perf_counter()
        optimizer.zero_grad()
        nn.functional.binary_cross_entropy_with_logits(model(samples), labels).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        taken.append(time.perf_counter() - began)
    return median(taken[_WARM_ITERATIONS:])


def main(words: Sequence[str]) -> None:
    """Run as `python -m bench.gloo_baselines_member RANK RANKS RENDEZVOUS FEATURES BATCH`."""
    rank, ranks, features, batch = (int(words[at]) for at in (0, 1, 3, 4))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{words[2]}", rank=rank, world_size=ranks)
    told: dict[str, object] = {
        "sharded": asdict(parts_of_a_step(rank, sharded=True)),
        "alone": asdict(parts_of_a_step(rank, sharded=False)),
        "iteration": iteration(rank, features, batch),
    }
    print(json.dumps(told), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1:])
