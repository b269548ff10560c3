"""Learning-rate schedules: factors on the optimizer's lr, by training pass from 0.

A schedule is any function of the pass; these are the usual ones, and they compose: `warmup(100, cosine(1000))`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from catchment.host.given_numbers import is_real, is_whole
from catchment.host.layers import TrainingError

Schedule = Callable[[int], float]


def constant(factor: float = 1.0) -> Schedule:
    """Always `factor`."""
    _check(is_real(factor) and factor >= 0, f"factor {factor!r}: 0 or more")
    return lambda _step: factor


def warmup(steps: int, after: Schedule | None = None) -> Schedule:
    """Linearly up over `steps` passes, then `after`, which counts from there."""
    _check(is_whole(steps, 1), f"warmup of {steps!r} steps: 1 or more")
    then = constant() if after is None else after
    return lambda step: (step + 1) / steps * then(0) if step < steps else then(step - steps)


def linear(steps: int, end: float = 0.0) -> Schedule:
    """Fall from 1 to `end` over `steps` passes, then stay at `end`."""
    _check(
        is_whole(steps, 1) and is_real(end) and end >= 0,
        f"linear over {steps!r} steps to {end!r}: 1 or more steps, 0 or more",
    )
    return lambda step: end + (1 - end) * max(0.0, 1 - step / steps)


def cosine(steps: int, end: float = 0.0) -> Schedule:
    """Half a cosine from 1 down to `end` over `steps` passes, then `end`."""
    _check(
        is_whole(steps, 1) and is_real(end) and end >= 0,
        f"cosine over {steps!r} steps to {end!r}: 1 or more steps, 0 or more",
    )
    return lambda step: end + (1 - end) * 0.5 * (1 + math.cos(math.pi * min(1.0, step / steps)))


def inverse_square_root(steps: int) -> Schedule:
    """1 up to pass `steps`, then falling with the square root."""
    _check(is_whole(steps, 1), f"inverse square root from step {steps!r}: 1 or more")
    return lambda step: min(1.0, math.sqrt(steps / (step + 1)))


def staircase(every: int, factor: float) -> Schedule:
    """Multiplied by `factor` every `every` passes."""
    _check(
        is_whole(every, 1) and is_real(factor) and factor > 0,
        f"staircase of {factor!r} every {every!r} steps: 1 or more steps, factor above 0",
    )
    return lambda step: float(factor ** (step // every))


def _check(right: bool, text: str) -> None:
    if not right:
        raise TrainingError(text)
