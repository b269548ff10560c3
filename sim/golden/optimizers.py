"""One optimizer step in numpy, operation by operation: what host/optimizer's kernels must equal bit for bit.

fp32 throughout; every operation rounds by itself. Constants are computed in double and rounded once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from catchment.host.optimizer import Adam, Sgd

Floats = npt.NDArray[np.float32]


@dataclass(slots=True)
class Moments:
    """What is kept of one tensor besides its weights: flat fp32; `steps` counts its updates."""

    first: Floats
    second: Floats
    steps: int = 0

    @staticmethod
    def zeros(count: int) -> Moments:
        """The state before the first step."""
        return Moments(np.zeros(count, np.float32), np.zeros(count, np.float32))


def step(  # noqa: PLR0917
    rule: Adam | Sgd, weights: Floats, moments: Moments, total: Floats, lr: float, scale: float
) -> Floats:
    """New weights from the sum `total` of the workers' gradients; changes `moments`."""
    moments.steps += 1
    gradient = total * np.float32(scale)
    if isinstance(rule, Adam):
        return _adam(rule, weights, moments, gradient, lr)
    return _sgd(rule, weights, moments, gradient, lr)


def _adam(rule: Adam, weights: Floats, moments: Moments, gradient: Floats, lr: float) -> Floats:
    f = np.float32
    moments.first = moments.first + f(1 - rule.beta1) * (gradient - moments.first)
    moments.second = moments.second * f(rule.beta2) + f(1 - rule.beta2) * gradient * gradient
    correction = f(1 / math.sqrt(1 - rule.beta2**moments.steps))
    denominator = np.sqrt(moments.second) * correction + f(rule.eps)
    step_size = f(lr / (1 - rule.beta1**moments.steps))
    return weights * f(1 - lr * rule.decay) - step_size * moments.first / denominator


def _sgd(rule: Sgd, weights: Floats, moments: Moments, gradient: Floats, lr: float) -> Floats:
    f = np.float32
    gradient = gradient + f(rule.decay) * weights
    moments.first = moments.first * f(rule.momentum) + gradient
    direction = moments.first * f(rule.momentum) + gradient if rule.nesterov else moments.first
    return weights - f(lr) * direction


def round_bf16(values: Floats) -> Floats:
    """Half-even to bf16, as fp32 (finite values)."""
    bits = values.view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)
