"""Training runs of the demo's model in one process, alike but for how the gradients are added up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from bench import format_schemes as schemes
from bench.format_error import ErrorDistribution
from bench.format_schemes import FixedExponent, Parts, Scheme
from catchment.sim.lab.local_switch import LANES
from catchment.sim.training.data import load_corpus
from catchment.sim.training.options import TrainingOptions
from catchment.sim.training.reference import Reference
from catchment.wire.generated.constants import DataType

NARROW_LANES = 64
BUCKET = "fp32 block, bucket"
"""All tensors in one operation, as DDP sends them."""
EXACT = "exact"
RUNS = (
    EXACT,
    "fp32 floats",
    "fp32 block",
    "fp32 delayed",
    "fp32 fixed",
    "bf16 floats",
    "bf16 block",
    "bf16 packed block",
    "bf16 packed delayed",
)
_NAMES = {DataType.FP32: "fp32", DataType.FP16: "fp16", DataType.BF16: "bf16"}


@dataclass(frozen=True, slots=True)
class Curve:
    """A whole run. `train`: mean loss of each step; `validation`: of each evaluation; `weights`: at the end, flat."""

    train: list[float]
    validation: list[float]
    weights: NDArray[np.float32]


def error_schemes(name: str, workers: int, exponent: FixedExponent) -> dict[str, Scheme]:
    """All ways for one tensor: each format with each scaling, and beside them sums of floats: in order, and by gloo."""
    made: dict[str, Scheme] = {}
    for dtype, label in _NAMES.items():
        made[f"{label} floats"] = schemes.floats(dtype)
        made[f"{label} gloo"] = schemes.gloo(dtype)
        made[f"{label} block"] = schemes.block(dtype, LANES)
        made[f"{label} block of {NARROW_LANES}"] = schemes.block(dtype, NARROW_LANES)
        made[f"{label} delayed"] = schemes.delayed(name, dtype, workers, LANES)
        made[f"{label} fixed"] = schemes.fixed(dtype, exponent, LANES)
        made[f"{label} packed block"] = schemes.packed_block(dtype, LANES)
        made[f"{label} packed delayed"] = schemes.packed_delayed(name, dtype, workers)
    return made


class Study:
    """One training run, and the means to look at its gradients."""

    def __init__(self, options: TrainingOptions) -> None:
        """The same seed, text and order of data for every run with the same options."""
        self._options = options
        self.reference = Reference(options, load_corpus())
        self.names = [name for name, _ in self.reference.model.named_parameters()]
        self.exponent = FixedExponent()

    def train(self, run: str) -> Curve:
        """A whole run with the sums of `run`, one of RUNS."""
        options, train, validation = self._options, [], []
        ways: list[Scheme] | None = None
        step = 0
        for training in options.passes:
            self.reference.round_parameters()
            if not training:
                validation.append(float(np.mean([self.reference.validate(w) for w in range(options.workers)])))
                continue
            losses, parts = self.gradients(step)
            if ways is None:
                self.exponent.fit(parts)
                ways = [self._scheme(run, name) for name in self.names]
            self.update([way.add(tensor) for way, tensor in zip(ways, parts, strict=True)], step)
            train.append(float(np.mean(losses)))
            step += 1
        return Curve(train, validation, self.weights())

    def errors(self, sampled: Sequence[int]) -> dict[str, ErrorDistribution]:
        """A run with exact sums, in which every other way adds the gradients of the `sampled` steps up as well.

        Delayed scaling looks at every step.
        """
        found: dict[str, ErrorDistribution] = {}
        ways: list[dict[str, Scheme]] | None = None
        for step in range(max(sampled) + 1):
            self.reference.round_parameters()
            _, parts = self.gradients(step)
            if ways is None:
                self.exponent.fit(parts)
                ways = [error_schemes(name, self._options.workers, self.exponent) for name in self.names]
            totals = [schemes.exact(tensor) for tensor in parts]
            if step in sampled:
                bucket = [np.concatenate(tensors) for tensors in zip(*parts, strict=True)]
                together = schemes.block(DataType.FP32, LANES).add(bucket)
                found.setdefault(BUCKET, ErrorDistribution()).add(together, schemes.exact(bucket))
            for tensor, total, way in zip(parts, totals, ways, strict=True):
                for label, scheme in way.items():
                    if step in sampled:
                        found.setdefault(label, ErrorDistribution()).add(scheme.add(tensor), total)
                    elif label.endswith("delayed"):
                        scheme.add(tensor)
            self.update(totals, step)
        return found

    def gradients(self, step: int) -> tuple[list[float], list[Parts]]:
        """Losses of the workers, and for each tensor the workers' gradients."""
        results = [self.reference.gradients(worker, step) for worker in range(self._options.workers)]
        tensors = zip(*(gradients for _, gradients in results), strict=True)
        return [loss for loss, _ in results], [[g.reshape(-1).numpy() for g in tensor] for tensor in tensors]

    def update(self, totals: Sequence[NDArray[np.float64] | None], step: int) -> None:
        """One step of Adam with the mean of each sum; a tensor with None is left alone."""
        workers = self._options.workers
        self.reference.update(
            [
                None if total is None else torch.from_numpy((total / workers).astype(np.float32)).view(master.shape)
                for total, master in zip(totals, self.reference.master, strict=True)
            ],
            step,
        )

    def weights(self) -> NDArray[np.float32]:
        """All parameters, flat."""
        return np.concatenate([master.detach().reshape(-1).numpy() for master in self.reference.master])

    def _scheme(self, run: str, name: str) -> Scheme:
        if run == EXACT:
            return Scheme(schemes.exact)
        return error_schemes(name, self._options.workers, self.exponent)[run]
