"""Learning-rate schedules beside torch's, step by step."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch.optim.lr_scheduler import (
    ConstantLR,
    CosineAnnealingLR,
    LambdaLR,
    LinearLR,
    LRScheduler,
    SequentialLR,
    StepLR,
)

from catchment.host.layers import TrainingError
from catchment.host.optimizer.schedules import (
    Schedule,
    constant,
    cosine,
    inverse_square_root,
    linear,
    staircase,
    warmup,
)

Make = Callable[[torch.optim.Optimizer], LRScheduler]
STEPS = 40


def rates_of_torch(make: Make) -> list[float]:
    """The rates of the first steps, where the optimizer's own is 1."""
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    scheduler = make(optimizer)
    found = []
    for _ in range(STEPS):
        found.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return found


@pytest.mark.parametrize(
    ("schedule", "peer"),
    [
        (constant(0.25), lambda optimizer: ConstantLR(optimizer, 0.25, total_iters=10**6)),
        (linear(30, 0.1), lambda optimizer: LinearLR(optimizer, 1.0, 0.1, total_iters=30)),
        (staircase(7, 0.5), lambda optimizer: StepLR(optimizer, 7, 0.5)),
        (
            warmup(10),
            lambda optimizer: LinearLR(optimizer, 0.1, 1.0, total_iters=9),
        ),
        (
            warmup(10, linear(20)),
            lambda optimizer: SequentialLR(
                optimizer,
                [LinearLR(optimizer, 0.1, 1.0, total_iters=9), LinearLR(optimizer, 1.0, 0.0, total_iters=20)],
                [10],
            ),
        ),
        (
            inverse_square_root(9),
            lambda optimizer: LambdaLR(optimizer, lambda step: math.sqrt(9) * (step + 1) ** -0.5 if step >= 9 else 1.0),
        ),
    ],
    ids=["constant", "linear", "staircase", "warmup", "warmup-linear", "inverse-square-root"],
)
def test_a_schedule_is_torch_s(schedule: Schedule, peer: Make) -> None:
    assert [schedule(step) for step in range(STEPS)] == pytest.approx(rates_of_torch(peer), abs=1e-9)


def test_a_cosine_is_torch_s_and_stays_at_its_end() -> None:
    ours = [cosine(25, 0.2)(step) for step in range(STEPS)]
    assert ours[:26] == pytest.approx(rates_of_torch(lambda one: CosineAnnealingLR(one, 25, 0.2))[:26], abs=1e-9)
    assert ours[25:] == pytest.approx([0.2] * 15)


@pytest.mark.parametrize(
    "make",
    [
        lambda: constant(-0.1),
        lambda: constant(math.nan),
        lambda: warmup(0),
        lambda: linear(0),
        lambda: linear(3, -1.0),
        lambda: cosine(0),
        lambda: cosine(3, math.nan),
        lambda: inverse_square_root(0),
        lambda: staircase(0, 0.5),
        lambda: staircase(3, 0.0),
    ],
)
def test_what_is_no_schedule_is_said(make: Callable[[], Schedule]) -> None:
    with pytest.raises(TrainingError, match=r"or more|above 0"):
        make()
