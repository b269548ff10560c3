"""The C++ workers of a training, and what they do in an epoch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from catchment.host.glm.encoding import Encoded
from catchment.host.glm.numbers import Loss, Numbers, Step, sigmoid_table
from catchment.host.glm.schedule import data_parallel_samples, mini_batch_ends
from catchment.host.glm.training import Parallel, Prepared
from catchment.wire.generated.glm_numbers import GRADIENT_GUARD

if TYPE_CHECKING:
    from catchment.host import _glm


class Sum(Protocol):
    """An all-reduce of one array: `host.Reduction`."""

    def start(self) -> None:
        """Begin."""

    def wait(self) -> None:
        """Wait until the sum is in place."""


class Summer(Protocol):
    """Adds arrays up over the workers: `host.AllReducer`."""

    def prepare(self, array: NDArray[np.int32]) -> Sum:
        """The all-reduce of `array`, in place, to be run as often as wanted."""


@dataclass(frozen=True, slots=True)
class Part:
    """What one worker has of a training.

    Attributes:
        encoded: its features of its samples.
        labels: of its samples.
        ends: where its mini-batches end.
        start: the weights of its features before the first epoch; None: 0.
        importance: of its samples, as `Prepared` has it.
    """

    encoded: Encoded
    labels: NDArray[np.int32]
    ends: list[int]
    start: NDArray[np.int32] | None = None
    importance: NDArray[np.int32] | None = None


def native_worker(part: Part, loss: Loss, numbers: Numbers) -> _glm.Worker:
    """A worker of that part."""
    made = _new_worker(part.encoded, part.labels, loss, numbers)
    if part.start is not None:
        made.resume(part.start)
    if part.importance is not None:
        made.weigh(part.importance)
    return made


def _new_worker(encoded: Encoded, labels: NDArray[np.int32], loss: Loss, numbers: Numbers) -> _glm.Worker:
    from catchment.host import _glm  # noqa: PLC0415  the error for a missing build belongs to the first use

    table = sigmoid_table().astype(np.int32)
    rows = encoded.rows
    if isinstance(rows, sp.csr_array):
        return _glm.Worker.sparse(
            rows.indptr.astype(np.int64),
            rows.indices.astype(np.int32),
            np.ascontiguousarray(rows.data, np.uint16),
            rows.shape[1],
            labels,
            loss=loss.value,
            forward_shift=numbers.forward_shift,
            sigmoid=table,
        )
    return _glm.Worker.dense(
        np.ascontiguousarray(rows), labels, loss=loss.value, forward_shift=numbers.forward_shift, sigmoid=table
    )


class Share:
    """One worker's part of a training; the other workers may be in this process or elsewhere.

    Args:
        part: its samples and features: what `cut` gives.
        loss, numbers, micro_batch: of the training.

    Attributes:
        ends: as given.
        features: how many it has; none when there are more workers than chunks.
    """

    def __init__(self, part: Part, *, loss: Loss, numbers: Numbers, micro_batch: int) -> None:
        self.ends = part.ends
        self.features = part.encoded.shape[1]
        self._micro_batch = micro_batch
        self._sums: dict[tuple[int, int], tuple[NDArray[np.int32], Sum]] = {}
        # Without features there is nothing to compute; the others still need this worker's zeros.
        self._worker = native_worker(part, loss, numbers) if self.features else None

    @property
    def weights(self) -> NDArray[np.int32]:
        """Its share of the model (data-parallel: all of it)."""
        return np.zeros(0, np.int32) if self._worker is None else self._worker.weights

    @property
    def saturated(self) -> int:
        """How many values were cut so far."""
        return 0 if self._worker is None else self._worker.saturated

    def epoch(self, parallel: Parallel, step: Step, summer: Summer, on_batch: Callable[[], None]) -> None:
        """Train one epoch together with the other workers; `on_batch` is called after each mini-batch."""
        if parallel == Parallel.MODEL:
            self._model_parallel_epoch(step, summer, on_batch)
        else:
            self._data_parallel_epoch(step, summer, on_batch)

    def _model_parallel_epoch(self, step: Step, summer: Summer, on_batch: Callable[[], None]) -> None:
        """Algorithm 1: a micro-batch's activations are on their way while the next ones are computed."""
        first = 0
        for last in self.ends:
            begins = range(first, last, self._micro_batch)
            under_way = []
            for slot, begin in enumerate(begins):
                activations, added = self._sum(summer, slot, min(self._micro_batch, last - begin))
                if self._worker is None:
                    activations[:] = 0
                else:
                    self._worker.forward(begin, activations)
                added.start()
                under_way.append((begin, activations, added))
            for begin, activations, added in under_way:
                added.wait()
                if self._worker is not None:
                    self._worker.backward(begin, activations, step.multiplier)
            if self._worker is not None:
                self._worker.update(first, last, step.shift)
            first = last
            on_batch()

    def _data_parallel_epoch(self, step: Step, summer: Summer, on_batch: Callable[[], None]) -> None:
        """Gradients of whole mini-batches are added up, and every worker updates the whole model."""
        assert self._worker is not None
        coarse = max(0, step.shift - GRADIENT_GUARD)
        gradient, added = self._sum(summer, 0, self.features)
        first = 0
        for last in self.ends:
            activations = np.empty(last - first, np.int32)
            self._worker.forward(first, activations)
            self._worker.backward(first, activations, step.multiplier)
            self._worker.take_gradient(coarse, gradient)
            added.start()
            added.wait()
            self._worker.apply(gradient, step.shift - coarse)
            first = last
            on_batch()

    def _sum(self, summer: Summer, slot: int, count: int) -> tuple[NDArray[np.int32], Sum]:
        """Memory for `count` lanes that may be under way beside others, and their all-reduce."""
        if (slot, count) not in self._sums:
            array = np.zeros(count, np.int32)
            self._sums[slot, count] = array, summer.prepare(array)
        return self._sums[slot, count]


def cut(prepared: Prepared, wid: int) -> Part:
    """A worker's part."""
    training, samples, importance = prepared.training, len(prepared.labels), prepared.importance
    if training.parallel == Parallel.MODEL:
        share = prepared.shares.of_worker(wid)
        start = None if prepared.start is None else prepared.start[share.start : share.stop]
        ends = mini_batch_ends(samples, training.batch)
        return Part(prepared.encoded.columns(share), prepared.labels, ends, start, importance)
    chosen, ends = data_parallel_samples(samples, training.batch, training.workers, wid)
    its = None if importance is None else importance[chosen]
    return Part(prepared.encoded.samples(chosen), prepared.labels[chosen], ends, prepared.start, its)
