"""What a training is: its options, the samples prepared for it, and the epochs that a runner makes of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from catchment.host.given_numbers import is_real, is_whole, keep_real, keep_whole
from catchment.host.glm.encoding import Encoded, Normaliser
from catchment.host.glm.errors import GlmError
from catchment.host.glm.model import Model
from catchment.host.glm.numbers import Loss, Numbers, Step
from catchment.host.glm.samples import Floats, Samples
from catchment.host.glm.shares import Shares
from catchment.host.glm.targets import Targets, mean_loss, score
from catchment.wire.generated.glm_numbers import BANKS, FRACTION_DEFAULT, IMPORTANCE_FRACTION

_CURVATURE = {Loss.SQUARES: 1.0, Loss.LOGISTIC: 0.25, Loss.HINGE: 1.0}
_LARGEST_OF = 0.999
"""The largest rate, as a share of where the rates end: that end itself has no step."""
_MOST_EPOCHS = 10**6
_MOST_BEGUN = 1 << 53
"""Epochs that a float counts one by one."""


class Parallel(StrEnum):
    """What is divided among the workers."""

    MODEL = "model"
    """The features: partial activations are added up (P4SGD)."""
    DATA = "data"
    """The samples: gradients are added up, the baseline of section V-C."""


@dataclass(frozen=True, slots=True)
class Training:
    """Options of a training.

    Args:
        loss: what is minimized.
        workers, engines: who has which features.
        bits: of a feature.
        batch: samples of a mini-batch.
        micro_batch: samples of an all-reduce, a multiple of 8; does not change the model.
        epochs: how often all samples are gone through.
        rate: learning rate gamma; None: the inverse of the loss's curvature times the samples' mean squared length,
            or the largest that there is a step for.
        decay: the rate of epoch e = 0, 1, ... is rate / (1 + decay * e).
        fraction: fraction bits of the weights.
        bias: with a constant feature.
        seed: the samples are shuffled once; None leaves them in order.
        parallel: over features or samples.
        begun: epochs that came before these, for the decay.

    Raises:
        GlmError: out of range, or of another type.
    """

    loss: Loss = Loss.LOGISTIC
    workers: int = 1
    engines: int = 1
    bits: int = 4
    batch: int = 64
    micro_batch: int = BANKS
    epochs: int = 10
    rate: float | None = None
    decay: float = 0.0
    fraction: int = FRACTION_DEFAULT
    bias: bool = True
    seed: int | None = 1
    parallel: Parallel = Parallel.MODEL
    begun: int = 0

    def __post_init__(self) -> None:
        for name, value, kind in (("loss", self.loss, Loss), ("parallel", self.parallel, Parallel)):
            if not isinstance(value, kind):
                raise GlmError(
                    f"{name} {value!r}", f"give one of {', '.join(str(one.value) for one in kind)} of {kind.__name__}"
                )
        Shares(1, self.workers, self.engines)
        counts = is_whole(self.micro_batch, BANKS) and is_whole(self.batch, 1)
        if not counts or self.batch % self.micro_batch or self.micro_batch % BANKS:
            raise GlmError(
                f"micro-batches of {self.micro_batch!r} samples in mini-batches of {self.batch!r}",
                f"give a multiple of {BANKS} that divides the mini-batch",
            )
        Numbers(self.bits, self.batch, self.fraction)
        if not is_whole(self.epochs, 1, _MOST_EPOCHS):
            raise GlmError(f"{self.epochs!r} epochs", f"give at least 1, at most {_MOST_EPOCHS}")
        if not (is_real(self.decay) and self.decay >= 0):
            raise GlmError(f"a decay of {self.decay!r}", "give 0 or more")
        if self.seed is not None and not is_whole(self.seed, 0):
            raise GlmError(f"the seed {self.seed!r}", "give 0 or more, a whole number, or None")
        if not isinstance(self.bias, bool | np.bool_):
            raise GlmError(f"a constant feature of {self.bias!r}", "give True or False")
        if not is_whole(self.begun, 0, _MOST_BEGUN):
            raise GlmError(f"{self.begun!r} epochs that came before", "give how many, a whole number")
        keep_whole(self, "workers", "engines", "micro_batch", "batch", "bits", "fraction", "epochs", "seed", "begun")
        if self.rate is not None and not is_real(self.rate):
            raise GlmError(f"a learning rate of {self.rate!r}", "give a positive number, or None for a chosen one")
        keep_real(self, "decay", "rate")
        if self.rate is not None:
            self.steps(self.rate)

    @property
    def numbers(self) -> Numbers:
        """The widths of the training's numbers."""
        return Numbers(self.bits, self.batch, self.fraction)

    def steps(self, rate: float) -> list[Step]:
        """Each epoch's step."""
        epochs = range(self.begun, self.begun + self.epochs)
        return [Step.of(rate / (1 + self.decay * epoch), self.numbers) for epoch in epochs]


