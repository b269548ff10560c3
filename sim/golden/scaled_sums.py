"""What an all-reduce through the switch gives for each way of choosing exponents, defined slowly and obviously.

A vector is `lanes` elements of a tensor that share one exponent E; a tensor's last vector may be shorter.

    block    every vector has its own E, the smallest with |x| < 2^E for all workers' elements of that vector: what the
             workers agree on through the switch (the largest next_exp of all)
    fixed    one E for every vector, given by the caller
    delayed  one E for a tensor and a step, made of the sums of the steps before (host.optimizer.DelayedScaling)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from catchment.sim.golden import formats
from catchment.wire.generated.constants import DataType

Exponents = NDArray[np.int64]
EXPONENT_MIN, EXPONENT_MAX = -128, 127


@dataclass(frozen=True, slots=True)
class ScaledSum:
    """The sum in the representation of its dtype (see catchment.sim.golden.formats), and how many values were cut."""

    values: NDArray[Any]
    saturated: int


def to_wire(values: NDArray[np.float32], dtype: DataType) -> NDArray[Any]:
    """fp32 elements as elements of `dtype`, rounded half to even."""
    if dtype == DataType.BF16:
        return formats.bf16_words(values)
    with np.errstate(over="ignore"):
        return values.astype({DataType.FP32: np.float32, DataType.FP16: np.float16}[dtype])


def from_wire(values: NDArray[Any], dtype: DataType) -> NDArray[np.float64]:
    """What elements of `dtype` stand for."""
    floats = formats.bf16_values(values) if dtype == DataType.BF16 else values
    return floats.astype(np.float64)


def exponent_of(largest: NDArray[np.float64]) -> Exponents:
    """The smallest E with x < 2^E, elementwise; the lowest exponent there is for 0."""
    exponents = np.where(largest > 0, np.frexp(largest)[1], EXPONENT_MIN)
    return np.clip(exponents, EXPONENT_MIN, EXPONENT_MAX).astype(np.int64)


def block_exponents(parts: Sequence[NDArray[Any]], dtype: DataType, lanes: int) -> Exponents:
    """E of every vector under block scaling. `parts`: one flat array per worker, in the representation of `dtype`."""
    magnitudes = np.max([np.abs(from_wire(part, dtype)) for part in parts], axis=0)
    return exponent_of(_vectors(magnitudes, lanes).max(axis=1))


def scaled_sum(parts: Sequence[NDArray[Any]], dtype: DataType, exponents: Exponents | int, lanes: int) -> ScaledSum:
    """The sum that every worker gets.

    Args:
        parts: one flat array per worker, in the representation of `dtype`.
        exponents: E of every vector, or one for all.
        lanes: elements of a vector.
    """
    elements = len(parts[0])
    vectors = -(-elements // lanes)
    chosen = np.broadcast_to(np.asarray(exponents, np.int64), (vectors,))
    rows = [_vectors(part, lanes) for part in parts]
    total = np.zeros_like(rows[0])
    saturated = 0
    for exponent in np.unique(chosen):
        these = chosen == exponent
        quantized = [formats.quantize(row[these], dtype, int(exponent), len(parts)) for row in rows]
        lanes_sum = formats.add_lanes([q.lanes for q in quantized])
        total[these] = formats.dequantize(lanes_sum, dtype, int(exponent), len(parts))
        saturated += sum(q.saturated for q in quantized)
    return ScaledSum(total.reshape(-1)[:elements], saturated)


def _vectors(values: NDArray[Any], lanes: int) -> NDArray[Any]:
    padded = np.zeros(-(-len(values) // lanes) * lanes, values.dtype)
    padded[: len(values)] = values
    return padded.reshape(-1, lanes)
