"""P4SGD's worker, defined slowly and obviously: what all other workers equal bit for bit (docs/explanation/glm.md).

All numbers are integers.  A feature is an unsigned 16-bit fraction, read as its `bits` most significant planes; a
weight is an int32 with `Numbers.fraction` fraction bits; activations, labels, derivatives and scales have 16.

    forward   PA[k]  = sat26(rhe(sum over features of f * x, forward_shift))   f as `bits`-bit integer, sum exact
    switch    FA[k]  = sum of the workers' PA[k]                               int32, cannot overflow
    scale     d[k]   = rhe(sat19(loss'(FA[k], y[k])) * i[k], 16), scale[k] = rhe(d[k] * multiplier, 16)
    backward  g[j]  += sum over the micro-batch of f * scale[k]                exact, within 48 bits
    update    x[j]   = sat31(x[j] - rhe(g[j], step.shift)), g[j] = 0           after the mini-batch's last micro-batch

i[k], a sample's importance, is a fraction of 16 bits, 0 to 1; without any it is 1, which changes nothing, and which is
all that hardware has.  rhe(v, s) is v / 2**s rounded to the nearest integer, halves to the even one; satN(v) cuts |v|
to 2**N - 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from catchment.host.glm.numbers import Loss, Numbers, Step, sigmoid_table
from catchment.host.glm.shares import Shares, micro_batches
from catchment.wire.generated.glm_numbers import (
    ACTIVATION_LIMIT,
    BANKS,
    CHUNK,
    DERIVATIVE_LIMIT,
    GRADIENT_GUARD,
    IMPORTANCE_FRACTION,
    MULTIPLIER_BITS,
    PLANES,
    SIGMOID_FRACTION,
    SIGMOID_ONE,
    SIGMOID_SEGMENTS,
    WEIGHT_LIMIT,
)

Codes = NDArray[np.uint16]
Words = NDArray[np.uint64]
Ints = NDArray[np.int64]

_SIGMOID = sigmoid_table()


def round_half_even(values: Ints, shift: int) -> Ints:
    """`values` / 2**shift, to the nearest integer, halves to the even one."""
    if shift == 0:
        return values
    odd = (values >> shift) & 1
    return (values + (1 << (shift - 1)) - 1 + odd) >> shift


def saturate(values: Ints, limit: int) -> Ints:
    """`values` cut to -limit..limit."""
    return np.clip(values, -limit, limit)


# ---- the woven layout ----------------------------------------------------------------------------


def weave(codes: Codes, shares: Shares) -> Words:
    """A worker's samples as its engines read them.

    Args:
        codes: shape (samples, features of this worker); neither needs to fill its last micro-batch or chunk.
        shares: how many engines, and how many slots each has.

    Returns:
        Shape (engines, micro_batches, slots, 16, 8): an engine's memory is a row of 512-bit words, the word of a
        plane (0: most significant) after that of the plane before; bits 64 k + i of a word are bank k, feature i.
    """
    samples, features = codes.shape
    words = np.zeros((shares.engines, micro_batches(samples), shares.engine_chunks, PLANES, BANKS), np.uint64)
    for sample in range(samples):
        batch, bank = divmod(sample, BANKS)
        for feature in range(features):
            chunk, lane = divmod(feature, CHUNK)
            slot, engine = divmod(chunk, shares.engines)
            for plane in range(PLANES):
                bit = (int(codes[sample, feature]) >> (PLANES - 1 - plane)) & 1
                words[engine, batch, slot, plane, bank] |= np.uint64(bit << lane)
    return words


def lane_bits(words: Words) -> Ints:
    """The single bits of 64-bit words: shape (..., 64), lane 0 first."""
    shifted = words[..., None] >> np.arange(CHUNK, dtype=np.uint64)
    return (shifted & np.uint64(1)).astype(np.int64)


# ---- one micro-batch -----------------------------------------------------------------------------


def forward_chunk(planes: Words, weights: Ints) -> Ints:
    """The dot products of a chunk, bit-serially: what the banks' adder trees and accumulators do.

    Args:
        planes: shape (bits, 8), most significant first.
        weights: shape (64,).

    Returns:
        Shape (8,): the sums over the features of each bank.
    """
    sums = np.zeros(BANKS, np.int64)
    for plane in planes:
        sums = 2 * sums + lane_bits(plane) @ weights
    return sums


def backward_chunk(planes: Words, scales: Ints) -> Ints:
    """The gradient of a chunk, bit-serially.

    Args:
        planes: as for `forward_chunk`: the bits that came by there, replayed.
        scales: shape (8,).

    Returns:
        Shape (64,): the sums over the banks of each feature.
    """
    sums = np.zeros(CHUNK, np.int64)
    for plane in planes:
        sums = 2 * sums + scales @ lane_bits(plane)
    return sums


def sigmoid(activations: Ints) -> Ints:
    """1 / (1 + exp(-z)) with 16 fraction bits: a line between the table's entries, halves of a unit rounded up."""
    magnitude = np.abs(activations)
    index = np.minimum(magnitude >> SIGMOID_FRACTION, SIGMOID_SEGMENTS - 1)
    place = magnitude & ((1 << SIGMOID_FRACTION) - 1)
    rise = _SIGMOID[index + 1] - _SIGMOID[index]
    value = _SIGMOID[index] + ((rise * place + (1 << (SIGMOID_FRACTION - 1))) >> SIGMOID_FRACTION)
    value = np.where(magnitude >> SIGMOID_FRACTION >= SIGMOID_SEGMENTS, SIGMOID_ONE, value)
    return np.where(activations < 0, SIGMOID_ONE - value, value)


