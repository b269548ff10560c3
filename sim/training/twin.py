"""The exact twin: one process, the integers of the wire, and therefore the bits of the in-network run.

The switch adds int32, which no order of arrival, loss or resend can change. So a single process that quantizes each
worker's gradients with the same exponents, adds and converts back must reach the same weights, bit for bit.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch

from catchment.host.optimizer import DelayedScaling, ScalingOptions
from catchment.sim.golden import optimizers
from catchment.sim.golden.lane_formats import LaneFormat
from catchment.sim.lab import events
from catchment.sim.training.data import Corpus, load_corpus
from catchment.sim.training.options import TrainingOptions
from catchment.sim.training.reference import Reference
from catchment.wire.generated.constants import DataType

Tell = Callable[..., None]


class ExactSum:
    """Sums of one tensor as worker, switch and optimizer node make them together."""

    def __init__(self, name: str, workers: int, *, packed: bool = False) -> None:
        """The sum with the optimizer node's default scaling."""
        self._format = LaneFormat(workers, packed)
        self._scaling = DelayedScaling(name, workers, ScalingOptions())

    @property
    def exponent(self) -> int:
        """E of the next sum."""
        return self._scaling.exponent

    def total(self, gradients: list[torch.Tensor]) -> torch.Tensor | None:
        """The workers' sum as the optimizer node gets it; None when the tensor is to be left alone."""
        exponent = self._scaling.exponent
        shape = gradients[0].shape
        arrays = [gradient.reshape(-1).numpy() for gradient in gradients]
        parts = [self._format.quantize(array, DataType.FP32, exponent) for array in arrays]
        total = self._format.add([part.lanes for part in parts])
        summed = self._format.dequantize(total, DataType.FP32, exponent, arrays[0].size)
        saturated = any(part.saturated for part in parts)
        if not self._scaling.observe(self._format.largest(total, exponent), saturated):
            return None
        return torch.from_numpy(summed).view(shape)


class ExactSteps:
    """The optimizer node's update of every tensor, operation by operation (catchment.sim.golden.optimizers)."""

    def __init__(self, options: TrainingOptions, master: list[torch.Tensor]) -> None:
        """Updates `master` in place."""
        self._options = options
        self._master = master
        self._moments = [optimizers.Moments.zeros(tensor.numel()) for tensor in master]

    def update(self, totals: list[torch.Tensor | None], step: int) -> None:
        """One training step from the workers' sums; a tensor with None is left alone."""
        lr = self._options.rate * self._options.warmed(step)
        for master, moments, total in zip(self._master, self._moments, totals, strict=True):
            if total is not None:
                weights = master.detach().view(-1)
                gradients = total.reshape(-1).numpy()
                scale = 1 / self._options.workers
                new = optimizers.step(self._options.adam, weights.numpy(), moments, gradients, lr, scale)
                weights.copy_(torch.from_numpy(new))


def train_exactly(options: TrainingOptions, passes: int, tell: Tell, corpus: Corpus | None = None) -> Reference:
    """Run the first `passes` of the schedule; tells one event per pass with the loss of every worker."""
    reference = Reference(options, load_corpus() if corpus is None else corpus)
    steps = ExactSteps(options, reference.master)
    sums = [ExactSum(name, options.workers, packed=options.packed) for name, _ in reference.model.named_parameters()]
    step = 0
    for number, training in enumerate(options.passes[:passes]):
        started = time.monotonic()
        reference.round_parameters()
        if training:
            results = [reference.gradients(worker, step) for worker in range(options.workers)]
            losses: list[Any] = [loss for loss, _ in results]
            parts = zip(*(gradients for _, gradients in results), strict=True)
            steps.update([each.total(list(part)) for each, part in zip(sums, parts, strict=True)], step)
            step += 1
        else:
            losses = [reference.validate(worker) for worker in range(options.workers)]
        ended = time.monotonic()
        tell(events.PASS, index=number, train=training, losses=losses, seconds=ended - started, at=ended)
    return reference
