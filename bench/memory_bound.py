"""The least time of an all-reduce on one machine, by its own copy bandwidth and a count of passes over memory.

A pass reads or writes each byte of an array once.  Where N processes have arrays of their own, in place, and sums are
made in memory that all of them share, these are the fewest: each rank reads its array (N), the first one's is assigned
and N - 1 are added where the sum grows (N writes, N - 1 reads; the last adder keeps what it makes), N - 1 ranks read
the sums, and each writes its array (N).  What is shared is a window that stays in the caches; the arrays come from
wherever so many bytes lie.  Nothing is counted for waking anybody, for headers, or for exponents.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from statistics import median
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

_TOUCHED = 64 << 20  # bytes that a measurement touches at least
_REPEATS = 3

Array = NDArray[np.uint8]


def own_passes(ranks: int) -> int:
    """Passes over the ranks' own arrays."""
    return 2 * ranks


def shared_passes(ranks: int) -> int:
    """Passes over the memory where sums are made."""
    return 3 * ranks - 2


def least_seconds(ranks: int, size: int, window: int) -> float:
    """The bound of an all-reduce of `size` bytes through `window` bytes of shared memory, measured now."""
    cores = min(ranks, os.cpu_count() or 1)
    arrays = [np.ones(size, np.uint8) for _ in range(ranks)]
    windows = [np.ones(min(size, window), np.uint8) for _ in range(cores)]
    own, shared = own_passes(ranks) * size, shared_passes(ranks) * size
    return own / bytes_per_second(arrays, cores) + shared / bytes_per_second(windows, cores)


def bytes_per_second(arrays: Sequence[Array], cores: int) -> float:
    """Bytes read and written by `cores` threads that copy within the arrays: one half on the other, and back."""
    sizes = sum(array.nbytes // 2 * 2 for array in arrays)
    sweeps = -(-_TOUCHED // (2 * sizes))
    shares = [arrays[core::cores] for core in range(cores)]
    with ThreadPoolExecutor(cores) as threads:
        times = []
        for _ in range(_REPEATS):
            begun = perf_counter()
            list(threads.map(lambda share: _copy_within(share, sweeps), shares))
            times.append(perf_counter() - begun)
    return 2 * sizes * sweeps / median(times)


def _copy_within(arrays: Sequence[Array], sweeps: int) -> None:
    halves = [(array[: array.nbytes // 2], array[array.nbytes // 2 : array.nbytes // 2 * 2]) for array in arrays]
    for _ in range(sweeps):
        for first, second in halves:
            np.copyto(second, first)
            np.copyto(first, second)
