"""Trainings in this process, without a switch: the C++ workers one after the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np

from catchment.host.glm.training import Epoch, Parallel, Prepared
from catchment.host.glm.workers import cut, native_worker
from catchment.wire.generated.glm_numbers import GRADIENT_GUARD


class LocalRunner:
    """All workers of a training in one thread; sums are plain additions."""

    def run(self, prepared: Prepared, on_epoch: Callable[[Epoch], None]) -> None:
        """Run a training; `on_epoch` hears of each epoch."""
        data_parallel = prepared.training.parallel == Parallel.DATA
        for epoch in _data_parallel(prepared) if data_parallel else _model_parallel(prepared):
            on_epoch(epoch)


def _model_parallel(prepared: Prepared) -> Iterator[Epoch]:
    from catchment.host import _glm  # noqa: PLC0415  the error for a missing build belongs to the first use

    training = prepared.training
    workers = []
    ends: list[int] = []
    for wid in range(training.workers):
        part = cut(prepared, wid)
        ends = part.ends
        if part.encoded.shape[1]:
            workers.append(native_worker(part, training.loss, training.numbers))
    for step in prepared.steps:
        begin = time.perf_counter()
        _glm.train_epoch(workers, ends, step.multiplier, step.shift)
        seconds = time.perf_counter() - begin
        weights = np.concatenate([worker.weights for worker in workers])
        yield Epoch(weights, seconds, sum(worker.saturated for worker in workers))


def _data_parallel(prepared: Prepared) -> Iterator[Epoch]:
    training = prepared.training
    features = prepared.encoded.shape[1]
    parts = [cut(prepared, wid) for wid in range(training.workers)]
    workers = [native_worker(part, training.loss, training.numbers) for part in parts]
    gradient = np.empty(features, np.int32)
    for step in prepared.steps:
        begin = time.perf_counter()
        coarse = max(0, step.shift - GRADIENT_GUARD)
        firsts = [0] * len(workers)
        for lasts in zip(*(part.ends for part in parts), strict=True):
            total = np.zeros(features, np.int32)
            for worker, first, last in zip(workers, firsts, lasts, strict=True):
                activations = np.empty(last - first, np.int32)
                worker.forward(first, activations)
                worker.backward(first, activations, step.multiplier)
                worker.take_gradient(coarse, gradient)
                total += gradient
            for worker in workers:
                worker.apply(total, step.shift - coarse)
            firsts = list(lasts)
        seconds = time.perf_counter() - begin
        yield Epoch(workers[0].weights, seconds, sum(worker.saturated for worker in workers))
