"""The definition of the number formats: floats to int32 lanes with a shared exponent and back, bit for bit.

docs/explanation/protocol.md, "Numbers".  For `workers` workers, h = ceil(log2 workers), and a shared exponent E:

    to lanes     q = round_half_even(x * 2^(30-h-E)), cut to [-2^(30-h), 2^(30-h)], that is x to [-2^E, 2^E].
                 What is cut counts as saturated.  Infinities and NaN count as saturated and as not finite, and go
                 to the end that their sign bit names.  fp16 and bf16 denormals and fp32 denormals are numbers like
                 all others.
    from lanes   q * 2^(E+h-30), an exact real number, rounded once, half to even, to the type; what rounds beyond
                 the largest number is an infinity.  q = 0 gives +0.
    int32        lanes are the elements, untouched; their sums wrap.

The cut keeps every worker's |q| <= 2^(30-h), so the sum of all workers is at most 2^30 in magnitude.  Everything here
is float64, in which each x, each q and each scaling by a power of two is exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from catchment.wire.generated.constants import DataType

Lanes = NDArray[np.int32]
Words = NDArray[np.uint16]
Reals = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Quantized:
    """Lanes, how many values were cut (the non-finite included), and how many were not finite."""

    lanes: Lanes
    saturated: int
    nonfinite: int


@dataclass(frozen=True, slots=True)
class _Type:
    """A binary floating-point type: significand bits with the hidden one, and its exponent range."""

    precision: int
    lowest: int  # exponent of the smallest normal number
    highest: int  # exponent of the largest


_TYPES = {DataType.FP32: _Type(24, -126, 127), DataType.FP16: _Type(11, -14, 15), DataType.BF16: _Type(8, -126, 127)}


def headroom(workers: int) -> int:
    """h = ceil(log2 workers)."""
    if workers < 1:
        raise ValueError(f"{workers} workers")
    return (workers - 1).bit_length()


def quantize(values: NDArray[Any], dtype: DataType, exponent: int, workers: int) -> Quantized:
    """Elements of `dtype` (FP32: float32; FP16: float16; BF16: uint16 words; INT32: int32) to lanes of the same shape.

    Raises:
        ValueError: an exponent outside -128..127, or a dtype that has no lanes.
    """
    _check(exponent)
    if dtype == DataType.INT32:
        return Quantized(values.astype(np.int32, casting="equiv"), 0, 0)
    x, negative = exact(values, dtype)
    limit = 2.0 ** (30 - headroom(workers))
    finite = np.isfinite(x)
    q = np.rint(np.where(finite, x, 0.0) * 2.0 ** (30 - headroom(workers) - exponent))
    cut = ~finite | (np.abs(q) > limit)
    lanes = np.where(cut, np.where(negative, -limit, limit), q).astype(np.int32)
    return Quantized(lanes, int(cut.sum()), int((~finite).sum()))


def dequantize(lanes: Lanes, dtype: DataType, exponent: int, workers: int) -> NDArray[Any]:
    """Lanes to elements of `dtype`, in the representation that `quantize` takes.

    Raises:
        ValueError: an exponent outside -128..127, or a dtype that has no lanes.
    """
    _check(exponent)
    if dtype == DataType.INT32:
        return lanes.copy()
    return rounded(lanes.astype(np.float64) * 2.0 ** (exponent + headroom(workers) - 30), dtype)


def add_lanes(vectors: list[Lanes]) -> Lanes:
    """What the switch makes of one vector per worker: the sum modulo 2^32."""
    total = np.zeros(vectors[0].shape, np.uint32)
    for vector in vectors:
        total += vector.view(np.uint32)
    return total.view(np.int32)


def exact(values: NDArray[Any], dtype: DataType) -> tuple[Reals, NDArray[np.bool_]]:
    """Elements of a float type as float64, and their sign bits, which NaN has too."""
    _type(dtype)
    floats = bf16_values(values.astype(np.uint16, casting="equiv")) if dtype == DataType.BF16 else values
    with np.errstate(invalid="ignore"):
        return floats.astype(np.float64), np.signbit(floats)


def rounded(values: Reals, dtype: DataType) -> NDArray[Any]:
    """Real numbers, rounded once, half to even, to elements of a float type; NaN is the quiet one, unsigned."""
    nearest = _round(np.where(np.isnan(values), np.nan, values), _type(dtype))
    with np.errstate(over="ignore"):
        if dtype == DataType.FP32:
            return nearest.astype(np.float32)
        if dtype == DataType.FP16:
            return nearest.astype(np.float16)
        return (nearest.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)


def bf16_words(values: NDArray[np.float32]) -> Words:
    """float32 numbers, rounded half to even to bfloat16, as words; NaN becomes the quiet NaN of its sign."""
    rounded = _round(values.astype(np.float64), _type(DataType.BF16)).astype(np.float32)
    return (rounded.view(np.uint32) >> 16).astype(np.uint16)


def bf16_values(words: Words) -> NDArray[np.float32]:
    """What bfloat16 words stand for."""
    return (words.astype(np.uint32) << 16).view(np.float32)


def _type(dtype: DataType) -> _Type:
    if dtype not in _TYPES:
        raise ValueError(f"{dtype.name} is no float")
    return _TYPES[dtype]


def _round(values: Reals, to: _Type) -> Reals:
    """Round once, half to even, to what the type holds; the result is a float64."""
    _, above = np.frexp(values)  # |x| < 2^above
    unit = np.maximum(above - 1, to.lowest) - (to.precision - 1)
    with np.errstate(invalid="ignore"):
        rounded: Reals = np.ldexp(np.rint(np.ldexp(values, -unit)), unit)
    most = 2.0**to.highest * (2 - 2.0 ** (1 - to.precision))
    rounded[np.abs(rounded) > most] *= np.inf
    return rounded


def _check(exponent: int) -> None:
    if not -128 <= exponent <= 127:
        raise ValueError(f"exponent {exponent} is not in -128..127")
