"""The definition of packed lanes, bit for bit: two 16-bit integers in each 32-bit lane, and how the switch adds them.

docs/explanation/packed-lanes.md.  For `workers` workers, h = ceil(log2 workers), and a shared exponent E:

    to halves    q = round_half_even(x * 2^(15-h-E)), cut to [-m, m], where m = min(2^(15-h), floor(32767 / workers)).
                 What lies beyond 2^(15-h) before the cut counts as saturated, so nothing below 2^E ever does.
                 Infinities and NaN count as saturated and as not finite, and go to the end that their sign bit names.
    from halves  q * 2^(E+h-15), rounded once, half to even, to the type.  q = 0 gives +0.

Element 2i of a vector is the upper half of lane i, element 2i + 1 the lower: in network byte order the halves lie in
the order of the elements.  A vector that ends before its last half, after an odd number of elements as anywhere else,
is filled with zeros.  The sum of all workers is at most 32767 in magnitude, because every |q| is at most m.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from catchment.sim.golden.formats import Lanes, Quantized, exact, headroom, rounded
from catchment.wire.generated.constants import DataType

HALF_BITS = 15
"""Bits of a half beside its sign."""
LARGEST_SUM = (1 << HALF_BITS) - 1
EXPONENTS = range(-128, 128)


def limit(workers: int) -> int:
    """The largest magnitude of one worker's half: `workers` of them do not overflow."""
    return min(1 << (HALF_BITS - headroom(workers)), LARGEST_SUM // workers)


def quantize(values: NDArray[Any], dtype: DataType, exponent: int, workers: int) -> Quantized:
    """Elements of a float type, in the representation that `formats.quantize` takes, to lanes: half as many.

    Raises:
        ValueError: an exponent outside -128..127, or a dtype that is no float.
    """
    _check(exponent)
    x, negative = exact(values, dtype)
    finite = np.isfinite(x)
    q = np.rint(np.where(finite, x, 0.0) * 2.0 ** (HALF_BITS - headroom(workers) - exponent))
    beyond = ~finite | (np.abs(q) > 2 ** (HALF_BITS - headroom(workers)))
    most = limit(workers)
    ends = np.where(negative, -most, most)
    halves = np.where(beyond, ends, np.clip(q, -most, most)).astype(np.int16)
    return Quantized(to_lanes(halves), int(beyond.sum()), int((~finite).sum()))


def dequantize(lanes: Lanes, dtype: DataType, exponent: int, workers: int, elements: int) -> NDArray[Any]:
    """The first `elements` of the halves in `lanes` as elements of a float type.

    Raises:
        ValueError: an exponent outside -128..127, or a dtype that is no float.
    """
    _check(exponent)
    halves = from_lanes(lanes)[:elements].astype(np.float64)
    return rounded(halves * 2.0 ** (exponent + headroom(workers) - HALF_BITS), dtype)


def add_lanes(vectors: list[Lanes]) -> Lanes:
    """What the switch makes of one vector per worker: each half by itself, modulo 2^16."""
    total = np.zeros(2 * vectors[0].size, np.uint16)
    for vector in vectors:
        total += from_lanes(vector).view(np.uint16)
    return to_lanes(total.view(np.int16))


def to_lanes(halves: NDArray[np.int16]) -> Lanes:
    """Halves in lanes, the first in the upper half of the first."""
    whole = np.zeros(-(-len(halves) // 2) * 2, ">i2")
    whole[: len(halves)] = halves
    return whole.view(">i4").astype(np.int32)


def from_lanes(lanes: Lanes) -> NDArray[np.int16]:
    """All halves of lanes, in order."""
    return lanes.astype(">i4").view(">i2").astype(np.int16)


def _check(exponent: int) -> None:
    if exponent not in EXPONENTS:
        raise ValueError(f"exponent {exponent} is not in -128..127")
