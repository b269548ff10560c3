"""What a sum is, beside gloo in the same process: what is not finite, few elements, types, zeros."""

from __future__ import annotations

import copy
from functools import cache

import torch
import torch.distributed as dist
from torch import nn
from torch.amp.grad_scaler import GradScaler
from torch.nn.parallel import DistributedDataParallel

from catchment.host.collectives import Delayed, Fixed, Scaling
from catchment.host.torch.distributed.hooks import SwitchHook, switch_hook

FLOATS = (torch.float32, torch.float16, torch.bfloat16)
SPECIAL = (float("nan"), float("inf"), float("-inf"))
LENGTHS = (5, 256, 1000, 5000, 70_001)
"""Gathered; in the vector of signatures; on a guess; negotiated."""


@cache
def gloo() -> dist.ProcessGroup:
    """Kept until the process ends: ending a gloo group waits for a thread that may be waiting for Python's lock."""
    return dist.new_group(backend="gloo")


def spoilt(rank: int, dtype: torch.dtype, length: int) -> torch.Tensor:
    """Numbers of which a few, others on each rank, are not finite."""
    generator = torch.Generator().manual_seed(length * 8 + rank)
    values = torch.randn(length, generator=generator)
    places = torch.randint(0, length, (3,), generator=generator)
    values[places] = torch.tensor(SPECIAL)[torch.randint(0, 3, (3,), generator=generator)]
    return values.to(dtype)


def check_same_kinds(got: torch.Tensor, wanted: torch.Tensor) -> None:
    """NaN and infinities in the same places, and the rest near."""
    tolerance = {torch.float32: 1e-5, torch.float16: 2e-2, torch.bfloat16: 1e-1}[got.dtype]
    assert not wanted.isfinite().all()
    torch.testing.assert_close(got, wanted, rtol=tolerance, atol=tolerance, equal_nan=True)


def case_all_reduce_keeps_what_is_not_finite(rank: int, size: int) -> None:
    for dtype in FLOATS:
        for length in LENGTHS:
            ours, theirs = spoilt(rank, dtype, length), spoilt(rank, dtype, length)
            dist.all_reduce(ours)
            dist.all_reduce(theirs, group=gloo())
            check_same_kinds(ours, theirs)


def case_reduce_and_reduce_scatter_keep_what_is_not_finite(rank: int, size: int) -> None:
    for length in (100, 30_000):
        given = spoilt(rank, torch.float32, length * size)
        wanted = given.clone()
        dist.all_reduce(wanted, group=gloo())
        part = torch.empty(length)
        dist.reduce_scatter_tensor(part, given.clone())
        torch.testing.assert_close(part, wanted.view(size, length)[rank], rtol=1e-5, atol=1e-5, equal_nan=True)
        dist.reduce(given, 1)
        if rank == 1:
            check_same_kinds(given, wanted)


def case_a_mean_keeps_what_is_not_finite(rank: int, size: int) -> None:
    for length in LENGTHS:
        ours, theirs = spoilt(rank, torch.float32, length), spoilt(rank, torch.float32, length)
        dist.all_reduce(ours, op=dist.ReduceOp.AVG)
        dist.all_reduce(theirs, group=gloo())
        check_same_kinds(ours, theirs / size)


def case_a_loss_and_a_count_in_one_tensor(rank: int, size: int) -> None:
    """Everybody's metrics: a mean weighted by a large count of tokens."""
    ours = torch.tensor([2.35 + rank, 3.2e9 + rank, 1.0e-6])
    theirs = ours.clone()
    dist.all_reduce(ours)
    dist.all_reduce(theirs, group=gloo())
    torch.testing.assert_close(ours, theirs, rtol=2.0**-22, atol=0.0)


def case_what_gloo_adds_in_other_types(rank: int, size: int) -> None:
    """Also accuracies counted as integers, flags, and doubles of any magnitude."""
    for given in (
        torch.tensor([2.35 * (rank + 1), 3.2e300, float("nan") if rank else 1.0], dtype=torch.float64),
        torch.tensor([1 << 40, -(1 << 60), rank], dtype=torch.int64),
        torch.tensor([rank == 1, False, True]),
        torch.tensor([1 << 30, -5 - rank, 7], dtype=torch.int32),
    ):
        ours, theirs = given.clone(), given.clone()
        dist.all_reduce(ours)
        dist.all_reduce(theirs, group=gloo())
        torch.testing.assert_close(ours, theirs, rtol=0.0, atol=0.0, equal_nan=True)