@dataclass(frozen=True, slots=True)
class Prepared:
    """Samples in the order and the numbers of a training.

    Attributes:
        training: the options, its rate set.
        encoded: the features' codes.
        labels: int32, shape (samples,).
        normaliser, targets: how they were made.
        start: int32, shape (features,): the weights before the first epoch; None: 0.
        importance: int32, shape (samples,): each sample's weight as a part of the largest, 16 fraction bits; None: all
            are alike.
        rate: before it was multiplied by the largest weight, as that of `training` is.
    """

    training: Training
    encoded: Encoded
    labels: NDArray[np.int32]
    normaliser: Normaliser
    targets: Targets
    start: NDArray[np.int32] | None = None
    importance: NDArray[np.int32] | None = None
    rate: float | None = None

    @property
    def shares(self) -> Shares:
        """The partition of the features over workers and engines."""
        return Shares(self.encoded.shape[1], self.training.workers, self.training.engines)

    @property
    def steps(self) -> list[Step]:
        """Each epoch's step."""
        assert self.training.rate is not None
        return self.training.steps(self.training.rate)


def prepare(
    samples: Samples,
    training: Training,
    *,
    positive: float | None = None,
    sample_weight: Floats | None = None,
    targets: Targets | None = None,
    after: Model | None = None,
) -> Prepared:
    """Shuffle, normalise and quantize; choose a rate if none is given.

    Args:
        samples, training: what and how.
        positive: as for `Targets.fit`.
        sample_weight: what each sample's loss is multiplied by, shape (samples,), 0 or more; one of weight 0 is left
            out.
        targets: what labels stand for; None: found from the samples.
        after: go on from this model, with its ranges of features and targets.

    Raises:
        GlmError: the samples do not suit the loss or the model, or the numbers are too narrow for them.
    """
    for name, value, kind, wanted in (
        ("samples", samples, Samples, "Samples, as Samples.of makes them"),
        ("training", training, Training, "a Training"),
        ("targets", targets, Targets | None, "Targets, or None"),
        ("after", after, Model | None, "a Model, or None"),
    ):
        if not isinstance(value, kind):
            raise GlmError(f"{name} {value!r:.80}", f"give {wanted}")
    if sample_weight is not None:
        samples, sample_weight = _weighed(samples, sample_weight)
    order = np.arange(samples.matrix.shape[0])
    if training.seed is not None:
        np.random.default_rng(training.seed).shuffle(order)
    if after is not None:
        _check_continued(after, training)
        targets, normaliser = after.targets, after.normaliser
    else:
        targets = Targets.fit(training.loss, samples.labels, positive=positive) if targets is None else targets
        normaliser = Normaliser.fit(samples.matrix, bias=training.bias)
    start = None if after is None else after.weights
    emphasis, importance = 1.0, None
    if sample_weight is not None:
        sample_weight, emphasis = sample_weight[order], float(sample_weight.max())
        importance = np.rint(sample_weight / emphasis * (1 << IMPORTANCE_FRACTION)).astype(np.int32)
    encoded = normaliser.encode(samples.matrix, training.bits, order)
    rate = training.rate
    if rate is None:
        curvature = _CURVATURE[training.loss] * encoded.mean_squared_length(sample_weight)
        _, end = training.numbers.rates
        rate = min(1.0 / curvature if curvature > 0 else 1.0, _LARGEST_OF * end / emphasis)
    training = replace(training, rate=rate * emphasis)
    labels = targets.encode(samples.labels[order])
    prepared = Prepared(training, encoded, labels, normaliser, targets, start, importance, rate)
    training.numbers.check_features(len(prepared.shares.of_worker(0)))
    assert prepared.steps
    return prepared


