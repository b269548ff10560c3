"""One rank of the timed part of `make bench-mics`: trains what it is told on its standard input, one line at a time.

A line is an `Order` as JSON; the answer has the seconds of each step's micro-steps, all losses, the processor's time
and, of ours, what was sent. With the backend ``gloo`` the model is FSDP2's, with ``catchment`` ours over the jobs that
the order names.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from catchment.host.collectives import Communicator
from catchment.host.torch.partition import layers_of
from catchment.host.torch.sharded.fsdp import accumulate, hierarchical
from catchment.host.torch.sharded.groups import Groups, Ranks
from catchment.host.torch.sharded.links import Explain, Links, as_it_is
from catchment.host.torch.sharded.options import MiCSOptions
from catchment.host.torch.sharded.session import ShardedModel
from catchment.sim.training.model import Decoder, ModelShape, initialise, next_byte_loss
from catchment.wire.generated.constants import ETHERNET_BYTES, IPV4_BYTES, UDP_BYTES

BELOW_UDP = ETHERNET_BYTES + IPV4_BYTES + UDP_BYTES
TOKENS = 16
"""Few, so that the links decide how long a step takes, not the processors that all ranks share."""


@dataclass(frozen=True, slots=True)
class Order:
    """What to train, and how it is sharded.

    Attributes:
        shape: of the decoder; see `ModelShape`.
        groups: world, ranks of a partition group, ranks of a node.
        steps: of the optimizer, of which the first records the plan.
        jobs: of our rank, by what they are for: what its communicators need.
    """

    shape: dict[str, int]
    groups: tuple[int, int, int]
    hierarchical: bool
    two_hop: bool
    micro_steps: int
    steps: int
    jobs: dict[str, dict[str, Any]]


def main() -> None:
    """Run as `python -m bench.mics_member '{"backend": ..., "rank": ..., "ranks": ..., "rendezvous": ...}'`."""
    task = json.loads(sys.argv[1])
    torch.set_num_threads(1)
    train = _ours
    if task["backend"] == "gloo":
        dist.init_process_group(
            "gloo", init_method=f"file://{task['rendezvous']}", rank=task["rank"], world_size=task["ranks"]
        )
        train = _fsdp2
    print("ready", flush=True)
    for line in sys.stdin:
        order = Order(**json.loads(line))
        print(json.dumps(train(task["rank"], order)), flush=True)


def model(order: Order) -> nn.Module:
    """The same on every rank."""
    decoder = Decoder(ModelShape(**order.shape))
    initialise(decoder, 1)
    return decoder


def _timed(
    order: Order,
    rank: int,
    decoder: nn.Module,
    parameters: list[nn.Parameter],
    micro_step: Callable[[int, Callable[[], None]], None],
    *,
    share: int = 1,
) -> tuple[list[float], list[float], float]:
    """Seconds of the micro-steps of each step, losses of all micro-steps, and this process's processor seconds.

    `micro_step` runs a forward and backward; gradients are of the loss over `share`.
    """
    optimizer = torch.optim.AdamW(parameters, lr=1e-3)
    noise = torch.Generator().manual_seed(rank)
    seconds: list[float] = []
    losses: list[float] = []
    used = time.process_time()
    for _ in range(order.steps):
        began = time.perf_counter()
        for number in range(order.micro_steps):
            tokens = torch.randint(0, 256, (1, TOKENS), generator=noise)
            micro_step(number, partial(_backward, decoder, tokens, share, losses))
        seconds.append(time.perf_counter() - began)
        optimizer.step()
        optimizer.zero_grad()
    return seconds, losses, time.process_time() - used


def _backward(decoder: nn.Module, tokens: torch.Tensor, share: int, losses: list[float]) -> None:
    loss = next_byte_loss(decoder(tokens), tokens)
    losses.append(float(loss.detach()))
    (loss / share).backward()  # type: ignore[no-untyped-call]


def _ours(rank: int, order: Order) -> dict[str, Any]:
    groups = Groups.of(*order.groups)

    def open_(purpose: str, _: object) -> tuple[Communicator, Explain]:
        return Communicator.of_job(**order.jobs[purpose], timeout=120.0), as_it_is

    links = Links.open(groups, rank, open_, hierarchical=order.hierarchical)
    options = MiCSOptions(two_hop=order.two_hop, micro_steps=order.micro_steps)
    with ShardedModel(model(order), options, links) as mics:

        def micro_step(number: int, run: Callable[[], None]) -> None:
            with mics.micro_step(number):
                run()

        seconds, losses, processor = _timed(order, rank, mics.model, mics.parameters(), micro_step)
        counted = [
            line.communicator.stats()
            for line in links.lines
            if line.communicator is not None and crosses_nodes(line.ranks, groups)
        ]
        sent = sum(stats["bytes_sent"] + BELOW_UDP * stats["frames_sent"] for stats in counted)
        again = sum(stats["retransmissions"] for stats in counted) / max(1, sum(s["frames_sent"] for s in counted))
        return {"seconds": seconds, "bytes": sent, "again": again, "losses": losses, "processor": processor}


def _fsdp2(rank: int, order: Order) -> dict[str, Any]:
    groups = Groups.of(*order.groups)
    shape = (groups.world // groups.partition_size, groups.partition_size)
    mesh = init_device_mesh("cpu", shape, mesh_dim_names=("replicate", "shard"))
    decoder = model(order)
    for layer in layers_of(decoder):
        fully_shard(layer.module, mesh=mesh)
    fully_shard(decoder, mesh=mesh)
    if order.hierarchical:
        hierarchical(decoder, groups)

    def micro_step(number: int, run: Callable[[], None]) -> None:
        accumulate(decoder, last=not order.two_hop or number == order.micro_steps - 1)
        run()

    parameters = list(decoder.parameters())
    seconds, losses, processor = _timed(order, rank, decoder, parameters, micro_step, share=order.micro_steps)
    return {"seconds": seconds, "losses": losses, "processor": processor}


def crosses_nodes(ranks: Ranks, groups: Groups) -> bool:
    """Whether ranks of a group are on several nodes."""
    return len({rank // groups.node_size for rank in ranks}) > 1


if __name__ == "__main__":
    main()
