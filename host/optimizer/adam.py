"""Adam on one layer at a time, fp32 throughout."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from host.layers import LayerSpec, TrainingError


@dataclass(frozen=True, slots=True)
class Adam:
    """Adam's constants (Kingma and Ba); `decay` is AdamW's decoupled weight decay."""

    lr: float = 1e-3
    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8
    decay: float = 0.0

    def __post_init__(self) -> None:
        if not (self.lr > 0 and 0 <= self.beta1 < 1 and 0 <= self.beta2 < 1 and self.eps > 0 and self.decay >= 0):
            raise TrainingError(f"{self}: need lr > 0, 0 <= beta < 1, eps > 0, decay >= 0")


class LayerState:
    """Master weights and moments of one layer, flat fp32, with one step count per tensor.

    The operations are those of torch.optim.Adam (foreach=False, fused=False) in the same order and the same types,
    so both give the same bits. A tensor whose gradients were not usable keeps its weights, moments and count.
    """

    def __init__(self, spec: LayerSpec, weights: torch.Tensor) -> None:
        """Copy `weights` (the layer's elements, flat or not) as the master weights."""
        if weights.numel() != spec.numel:
            raise TrainingError(f"layer {spec.name}: {weights.numel()} weights, the table says {spec.numel}")
        self.spec = spec
        self.master = weights.detach().reshape(-1).to(torch.float32, copy=True)
        self._mean = torch.zeros_like(self.master)
        self._square = torch.zeros_like(self.master)
        self._steps = [0] * len(spec.tensors)

    def update(self, tensor: int, gradient: torch.Tensor, adam: Adam, lr: float) -> None:
        """One step of tensor number `tensor` with `gradient` (flat fp32, the mean over the workers)."""
        span = self.spec.tensors[tensor].span
        weights, mean, square = self.master[span], self._mean[span], self._square[span]
        self._steps[tensor] += 1
        step = self._steps[tensor]
        if adam.decay:
            weights.mul_(1 - lr * adam.decay)
        mean.lerp_(gradient, 1 - adam.beta1)
        square.mul_(adam.beta2).addcmul_(gradient, gradient, value=1 - adam.beta2)
        step_size = lr / (1 - adam.beta1**step)
        denominator = (square.sqrt() / (1 - adam.beta2**step) ** 0.5).add_(adam.eps)
        weights.addcdiv_(mean, denominator, value=-step_size)
