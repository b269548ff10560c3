"""`make bench-endpoint_convert`: floats to lanes and back, bytes read and written per second, beside memcpy."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
from numpy.typing import NDArray

from bench.report import Figure, publish, rate
from catchment.host import _native
from catchment.host.transport.buffers import ITEM_BYTES
from catchment.wire.generated.constants import DataType

SIZES = {"256 KiB": 1 << 18, "64 MiB": 1 << 26}  # in a core's cache, and in memory
FLOATS = (DataType.FP32, DataType.FP16, DataType.BF16)
GOAL = 0.8
EXPONENT, HEADROOM = 3, 2


def bytes_per_second(work: Callable[[], object], moved: int) -> float:
    """Bytes read and written per second."""
    repeats = max(1, (1 << 24) // moved)

    def batch() -> int:
        for _ in range(repeats):
            work()
        return moved * repeats

    return rate(batch, seconds=0.2)


def copied(size: int) -> float:
    """memcpy of `size` bytes."""
    source, target = np.ones(size, np.uint8), np.zeros(size, np.uint8)
    return bytes_per_second(lambda: np.copyto(target, source), 2 * size)


def elements(dtype: DataType, count: int) -> NDArray[np.uint8]:
    """Numbers that mostly do not saturate."""
    values = np.random.default_rng(1).standard_normal(count).astype(np.float32)
    if dtype == DataType.FP16:
        return values.astype(np.float16).view(np.uint8)
    if dtype == DataType.BF16:
        return (values.view(np.uint32) >> 16).astype(np.uint16).view(np.uint8)
    return values.view(np.uint8)


def measure(dtype: DataType, size: int) -> tuple[float, float]:
    """Convert `size` bytes of lanes in both directions and give both rates, bytes per second."""
    count = size // 4
    moved = count * (4 + ITEM_BYTES[dtype])
    items, lanes = _native.Pinned(elements(dtype, count), True), _native.Pinned(np.zeros(size, np.uint8), True)
    there = bytes_per_second(lambda: _native.quantize(items, dtype, EXPONENT, HEADROOM, lanes), moved)
    back = bytes_per_second(lambda: _native.dequantize(lanes, EXPONENT, HEADROOM, dtype, items), moved)
    return there, back


def main() -> None:
    """Measure and publish."""
    figures = []
    for (name, size), dtype in product(SIZES.items(), FLOATS):
        peer = copied(size) / 1e9
        there, back = (value / 1e9 for value in measure(dtype, size))
        figures.append(Figure(f"{dtype.name} to lanes, {name}", there, "GB/s", "memcpy", peer, GOAL))
        figures.append(Figure(f"{dtype.name} from lanes, {name}", back, "GB/s", "memcpy", peer, GOAL))
    publish("endpoint_convert", figures, ["GB/s count bytes read and bytes written, of the conversion as of memcpy."])


if __name__ == "__main__":
    main()