def derivatives(loss: Loss, activations: Ints, labels: Ints) -> Ints:
    """The loss's derivative by the activation.

    Args:
        loss: which.
        activations: FA, 16 fraction bits.
        labels: least squares: the target with 16 fraction bits; else positive for the class 1, not for the class -1.
    """
    positive = labels > 0
    if loss == Loss.SQUARES:
        found = activations - labels
    elif loss == Loss.LOGISTIC:
        found = sigmoid(activations) - np.where(positive, SIGMOID_ONE, 0)
    else:
        margins = np.where(positive, activations, -activations)
        found = np.where(margins < SIGMOID_ONE, np.where(positive, -SIGMOID_ONE, SIGMOID_ONE), 0)
    return saturate(found, DERIVATIVE_LIMIT)


def scales_of(derivative: Ints, step: Step, importance: Ints | None = None) -> Ints:
    """scale[k] of Algorithm 1, without the power of two that the update shifts by; importance has 16 fraction bits."""
    if importance is not None:
        derivative = round_half_even(derivative * importance, IMPORTANCE_FRACTION)
    return round_half_even(derivative * step.multiplier, MULTIPLIER_BITS)


# ---- workers and trainings -----------------------------------------------------------------------


@dataclass(slots=True)
class Worker:
    """One worker: its engines' memories, weights and gradients.

    Attributes:
        words: from `weave`.
        numbers: of the training.
        loss: of the training.
        weights: shape (engines, slots * 64): slot by slot, as an engine's memory has them.
        gradient: as `weights`.
        saturated: how many partial activations and weights were cut.
    """

    words: Words
    numbers: Numbers
    loss: Loss
    weights: Ints = field(init=False)
    gradient: Ints = field(init=False)
    saturated: int = 0

    def __post_init__(self) -> None:
        engines, _, slots, _, _ = self.words.shape
        self.weights = np.zeros((engines, slots * CHUNK), np.int64)
        self.gradient = np.zeros_like(self.weights)

    def forward(self, micro_batch: int) -> Ints:
        """PA of a micro-batch, shape (8,): its banks' dot products over all engines, as activations."""
        total = np.zeros(BANKS, np.int64)
        for engine, slot, chunk in self._chunks():
            total += forward_chunk(self._planes(engine, micro_batch, slot), self.weights[engine, chunk])
        exact = round_half_even(total, self.numbers.forward_shift)
        self.saturated += int(np.count_nonzero(np.abs(exact) > ACTIVATION_LIMIT))
        return saturate(exact, ACTIVATION_LIMIT)

    def backward(
        self, micro_batch: int, activations: Ints, labels: Ints, step: Step, importance: Ints | None = None
    ) -> None:
        """Add a micro-batch's gradient. `activations` is FA, shape (8,), and so are `labels` and `importance`."""
        scales = scales_of(derivatives(self.loss, activations, labels), step, importance)
        for engine, slot, chunk in self._chunks():
            self.gradient[engine, chunk] += backward_chunk(self._planes(engine, micro_batch, slot), scales)

    def update(self, step: Step) -> None:
        """End a mini-batch: the gradient is taken from the weights."""
        exact = self.weights - round_half_even(self.gradient, step.shift)
        self.saturated += int(np.count_nonzero(np.abs(exact) > WEIGHT_LIMIT))
        self.weights = saturate(exact, WEIGHT_LIMIT)
        self.gradient = np.zeros_like(self.weights)

    def resume(self, weights: Ints) -> None:
        """Begin with `weights`, in the order of the worker's features."""
        engines, width = self.weights.shape
        padded = np.zeros(engines * width, np.int64)
        padded[: len(weights)] = weights
        self.weights = padded.reshape(width // CHUNK, engines, CHUNK).transpose(1, 0, 2).reshape(engines, width).copy()

    def model(self, features: int) -> Ints:
        """The weights in the order of the worker's features."""
        engines, width = self.weights.shape
        chunks = self.weights.reshape(engines, width // CHUNK, CHUNK).transpose(1, 0, 2)
        return chunks.reshape(-1)[:features]

    def _planes(self, engine: int, micro_batch: int, slot: int) -> Words:
        return self.words[engine, micro_batch, slot, : self.numbers.bits]

    def _chunks(self) -> list[tuple[int, int, slice]]:
        engines, _, slots, _, _ = self.words.shape
        return [
            (engine, slot, slice(slot * CHUNK, (slot + 1) * CHUNK))
            for engine in range(engines)
            for slot in range(slots)
        ]


def workers_of(codes: Codes, shares: Shares, numbers: Numbers, loss: Loss) -> list[Worker]:
    """All workers of a training. `codes`: shape (samples, features)."""
    numbers.check_features(len(shares.of_worker(0)))
    parts = [shares.of_worker(wid) for wid in range(shares.workers)]
    return [Worker(weave(codes[:, part.start : part.stop], shares), numbers, loss) for part in parts]


def padded_labels(labels: Ints) -> Ints:
    """Labels by micro-batch, shape (micro_batches, 8); samples that fill up the last have 0 (and no features)."""
    padded = np.zeros(micro_batches(len(labels)) * BANKS, np.int64)
    padded[: len(labels)] = labels
    return padded.reshape(-1, BANKS)


def train_epoch(workers: Sequence[Worker], labels: Ints, step: Step, importance: Ints | None = None) -> None:
    """Algorithm 1: every mini-batch of the samples once, in order. The last one may be short."""
    rows = padded_labels(labels)
    weighed = [None] * len(rows) if importance is None else padded_labels(importance)
    per_batch = workers[0].numbers.batch // BANKS
    for begin in range(0, len(rows), per_batch):
        for micro_batch in range(begin, min(begin + per_batch, len(rows))):
            full = np.sum([worker.forward(micro_batch) for worker in workers], axis=0)
            for worker in workers:
                worker.backward(micro_batch, full, rows[micro_batch], step, weighed[micro_batch])
        for worker in workers:
            worker.update(step)


def train_epoch_data_parallel(
    workers: Sequence[Worker], labels: Ints, step: Step, importance: Ints | None = None
) -> None:
    """The baseline of section V-C: workers hold the whole model, and every mini-batch's micro-batches go round them.

    Args:
        workers: each with all samples and all features, of which it uses its own.
        labels: of all samples.
        importance: of all samples, or 1.
        step: what a worker sends is its gradient, rounded to 2**-4 of a weight's unit and cut like activations.
    """
    rows = padded_labels(labels)
    weighed = [None] * len(rows) if importance is None else padded_labels(importance)
    per_batch = workers[0].numbers.batch // BANKS
    coarse = max(0, step.shift - GRADIENT_GUARD)
    for begin in range(0, len(rows), per_batch):
        for turn, micro_batch in enumerate(range(begin, min(begin + per_batch, len(rows)))):
            worker = workers[turn % len(workers)]
            full = worker.forward(micro_batch)
            worker.backward(micro_batch, full, rows[micro_batch], step, weighed[micro_batch])
        sent = [saturate(round_half_even(worker.gradient, coarse), ACTIVATION_LIMIT) for worker in workers]
        for worker in workers:
            worker.gradient = np.sum(sent, axis=0) << coarse
            worker.update(step)


def model_of(workers: Sequence[Worker], shares: Shares) -> Ints:
    """The whole model, shape (features,)."""
    return np.concatenate([worker.model(len(shares.of_worker(wid))) for wid, worker in enumerate(workers)])