def case_zeros_keep_their_sign_in_short_tensors(rank: int, size: int) -> None:
    ours = torch.tensor([-0.0, 0.0 if rank else -0.0, 0.0])
    theirs = ours.clone()
    dist.all_reduce(ours)
    dist.all_reduce(theirs, group=gloo())
    assert torch.equal(ours.signbit(), theirs.signbit())


def case_errors_are_bounded_beside_gloo(rank: int, size: int) -> None:
    """Tensors of many magnitudes in one bucket, in units of the largest of each vector."""
    generator = torch.Generator().manual_seed(rank)
    magnitudes = 10.0 ** torch.arange(-9.0, 9.0).repeat_interleave(1024)
    given = torch.randn(len(magnitudes), generator=generator) * magnitudes
    ours, theirs = given.clone(), given.clone()
    dist.all_reduce(ours)
    dist.all_reduce(theirs, group=gloo())
    relative = (ours.double() - theirs.double()).abs() / magnitudes
    assert relative.median() <= 2.0**-22 and relative.quantile(0.99) <= 2.0**-18


def model_of(group: dist.ProcessGroup | None, hook: SwitchHook | None) -> DistributedDataParallel:
    torch.manual_seed(3)
    net = nn.Sequential(nn.Linear(64, 300), nn.ReLU(), nn.Linear(300, 1))
    model = DistributedDataParallel(net, process_group=group)
    if hook is not None:
        model.register_comm_hook(hook, switch_hook)
    return model


def scaled_steps(
    rank: int, group: dist.ProcessGroup | None, hook: SwitchHook | None = None
) -> tuple[list[float], list[float], list[bool]]:
    """Scales, weights' norms and whether the gradients were finite, over steps of which one overflows on rank 1."""
    model = model_of(group, hook)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    scaler = GradScaler("cpu", init_scale=1024.0, growth_interval=3)
    scales, norms, finite = [], [], []
    for step in range(6):
        x = torch.randn(16, 64, generator=torch.Generator().manual_seed(10 * step + rank))
        if step == 2 and rank == 1:
            x[3, 5] = float("inf")
        optimizer.zero_grad()
        scaler.scale(model(x).square().mean()).backward()
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(copy.copy(list(model.parameters())), float("inf"))
        finite.append(bool(norm.isfinite()))
        scaler.step(optimizer)
        scaler.update()
        scales.append(scaler.get_scale())
        norms.append(float(torch.cat([p.detach().flatten() for p in model.parameters()]).norm()))
    return scales, norms, finite


def check_scaled(rank: int, hook: SwitchHook | None) -> None:
    """The step that overflows is skipped, as with gloo."""
    scales, norms, finite = scaled_steps(rank, None, hook)
    wanted = scaled_steps(rank, gloo())
    assert finite == wanted[2] == [True, True, False, True, True, True]
    assert scales == wanted[0] and scales[2] == scales[1] / 2
    torch.testing.assert_close(torch.tensor(norms), torch.tensor(wanted[1]), rtol=1e-5, atol=0.0)


def case_the_scaler_skips_a_step_that_overflows(rank: int, size: int) -> None:
    check_scaled(rank, None)


def case_the_scaler_skips_it_with_the_hook(rank: int, size: int) -> None:
    scalings: list[Scaling | None] = [None, Delayed("gradients"), Fixed(20)]
    for scaling in scalings:
        check_scaled(rank, SwitchHook(scaling=scaling))


def case_a_hook_tells_what_was_cut(rank: int, size: int) -> None:
    hooks = [SwitchHook(scaling=Fixed(-20)), SwitchHook(scaling=Fixed(60)), SwitchHook(scaling=Delayed("gradients"))]
    for hook in hooks:
        model = model_of(None, hook)
        for step in range(3):
            x = torch.randn(16, 64, generator=torch.Generator().manual_seed(step + 10 * rank)) * 30.0**step
            model.zero_grad()
            model(x).square().mean().backward()
    found = [hook.saturated for hook in hooks]
    assert found == [3, 0, 0], found
