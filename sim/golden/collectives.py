"""What the collectives compute, bit for bit: docs/collectives.md in numpy, on the number formats of `formats`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from catchment.sim.golden.formats import add_lanes, bf16_values, bf16_words, dequantize, quantize
from catchment.wire.generated.constants import DataType

_LEAST, _MOST = -128, 127
_LOWEST = {DataType.FP32: -126, DataType.FP16: -14, DataType.BF16: -126}
"""Exponents of the smallest normal numbers: denormals count as those."""


def smallest_exponent(values: NDArray[Any], dtype: DataType) -> int:
    """The smallest E, -128..127, with |x| < 2^E for every finite element; -128 when all are 0."""
    floats = bf16_values(values) if dtype == DataType.BF16 else values
    magnitudes = np.abs(floats.astype(np.float64))
    most = magnitudes[np.isfinite(magnitudes)].max(initial=0.0)
    if most == 0.0:
        return _LEAST
    return min(max(int(np.frexp(most)[1]), _LOWEST[dtype]), _MOST)


def block_exponents(arrays: list[NDArray[Any]], dtype: DataType, lanes: int, slots: int) -> list[int]:
    """E of every vector: one for the first `slots` vectors together, then each vector's own, over all ranks."""
    count = -(-arrays[0].size // lanes)
    own = [max(smallest_exponent(a[i * lanes : (i + 1) * lanes], dtype) for a in arrays) for i in range(count)]
    first = max(own[:slots], default=_LEAST)
    return [first] * min(slots, count) + own[slots:]


def total(
    arrays: list[NDArray[Any]], dtype: DataType, *, lanes: int, slots: int, op: str = "sum", exponent: int | None = None
) -> NDArray[Any]:
    """The result of all_reduce: one array of every rank's, `exponent` None for block scaling."""
    ranks = len(arrays)
    if op == "max":
        return _largest(arrays, dtype)
    if dtype == DataType.INT32:
        return add_lanes(arrays)
    count = -(-arrays[0].size // lanes)
    exponents = block_exponents(arrays, dtype, lanes, slots) if exponent is None else [exponent] * count
    # A mean is taken of the sum as fp32.
    to = dtype if op == "sum" else DataType.FP32
    parts = []
    for i, e in enumerate(exponents):
        vectors = [quantize(a[i * lanes : (i + 1) * lanes], dtype, e, ranks).lanes for a in arrays]
        parts.append(dequantize(add_lanes(vectors), to, e, ranks))
    sums = np.concatenate(parts) if parts else arrays[0].copy()
    return sums if op == "sum" or not parts else _narrow(np.divide(sums, np.float32(ranks), dtype=np.float32), dtype)


def _narrow(values: NDArray[np.float32], dtype: DataType) -> NDArray[Any]:
    if dtype == DataType.FP16:
        with np.errstate(over="ignore"):
            return values.astype(np.float16)
    return bf16_words(values) if dtype == DataType.BF16 else values


def _largest(arrays: list[NDArray[Any]], dtype: DataType) -> NDArray[Any]:
    if dtype != DataType.BF16:
        largest: NDArray[Any] = np.maximum.reduce(arrays)
        return largest
    return bf16_words(np.maximum.reduce([bf16_values(a) for a in arrays]))
