"""A random training of one engine alone, and what the golden model says of it: sums that leave, weights that stay."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from catchment.host.glm.numbers import Loss, Numbers, Step
from catchment.rtl.harness.glm_worker import TRAINING, Training
from catchment.sim.golden import glm
from catchment.wire.generated.glm_numbers import BANKS, CHUNK, PLANES, WEIGHT_LIMIT, LossCode

MODEL_ROWS = 64
"""The model's rows in the engine that is built: 16 chunks."""
SCALE_BITS = 20
SCALES_END = 1 << SCALE_BITS - 1


@dataclass(frozen=True, slots=True)
class Shape:
    """How much work: planes of a feature, chunks of a micro-batch, micro-batches of an epoch and of a mini-batch."""

    bits: int
    chunks: int
    micro_batches: int
    batch: int
    epochs: int = 1
    shift: int = 20

    @property
    def words(self) -> int:
        """The words of the whole training."""
        return self.epochs * self.micro_batches * self.micro_batch_words

    @property
    def micro_batch_words(self) -> int:
        return self.chunks * self.bits

    @property
    def packed(self) -> int:
        """training_t as a number; an engine looks at neither the loss nor what makes activations of sums."""
        training = Training(self.bits, self.batch, LossCode.SQUARES, 1, 1 << 15, self.shift, self.epochs)
        return TRAINING.pack(training.values(self.chunks, self.micro_batches))


@dataclass(slots=True)
class EngineCase:
    """A training from `weights` (shape (weights of the engine,)) on; scales are any, they are the bench's to give."""

    shape: Shape
    weights: NDArray[np.int64]
    rng: random.Random
    words: list[int] = field(init=False)
    """512 bits each, in the order that the engine takes them."""
    sums: list[list[int]] = field(init=False)
    """The 8 dot products of each micro-batch, exact."""
    scales: list[list[int]] = field(init=False)
    expected: NDArray[np.int64] = field(init=False)
    """Weights at the end."""
    cut: int = field(init=False)
    """How many of them were cut on the way."""

    def __post_init__(self) -> None:
        shape, numpy = self.shape, np.random.default_rng(self.rng.getrandbits(64))
        size = (1, shape.micro_batches, shape.chunks, PLANES, BANKS)
        worker = glm.Worker(
            numpy.integers(0, 1 << 64, size, np.uint64), Numbers(shape.bits, BANKS * shape.batch), Loss.SQUARES
        )
        width = shape.chunks * CHUNK
        worker.weights = self.weights[None, :width].copy()
        self.sums, self.scales, self.words = [], [], []
        step = Step(1 << 15, shape.shift)
        for _ in range(shape.epochs):
            for micro_batch in range(shape.micro_batches):
                planes = worker.words[0, micro_batch, :, : shape.bits]
                self.words += [int.from_bytes(word.tobytes(), "little") for word in planes.reshape(-1, BANKS)]
                self._micro_batch(worker, planes, numpy)
                if (micro_batch + 1) % shape.batch == 0 or micro_batch + 1 == shape.micro_batches:
                    worker.update(step)
        self.expected, self.cut = self.weights.copy(), worker.saturated
        self.expected[:width] = worker.weights[0]

    def _micro_batch(self, worker: glm.Worker, planes: NDArray[np.uint64], numpy: np.random.Generator) -> None:
        # Now and then the largest that there are.
        scales = numpy.integers(-SCALES_END, SCALES_END, BANKS)
        scales = np.where(numpy.random(BANKS) < 0.1, np.where(scales < 0, 1 - SCALES_END, SCALES_END - 1), scales)
        chunks = [slice(CHUNK * i, CHUNK * (i + 1)) for i in range(len(planes))]
        total = sum(
            (glm.forward_chunk(part, worker.weights[0, chunk]) for part, chunk in zip(planes, chunks, strict=True)),
            np.zeros(BANKS, np.int64),
        )
        for part, chunk in zip(planes, chunks, strict=True):
            worker.gradient[0, chunk] += glm.backward_chunk(part, scales)
        self.sums.append([int(value) for value in total])
        self.scales.append([int(value) for value in scales])


def any_weights(rng: random.Random, count: int) -> NDArray[np.int64]:
    """Small ones, and everywhere some at the ends of the range."""
    numpy = np.random.default_rng(rng.getrandbits(64))
    weights = numpy.integers(-(1 << 24), 1 << 24, count)
    at_end = numpy.random(count) < 0.05
    return np.where(at_end, np.where(weights < 0, -WEIGHT_LIMIT, WEIGHT_LIMIT), weights)
