"""Training of real models on four ranks: DDP, FSDP2 and meshes, beside the same through gloo or in one process."""

from __future__ import annotations

import copy
import functools
import hashlib
import logging
from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.nn.parallel import DistributedDataParallel

from catchment.host.torch.distributed.hooks import SwitchHook, switch_hook
from catchment.sim.training.data import Shard as TextShard
from catchment.sim.training.data import load_corpus
from catchment.sim.training.model import PRESETS, Decoder, initialise, next_byte_loss

STEPS = 4
SHAPE = PRESETS["tiny"]


class Text:
    """The demo's text, a shard for each rank."""

    def __init__(self, rank: int, size: int) -> None:
        self._shard = TextShard(load_corpus(), worker=rank, workers=size, sequence=SHAPE.sequence, seed=3)

    def loss(self, model: nn.Module, step: int) -> torch.Tensor:
        tokens = self._shard.batch(step, 4)
        return next_byte_loss(model(tokens), tokens)


def decoder() -> Decoder:
    model = Decoder(SHAPE)
    initialise(model, 11)
    return model


def train(model: nn.Module, text: Text, **options: bool) -> list[float]:
    """A few steps of SGD (which, unlike Adam, does not blow rounding up); gives the losses."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    losses = []
    for step in range(STEPS):
        optimizer.zero_grad(**options)
        loss = text.loss(model, step)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def flat(model: nn.Module) -> torch.Tensor:
    return torch.cat([parameter.detach().reshape(-1) for parameter in model.parameters()])


def same_everywhere(tensor: torch.Tensor) -> None:
    digests: list[object] = [None] * dist.get_world_size()
    dist.all_gather_object(digests, hashlib.sha256(tensor.numpy().tobytes()).hexdigest())
    assert len(set(digests)) == 1, digests


@functools.cache
def gloo() -> dist.ProcessGroup:
    """The reference.  One for the process's life: DDP's reducer, if it holds a group last, ends it under the GIL and
    waits for gloo's thread, which may be waiting for the GIL to drop its last work (torch 2.13).
    """
    return dist.new_group(backend="gloo")


def by_gloo(rank: int, size: int) -> torch.Tensor:
    """Weights after the same steps through gloo."""
    model = DistributedDataParallel(decoder(), process_group=gloo())
    train(model, Text(rank, size))
    return flat(model)


def check_ddp(rank: int, size: int, prepare: Callable[[DistributedDataParallel], object], **options: object) -> None:
    model = DistributedDataParallel(decoder(), bucket_cap_mb=0.03, **options)
    prepare(model)
    losses = train(model, Text(rank, size))
    assert losses[-1] < losses[0]
    weights = flat(model)
    same_everywhere(weights)
    torch.testing.assert_close(weights, by_gloo(rank, size), rtol=1e-4, atol=1e-6)


def case_ddp_with_several_buckets(rank: int, size: int) -> None:
    check_ddp(rank, size, lambda model: None)


def case_ddp_with_gradients_as_views_of_buckets(rank: int, size: int) -> None:
    check_ddp(rank, size, lambda model: None, gradient_as_bucket_view=True, static_graph=True)


def case_ddp_with_the_communication_hook(rank: int, size: int) -> None:
    check_ddp(rank, size, lambda model: model.register_comm_hook(SwitchHook(), switch_hook))


def case_the_hook_sends_bf16_when_told(rank: int, size: int) -> None:
    model = DistributedDataParallel(decoder(), bucket_cap_mb=0.03)
    model.register_comm_hook(SwitchHook(wire=torch.bfloat16), switch_hook)
    train(model, Text(rank, size))
    same_everywhere(flat(model))
    torch.testing.assert_close(flat(model), by_gloo(rank, size), rtol=0.02, atol=2e-3)


def case_the_hook_leaves_types_that_the_switch_does_not_add_to_the_group(rank: int, size: int) -> None:
    """They are averaged in full precision, and logged once; with a `wire` they go through the switch."""
    said: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("catchment.torch").addHandler(handler)
    for wire, precision in ((None, 1e-14), (torch.float32, 1e-6)):
        torch.manual_seed(1)
        model = DistributedDataParallel(nn.Linear(30, 20).double())
        model.register_comm_hook(SwitchHook(wire=wire), switch_hook)
        inputs = torch.arange(size * 30, dtype=torch.float64).view(size, 30).sin()
        for _ in range(2):
            model.zero_grad()
            model(inputs[rank]).sum().backward()
        gradient = model.module.weight.grad
        assert gradient is not None
        torch.testing.assert_close(gradient, inputs.mean(0).expand(20, 30), rtol=0, atol=precision)
    logging.getLogger("catchment.torch").removeHandler(handler)
    assert len(said) == 1 and "wire=torch.float32" in said[0], said


def case_ddp_without_sync_accumulates(rank: int, size: int) -> None:
    text = Text(rank, size)
    models = [DistributedDataParallel(decoder(), process_group=group) for group in (None, gloo())]
    for model in models:
        with model.no_sync():
            text.loss(model, 0).backward()
        text.loss(model, 1).backward()
    ours, reference = (
        torch.cat([parameter.grad.reshape(-1) for parameter in model.parameters() if parameter.grad is not None])
        for model in models
    )
    same_everywhere(ours)
    torch.testing.assert_close(ours, reference, rtol=1e-5, atol=1e-7)


class Branches(nn.Module):
    """Uses another part on each rank, and one on none."""

    def __init__(self) -> None:
        super().__init__()
        self.common = nn.Linear(8, 8)
        self.branches = nn.ModuleList(nn.Linear(8, 1) for _ in range(5))

    def forward(self, x: torch.Tensor, branch: int) -> torch.Tensor:
        result: torch.Tensor = self.branches[branch](self.common(x))
        return result


def case_ddp_finds_unused_parameters(rank: int, size: int) -> None:
    torch.manual_seed(5)
    reference = Branches()
    model = DistributedDataParallel(copy.deepcopy(reference), find_unused_parameters=True)
    inputs = [torch.randn(4, 8, generator=torch.Generator().manual_seed(r)) for r in range(size)]
    model(inputs[rank], rank).sum().backward()
    for r in range(size):
        reference(inputs[r], r).sum().div(size).backward()
    for (name, got), exact in zip(model.module.named_parameters(), reference.parameters(), strict=True):
        if exact.grad is None:
            assert got.grad is None or not got.grad.any(), name
        else:
            torch.testing.assert_close(got.grad, exact.grad, rtol=1e-5, atol=1e-6)


def case_ddp_buffers_follow_rank_0(rank: int, size: int) -> None:
    model = DistributedDataParallel(nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)))
    model(torch.randn(8, 4, generator=torch.Generator().manual_seed(rank))).sum().backward()
    model(torch.randn(8, 4, generator=torch.Generator().manual_seed(rank))).sum().backward()
    model.eval()
    dist.barrier()
    with torch.no_grad():
        model(torch.zeros(1, 4))
    assert model.module[1].num_batches_tracked.item() == 2


def in_one_process(size: int) -> torch.Tensor:
    """Weights after the same steps in one process."""
    model = decoder()
    texts = [Text(rank, size) for rank in range(size)]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for step in range(STEPS):
        optimizer.zero_grad()
        for text in texts:
            (text.loss(model, step) / size).backward()
        optimizer.step()
    return flat(model)


def whole(model: nn.Module) -> torch.Tensor:
    """All weights of a sharded model."""
    parts = [p.full_tensor() if isinstance(p, DTensor) else p for p in model.parameters()]
    return torch.cat([part.detach().reshape(-1) for part in parts])


def case_fsdp2(rank: int, size: int) -> None:
    model = decoder()
    for block in model.blocks:
        fully_shard(block)
    fully_shard(model)
    train(model, Text(rank, size))
    weights = whole(model)
    same_everywhere(weights)
    torch.testing.assert_close(weights, in_one_process(size), rtol=1e-4, atol=1e-6)


def case_fsdp2_on_a_mesh_of_two_dimensions(rank: int, size: int) -> None:
    mesh = init_device_mesh("cpu", (2, size // 2), mesh_dim_names=("replicate", "shard"))
    model = decoder()
    for block in model.blocks:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    train(model, Text(rank, size))
    weights = whole(model)
    same_everywhere(weights)
    torch.testing.assert_close(weights, in_one_process(size), rtol=1e-4, atol=1e-6)


def case_tensors_on_a_mesh(rank: int, size: int) -> None:
    mesh = init_device_mesh("cpu", (size,))
    full = torch.arange(size * 12, dtype=torch.float32).view(size * 2, 6)
    sharded = distribute_tensor(full, mesh, [Shard(0)])
    assert torch.equal(sharded.full_tensor(), full)
    assert torch.equal(sharded.redistribute(mesh, [Replicate()]).to_local(), full)
    total = sharded.sum().full_tensor()
    torch.testing.assert_close(total, full.sum())
    columns = sharded.redistribute(mesh, [Shard(1)])
    assert torch.equal(columns.full_tensor(), full)


def case_clipping_by_the_norm_of_all(rank: int, size: int) -> None:
    model = decoder()
    fully_shard(model)
    Text(rank, size).loss(model, 0).backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 0.1)
    reference = decoder()
    for r in range(size):
        (Text(r, size).loss(reference, 0) / size).backward()
    expected = nn.utils.clip_grad_norm_(reference.parameters(), 0.1)
    value = norm.full_tensor() if isinstance(norm, DTensor) else norm
    torch.testing.assert_close(value, expected, rtol=1e-4, atol=1e-6)
