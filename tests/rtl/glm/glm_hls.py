"""The HLS kernels of P4SGD's worker as one: engines, activations, scales."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from catchment.hls.build import glm_scoreboard
from catchment.host.glm.numbers import Loss, Numbers, Step
from catchment.sim.cosim.glm.training import LOSS_CODES
from catchment.wire.generated.glm_numbers import LossCode


def _at(array: NDArray[np.generic]) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def activation(total: int, shift: int) -> int:
    """A partial activation from a worker's dot product."""
    return int(glm_scoreboard().hls_glm_activation(ctypes.c_int64(total), ctypes.c_uint32(shift)))


def scale(found: int, label: int, loss: LossCode, multiplier: int) -> int:
    """A sample's scale from its full activation."""
    return int(glm_scoreboard().hls_glm_scale(found, label, ctypes.c_uint32(loss), ctypes.c_uint32(multiplier)))


class HlsWorker:
    """One worker's engines; `words` and `start` as the golden model's `words` and `weights`."""

    def __init__(self, words: NDArray[np.uint64], start: NDArray[np.int64], numbers: Numbers, loss: Loss) -> None:
        self._words, self._numbers, self._loss = np.ascontiguousarray(words), numbers, LOSS_CODES[loss]
        self._shape = start.shape
        self._library = glm_scoreboard()
        self._engines = [ctypes.c_void_p(self._library.hls_glm_new()) for _ in words]
        for engine, weights in zip(self._engines, np.ascontiguousarray(start, np.int64), strict=True):
            self._library.hls_glm_set_weights(engine, _at(weights), ctypes.c_uint32(weights.size))

    def close(self) -> None:
        """Give its memory back."""
        for engine in self._engines:
            self._library.hls_glm_delete(engine)

    def forward(self, micro_batch: int) -> NDArray[np.int64]:
        """PA."""
        chunks, total = self._words.shape[2], np.zeros(8, np.int64)
        for engine, words in zip(self._engines, self._words, strict=True):
            sums = np.zeros(8, np.int64)
            bits = ctypes.c_uint32(self._numbers.bits)
            self._library.hls_glm_forward(engine, _at(words[micro_batch]), bits, ctypes.c_uint32(chunks), _at(sums))
            total += sums
        return np.array([activation(int(v), self._numbers.forward_shift) for v in total])

    def backward(
        self, activations: NDArray[np.int64], labels: Sequence[int], step: Step, *, first: bool, last: bool
    ) -> None:
        """Run the engine from FA to the gradients, and with a mini-batch's last micro-batch to the weights."""
        pairs = zip(activations, labels, strict=True)
        scales = np.array([scale(int(z), int(y), self._loss, step.multiplier) for z, y in pairs], np.int32)
        numbers = (self._numbers.bits, self._words.shape[2], first, last, step.shift)
        for engine in self._engines:
            self._library.hls_glm_backward(engine, _at(scales), *map(ctypes.c_uint32, numbers))

    @property
    def weights(self) -> NDArray[np.int64]:
        """Shape (engines, chunks * 64)."""
        found = np.zeros(self._shape, np.int64)
        for engine, weights in zip(self._engines, found, strict=True):
            self._library.hls_glm_weights(engine, _at(weights), ctypes.c_uint32(weights.size))
        return found


def train(workers: Sequence[HlsWorker], rows: NDArray[np.int64], per_batch: int, step: Step) -> None:
    """An epoch of Algorithm 1."""
    for index, labels in enumerate(rows):
        full = np.sum([worker.forward(index) for worker in workers], axis=0)
        first, last = index % per_batch == 0, index % per_batch == per_batch - 1 or index == len(rows) - 1
        for worker in workers:
            worker.backward(full, labels, step, first=first, last=last)