def _weighed(samples: Samples, weights: Floats) -> tuple[Samples, Floats]:
    """The samples that have a weight above 0, and their weights."""
    try:
        weights = np.asarray(weights, np.float64)
    except (TypeError, ValueError, OverflowError):
        raise GlmError("sample weights that are no numbers", "give 0 or more, one a sample") from None
    if weights.shape != samples.labels.shape:
        raise GlmError(f"{len(samples.labels)} samples with weights of shape {weights.shape}", "give one a sample")
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise GlmError("sample weights that are negative or not finite", "give 0 or more")
    chosen = np.flatnonzero(weights)
    if not len(chosen):
        raise GlmError("no sample has a weight above 0", "give at least one")
    return Samples(samples.matrix[chosen], samples.labels[chosen], samples.labelled), weights[chosen]


def _check_continued(model: Model, training: Training) -> None:
    facts = (
        ("the loss", model.loss, training.loss),
        ("bits", model.bits, training.bits),
        ("fraction bits", model.fraction, training.fraction),
        ("a constant feature", model.normaliser.bias, training.bias),
    )
    for what, had, wanted in facts:
        if had != wanted:
            raise GlmError(f"{what} {wanted} to go on from a model of {had}", "keep it, or train anew")


@dataclass(frozen=True, slots=True)
class Epoch:
    """What a runner made.

    Attributes:
        weights: int32, shape (features,): the model after it.
        seconds: that the workers took.
        saturated: partial activations and weights that were cut so far.
        facts: whatever else the runner measured ("clocks", "latency", ...), of this epoch.
    """

    weights: NDArray[np.int32]
    seconds: float
    saturated: int = 0
    facts: dict[str, Any] = field(default_factory=dict)


class Runner(Protocol):
    """Runs trainings: in this process, on workers behind a switch, on simulated hardware.

    All give the same weights, those of sim/golden/glm.py.
    """

    def run(self, prepared: Prepared, on_epoch: Callable[[Epoch], None]) -> None:
        """Run a training; `on_epoch` hears of each epoch as it ends.

        Raises:
            GlmError: it failed; says where.
        """


@dataclass(frozen=True, slots=True)
class Report:
    """An epoch, seen from outside: mean loss and accuracy (R squared for least squares) over all samples."""

    epoch: int
    loss: float
    score: float
    seconds: float
    saturated: int
    facts: dict[str, Any] = field(default_factory=dict)


def train(
    prepared: Prepared, runner: Runner, on_report: Callable[[Report], None] | None = None
) -> tuple[Model, list[Report]]:
    """Run a training; `on_report` hears of epoch 0, the start, and of each epoch that ends.

    Raises:
        GlmError: the runner failed.
    """
    training = prepared.training
    start = np.zeros(prepared.encoded.shape[1], np.int32) if prepared.start is None else prepared.start
    model = _model(prepared, start)
    reports: list[Report] = []

    def report(epoch: Epoch) -> None:
        nonlocal model
        model = _model(prepared, epoch.weights)
        activations = prepared.encoded.activations(model.real_weights)
        loss = mean_loss(training.loss, activations, prepared.labels)
        right = score(training.loss, activations, prepared.labels)
        reports.append(Report(len(reports), loss, right, epoch.seconds, epoch.saturated, epoch.facts))
        if on_report is not None:
            on_report(reports[-1])

    report(Epoch(start, 0.0))
    runner.run(prepared, report)
    return model, reports


def _model(prepared: Prepared, weights: NDArray[np.int32]) -> Model:
    training = prepared.training
    return Model(weights, training.loss, training.bits, training.fraction, prepared.normaliser, prepared.targets)
