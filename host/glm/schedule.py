"""Which samples make up the mini-batches, for all workers alike or data-parallel."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from catchment.wire.generated.glm_numbers import BANKS


def mini_batch_ends(samples: int, batch: int) -> list[int]:
    """The end of each mini-batch; the last may be short."""
    return [min(begin + batch, samples) for begin in range(0, samples, batch)]


def data_parallel_samples(samples: int, batch: int, workers: int, wid: int) -> tuple[NDArray[np.int64], list[int]]:
    """A worker's samples when each mini-batch's micro-batches go round the workers, and its mini-batches' ends."""
    chosen: list[int] = []
    ends = []
    for begin in range(0, samples, batch):
        end = min(begin + batch, samples)
        for first in range(begin + wid * BANKS, end, workers * BANKS):
            chosen.extend(range(first, min(first + BANKS, end)))
        ends.append(len(chosen))
    return np.array(chosen, np.int64), ends
