"""How the floats of a stream lie in its lanes, one in each or two in packed ones: the definitions under one face."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from catchment.sim.golden import formats, packed_lanes
from catchment.wire.generated.constants import DataType

WHOLE_BITS = 30
"""Bits of a lane of one number, beside its sign and a bit to spare."""


@dataclass(frozen=True, slots=True)
class LaneFormat:
    """The format of a job with `workers` workers, with `packed` lanes or lanes of one number."""

    workers: int
    packed: bool = False

    def quantize(self, values: NDArray[Any], dtype: DataType, exponent: int) -> formats.Quantized:
        """Elements to lanes, as `formats.quantize` or `packed_lanes.quantize`."""
        if self.packed:
            return packed_lanes.quantize(values, dtype, exponent, self.workers)
        return formats.quantize(values, dtype, exponent, self.workers)

    def add(self, vectors: list[formats.Lanes]) -> formats.Lanes:
        """What the switch makes of all workers' lanes."""
        return packed_lanes.add_lanes(vectors) if self.packed else formats.add_lanes(vectors)

    def dequantize(self, lanes: formats.Lanes, dtype: DataType, exponent: int, elements: int) -> NDArray[Any]:
        """Sums to `elements` elements."""
        if self.packed:
            return packed_lanes.dequantize(lanes, dtype, exponent, self.workers, elements)
        return formats.dequantize(lanes[:elements], dtype, exponent, self.workers)

    def largest(self, lanes: formats.Lanes, exponent: int) -> float:
        """The largest magnitude of the sums before they are rounded to a type: what endpoints report as `max_abs`."""
        sums = packed_lanes.from_lanes(lanes) if self.packed else lanes
        bits = packed_lanes.HALF_BITS if self.packed else WHOLE_BITS
        return math.ldexp(int(np.abs(sums.astype(np.int64)).max()), exponent + formats.headroom(self.workers) - bits)
