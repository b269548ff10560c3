"""The definition of a marked vector, bit for bit: a rank has NaN, an infinity or a number of 2^127 and more in it.

All ranks know beforehand that a vector is marked, and E, which holds every finite element: |x| < 2^E, where 127 stands
for 128.  For `workers` workers, h = ceil(log2 workers), and c bits that count to `workers`, a lane is, from the top,

    c bits       how many workers have +infinity or NaN
    c bits       how many have -infinity or NaN
    w = 32 - 2c  the sum of round_half_even(x * 2^(w-2-h-E)) over the workers whose element is finite, signed

which is the sum modulo 2^32 of one lane per worker, so the switch adds it as any other.  Back: NaN if both counts are
above 0, an infinity if one is; else the sum * 2^(E+h+2-w), rounded once to the type.  NaN is the quiet one without a
sign.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from catchment.sim.golden.formats import Lanes, exact, headroom, rounded
from catchment.wire.generated.constants import DataType

_WORD = 32


def quantize(values: NDArray[Any], dtype: DataType, exponent: int, workers: int) -> Lanes:
    """Elements of a float type, in the representation that `formats.quantize` takes, to lanes of the same shape."""
    x, negative = exact(values, dtype)
    finite = np.isfinite(x)
    sums = np.rint(np.where(finite, x, 0.0) * 2.0 ** _power(exponent, workers)).astype(np.int64)
    counted = workers.bit_length()
    plus = np.isnan(x) | (~finite & ~negative)
    minus = np.isnan(x) | (~finite & negative)
    lanes = sums + (plus.astype(np.int64) << (_WORD - counted)) + (minus.astype(np.int64) << _width(workers))
    words: Lanes = (lanes % (1 << _WORD)).astype(np.uint32).view(np.int32)
    return words


def dequantize(lanes: Lanes, dtype: DataType, exponent: int, workers: int) -> NDArray[Any]:
    """Sums of lanes to elements of `dtype`, in the representation that `formats.quantize` takes."""
    width, counted = _width(workers), workers.bit_length()
    whole = lanes.view(np.uint32).astype(np.int64)
    half = 1 << (width - 1)
    sums = (whole + half) % (1 << width) - half
    counts = ((whole - sums) % (1 << _WORD)) >> width
    plus, minus = counts >> counted, counts & ((1 << counted) - 1)
    reals = sums.astype(np.float64) * 2.0 ** -_power(exponent, workers)
    reals[plus > 0] = np.inf
    reals[minus > 0] = -np.inf
    reals[(plus > 0) & (minus > 0)] = np.nan
    return rounded(reals, dtype)


def _width(workers: int) -> int:
    return _WORD - 2 * workers.bit_length()


def _power(exponent: int, workers: int) -> int:
    most = 128 if exponent == 127 else exponent
    return _width(workers) - 2 - headroom(workers) - most
