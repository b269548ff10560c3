"""Block-scaled messages in an all-reduce (docs/explanation/number-formats.md): what a worker sends, and gets.

`scaled_sums.block_exponents` and `scaled_sum` define what comes out; here is how it travels. Slow and obvious.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from catchment.sim.golden import formats
from catchment.sim.golden.collectives import scale
from catchment.wire.generated.constants import DataType


@dataclass(frozen=True, slots=True)
class Vector:
    """A vector as a worker sends it.

    Attributes:
        lanes: int32, of the stream's length.
        exponent: the vector's E; 0 of an announcement.
        next_exp: what a later vector of this worker needs; None without EXPV.
        last: the vector ends the announcements, or the message.
        saturated: SAT: a value was cut or not finite.
    """

    lanes: NDArray[np.int32]
    exponent: int
    next_exp: int | None
    last: bool
    saturated: bool


def needs(values: NDArray[Any], dtype: DataType, lanes: int) -> list[int]:
    """The smallest E of each vector with |x| < 2^E for its finite values, -128 where all are zero, at most 127."""
    return [scale(values[first : first + lanes], dtype).exponent for first in range(0, len(values), lanes)]


def sent(
    values: NDArray[Any], dtype: DataType, agreed: Sequence[int], *, workers: int, lanes: int, slots: int
) -> list[Vector]:
    """All vectors of a message.

    Args:
        values: one worker's, in the representation that `formats.quantize` takes.
        dtype: of the values.
        agreed: the E of every vector: the largest need of all workers.
        workers: of the job.
        lanes: of a vector.
        slots: T, how far ahead a vector tells a need.
    """
    own = needs(values, dtype, lanes)
    first = min(len(own), slots)
    announcements = [Vector(np.zeros(lanes, np.int32), 0, own[i], i + 1 == first, False) for i in range(first)]
    data = []
    for i, exponent in enumerate(agreed):
        quantized = formats.quantize(values[i * lanes : (i + 1) * lanes], dtype, exponent, workers)
        row = np.zeros(lanes, np.int32)
        row[: len(quantized.lanes)] = quantized.lanes
        told = own[i + slots] if i + slots < len(own) else None
        data.append(Vector(row, exponent, told, i + 1 == len(own), quantized.saturated > 0))
    return announcements + data


def agreed(parts: Sequence[NDArray[Any]], dtype: DataType, lanes: int) -> list[int]:
    """The E of every vector: what the switch makes of all workers' needs."""
    return [max(each) for each in zip(*(needs(part, dtype, lanes) for part in parts), strict=True)]


def total(parts: Sequence[NDArray[Any]], dtype: DataType, lanes: int) -> NDArray[Any]:
    """What every worker gets, as `dtype`."""
    rows = []
    for i, exponent in enumerate(agreed(parts, dtype, lanes)):
        quantized = [formats.quantize(part[i * lanes : (i + 1) * lanes], dtype, exponent, len(parts)) for part in parts]
        rows.append(formats.dequantize(formats.add_lanes([q.lanes for q in quantized]), dtype, exponent, len(parts)))
    return np.concatenate(rows)
