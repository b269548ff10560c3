"""What else of torch's stands on a process group: uneven inputs, FSDP1, ZeRO's optimizer, ready hooks, tensor parallel
layers, checkpoints; each beside one process or gloo.
"""

from __future__ import annotations

import tempfile
import threading

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed import _functional_collectives as functional
from torch.distributed import checkpoint
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.distributed.algorithms.join import Join
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel
from training_cases import STEPS, Text, by_gloo, decoder, flat, gloo, in_one_process, same_everywhere, train, whole


def steps_of(rank: int) -> int:
    return STEPS + rank


def uneven(rank: int, size: int, group: dist.ProcessGroup | None) -> torch.Tensor:
    """Each rank has one step more than the one before it."""
    model = DistributedDataParallel(decoder(), process_group=group)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    text = Text(rank, size)
    with Join([model]):
        for step in range(steps_of(rank)):
            optimizer.zero_grad()
            text.loss(model, step).backward()
            optimizer.step()
    return flat(model)


def case_ranks_that_run_out_of_inputs_join(rank: int, size: int) -> None:
    weights = uneven(rank, size, None)
    same_everywhere(weights)
    torch.testing.assert_close(weights, uneven(rank, size, gloo()), rtol=1e-4, atol=1e-6)


def case_fsdp1(rank: int, size: int) -> None:
    model = FullyShardedDataParallel(decoder(), device_id=torch.device("cpu"))
    train(model, Text(rank, size))
    with FullyShardedDataParallel.summon_full_params(model):
        weights = flat(model).clone()
    same_everywhere(weights)
    reference = in_one_process(size)
    torch.testing.assert_close(weights[: reference.numel()], reference, rtol=1e-4, atol=1e-6)


def case_zero_redundancy_optimizer(rank: int, size: int) -> None:
    model = DistributedDataParallel(decoder())
    optimizer = ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.SGD, lr=0.5)
    text = Text(rank, size)
    for step in range(STEPS):
        optimizer.zero_grad()
        text.loss(model, step).backward()
        optimizer.step()
    same_everywhere(flat(model))
    torch.testing.assert_close(flat(model), by_gloo(rank, size), rtol=1e-4, atol=1e-6)


def case_torchs_own_hooks(rank: int, size: int) -> None:
    for hook in (default_hooks.allreduce_hook, default_hooks.fp16_compress_hook):
        model = DistributedDataParallel(decoder(), bucket_cap_mb=0.03)
        model.register_comm_hook(None, hook)
        train(model, Text(rank, size))
        same_everywhere(flat(model))
        torch.testing.assert_close(flat(model), by_gloo(rank, size), rtol=0.02, atol=2e-3)


def case_power_sgd(rank: int, size: int) -> None:
    model = DistributedDataParallel(decoder())
    model.register_comm_hook(powerSGD_hook.PowerSGDState(None, 2, start_powerSGD_iter=2), powerSGD_hook.powerSGD_hook)
    train(model, Text(rank, size))
    same_everywhere(flat(model))


def case_a_callback_may_wait_for_further_operations(rank: int, size: int) -> None:
    """Each callback waits, as PowerSGD's do, for an operation that starts in it or in another thread."""

    def once_more(future: torch.futures.Future[list[torch.Tensor]]) -> torch.Tensor:
        total = future.value()[0]
        return dist.all_reduce(total, async_op=True).get_future().then(deeper).wait()

    def deeper(future: torch.futures.Future[list[torch.Tensor]]) -> torch.Tensor:
        total = future.value()[0]
        dist.all_reduce(total, async_op=True).get_future().wait()
        return total

    def with_the_later(future: torch.futures.Future[list[torch.Tensor]]) -> torch.Tensor:
        if threading.current_thread() is threading.main_thread():
            # The first operation had ended before it was given this callback, so that its caller runs it.
            later.append(dist.all_reduce(torch.ones(10), async_op=True).get_future())
        else:
            started.wait(60)
        return future.value()[0] + later[0].wait()[0]

    result = dist.all_reduce(torch.ones(10), async_op=True).get_future().then(once_more).wait()
    assert torch.equal(result, torch.full((10,), float(size**3)))
    started, later = threading.Event(), []
    both = dist.all_reduce(torch.ones(10), async_op=True).get_future().then(with_the_later)
    if not later:
        later.append(dist.all_reduce(torch.ones(10), async_op=True).get_future())
    started.set()
    assert torch.equal(both.wait(), torch.full((10,), 2.0 * size))


def case_tensor_parallel_layers(rank: int, size: int) -> None:
    torch.manual_seed(2)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8))
    x = torch.randn(5, 8)
    expected = model(x)
    expected.sum().backward()
    gradients = [parameter.grad.clone() for parameter in model.parameters() if parameter.grad is not None]
    model.zero_grad()
    mesh = init_device_mesh("cpu", (size,))
    split = parallelize_module(model, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    result = split(x)
    torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-6)
    result.sum().backward()
    for parameter, exact in zip(split.parameters(), gradients, strict=True):
        got = parameter.grad.full_tensor() if isinstance(parameter.grad, DTensor) else parameter.grad
        torch.testing.assert_close(got, exact, rtol=1e-4, atol=1e-5)


def case_functional_collectives(rank: int, size: int) -> None:
    group = dist.group.WORLD
    mine = torch.arange(4 * size, dtype=torch.float32) + rank
    total = functional.all_reduce(mine, "sum", group)
    expected = torch.arange(4 * size, dtype=torch.float32) * size + size * (size - 1) / 2
    torch.testing.assert_close(total, expected)
    torch.testing.assert_close(functional.reduce_scatter_single(mine, "sum", 0, group), expected.chunk(size)[rank])
    gathered = functional.all_gather_single(torch.full((2,), float(rank)), 0, group)
    assert torch.equal(gathered, torch.arange(size, dtype=torch.float32).repeat_interleave(2))


def case_a_sharded_model_survives_its_checkpoint(rank: int, size: int) -> None:
    model = decoder()
    fully_shard(model)
    train(model, Text(rank, size))
    before = whole(model)
    folder: list[object] = [tempfile.mkdtemp() if rank == 0 else None]
    dist.broadcast_object_list(folder)
    checkpoint.save({"model": model.state_dict()}, checkpoint_id=str(folder[0]))
    other = decoder()
    fully_shard(other)
    state = {"model": other.state_dict()}
    checkpoint.load(state, checkpoint_id=str(folder[0]))
    other.load_state_dict(state["model"])
    assert torch.equal(whole(other), before)


def case_uneven_inputs_raise_on_every_rank_when_told(rank: int, size: int) -> None:
    model = DistributedDataParallel(decoder())
    text = Text(rank, size)
    said = None
    try:
        with model.join(throw_on_early_termination=True):
            for step in range(steps_of(rank)):
                text.loss(model, step).backward()
    except RuntimeError as error:
        said = str(error)
    assert said is not None and "exhausted" in said, said
    # Torch leaves operations of different kinds behind, so that this is the last case: the group is over.
