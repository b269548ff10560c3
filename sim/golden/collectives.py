"""What the collectives compute, bit for bit: docs/explanation/number-formats.md, "The contract", in numpy.

A sum or a mean of floats is made in one of five ways:

    gathered   arrays of up to `GATHERED_BYTES`: every rank adds all ranks' words, as float64, in the order of the ranks
    block      each vector of `lanes` elements has its own E, the smallest that holds all ranks' values; arrays of up to
               `GRID_VECTORS` vectors, and of no more than the stream's slots, the smallest of those on a grid
    whole      all vectors have one E, the smallest that holds all ranks' arrays, however short these are
    marked     a vector of `block` or `whole` in which a rank has NaN, an infinity, or a number of 2^127 and more
    fixed      E is given, of every vector; a vector in which a rank has NaN, an infinity, or a number of 2^126 and more
               that is cut is NaN throughout
    packed     of what is not gathered, vectors have twice as many elements, 16 bits each (`packed_lanes`); no exponent
               is on the grid, and a marked vector is NaN throughout
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from catchment.sim.golden import marked_vectors
from catchment.sim.golden.formats import add_lanes, exact, rounded
from catchment.sim.golden.lane_formats import LaneFormat
from catchment.wire.generated.constants import DataType

GATHERED_BYTES = 1024
GRID_VECTORS, GRID = 32, 4
"""Arrays of so few vectors have exponents that are -128 and a multiple of the grid, or 127."""
_LEAST, _MOST = -128, 127
_LOWEST = {DataType.FP32: -126, DataType.FP16: -14, DataType.BF16: -126}
"""Exponents of the smallest normal numbers: denormals count as those."""


@dataclass(frozen=True, slots=True)
class Scale:
    """How the elements of a vector lie in lanes: E, and whether the vector is marked."""

    exponent: int
    marked: bool


def scale(values: NDArray[Any], dtype: DataType) -> Scale:
    """What one rank's vector needs: the smallest E, -128..127, with |x| < 2^E for every finite element.

    -128 when all are 0. Where there is an element that is not finite, or for which 127 is not enough, it is marked.
    """
    magnitudes = np.abs(exact(values, dtype)[0])
    finite = np.isfinite(magnitudes)
    most = magnitudes[finite].max(initial=0.0)
    needed = _LEAST if most == 0.0 else max(int(np.frexp(most)[1]), _LOWEST[dtype])
    return Scale(min(needed, _MOST), not finite.all() or needed > _MOST)


def block_scales(arrays: list[NDArray[Any]], dtype: DataType, lanes: int) -> list[Scale]:
    """The scale of every vector: the largest E of all ranks, marked if any rank's is."""
    scales = []
    for first in range(0, arrays[0].size, lanes):
        each = [scale(array[first : first + lanes], dtype) for array in arrays]
        scales.append(Scale(max(one.exponent for one in each), any(one.marked for one in each)))
    return scales


def whole_scales(scales: list[Scale], least: int = _LEAST) -> list[Scale]:
    """What `Whole` makes of the scales of `block_scales`: the largest E, and at least `least`, for all."""
    exponent = max([least, *(one.exponent for one in scales)])
    return [Scale(exponent, one.marked) for one in scales]


def gridded(scales: list[Scale], slots: int) -> list[Scale]:
    """What block scaling makes of the scales of `block_scales`; a marked vector's stays."""
    if len(scales) > min(GRID_VECTORS, slots):
        return scales
    return [one if one.marked else Scale(_on_grid(one.exponent), False) for one in scales]


def _on_grid(exponent: int) -> int:
    return min(_MOST, _LEAST - (_LEAST - exponent) // GRID * GRID)


def delayed_scales(scales: list[Scale], exponent: int, slots: int, *, on_grid: bool = True) -> list[Scale]:
    """What `Delayed` makes of the scales of `block_scales`: `exponent` for all, if it holds them all; else as block.

    Only where the vectors are no more than the stream's slots.
    """
    holds = len(scales) <= slots and all(one.exponent <= exponent and not one.marked for one in scales)
    if holds:
        return [Scale(exponent, False)] * len(scales)
    return gridded(scales, slots) if on_grid else scales


def total(
    arrays: list[NDArray[Any]],
    dtype: DataType,
    *,
    lanes: int,
    slots: int,
    op: str = "sum",
    exponent: int | None = None,
    delayed: int | None = None,
    whole: bool = False,
    packed: bool = False,
) -> NDArray[Any]:
    """The result of all_reduce: one array of every rank's.

    Args:
        arrays: in the representation that `formats.quantize` takes.
        dtype: of their elements.
        lanes: elements of a vector.
        slots: of the stream.
        op: ``sum``, ``mean`` (floats) or ``max``.
        exponent: E of fixed scaling; None for block scaling.
        delayed: the E that delayed scaling has found in earlier operations.
        whole: scaling with one E for all vectors.
        packed: two elements in a lane.
    """
    if op == "max":
        return _largest(arrays, dtype)
    if dtype == DataType.INT32:
        return add_lanes(arrays)
    if arrays[0].size == 0:
        return arrays[0].copy()
    # A mean is taken of the sum as fp32.
    to = dtype if op == "sum" else DataType.FP32
    vector = 2 * lanes if packed else lanes
    form = LaneFormat(len(arrays), packed)
    if exponent is not None:
        sums = _fixed(arrays, dtype, to, exponent, vector, form=form)
    elif arrays[0].nbytes <= GATHERED_BYTES and not whole:
        sums = _gathered(arrays, dtype, to)
    else:
        scales = block_scales(arrays, dtype, vector)
        if whole:
            scales = whole_scales(scales)
        elif delayed is not None:
            scales = delayed_scales(scales, delayed, slots, on_grid=not packed)
        elif not packed:
            scales = gridded(scales, slots)
        sums = _scaled(arrays, dtype, to, scales, vector, form=form)
    if op == "sum":
        return sums
    with np.errstate(invalid="ignore"):
        mean = np.divide(sums, np.float32(len(arrays)), dtype=np.float32)
    return rounded(mean.astype(np.float64), dtype)


def _gathered(arrays: list[NDArray[Any]], dtype: DataType, to: DataType) -> NDArray[Any]:
    sums = exact(arrays[0], dtype)[0]
    with np.errstate(invalid="ignore"):
        for array in arrays[1:]:
            sums = sums + exact(array, dtype)[0]
    return rounded(sums, to)


def _scaled(
    arrays: list[NDArray[Any]], dtype: DataType, to: DataType, scales: list[Scale], vector: int, *, form: LaneFormat
) -> NDArray[Any]:
    parts, ranks = [], len(arrays)
    for i, one in enumerate(scales):
        vectors = [array[i * vector : (i + 1) * vector] for array in arrays]
        if one.marked and form.packed:
            parts.append(rounded(np.full(vectors[0].size, np.nan), to))
        elif one.marked:
            words = [marked_vectors.quantize(vector, dtype, one.exponent, ranks) for vector in vectors]
            parts.append(marked_vectors.dequantize(add_lanes(words), to, one.exponent, ranks))
        else:
            words = [form.quantize(vector, dtype, one.exponent).lanes for vector in vectors]
            parts.append(form.dequantize(form.add(words), to, one.exponent, vectors[0].size))
    return np.concatenate(parts)


def _fixed(
    arrays: list[NDArray[Any]], dtype: DataType, to: DataType, exponent: int, vector: int, *, form: LaneFormat
) -> NDArray[Any]:
    parts = []
    for first in range(0, arrays[0].size, vector):
        vectors = [array[first : first + vector] for array in arrays]
        added = [form.quantize(vector, dtype, exponent) for vector in vectors]
        cut = any(one.saturated for one in added)
        beyond = any(one.nonfinite for one in added) or any(scale(v, dtype).exponent == _MOST for v in vectors)
        size = vectors[0].size
        if cut and beyond:
            parts.append(rounded(np.full(size, np.nan), to))
        else:
            parts.append(form.dequantize(form.add([one.lanes for one in added]), to, exponent, size))
    return np.concatenate(parts)


def _largest(arrays: list[NDArray[Any]], dtype: DataType) -> NDArray[Any]:
    """IEEE 754's maximum of every element: +0 is more than -0, and NaN more than all; of NaNs, the first rank's."""
    if dtype == DataType.INT32:
        integers: NDArray[Any] = np.maximum.reduce(arrays)
        return integers
    largest = arrays[0].copy()
    for other in arrays[1:]:
        x, y = exact(largest, dtype)[0], exact(other, dtype)[0]
        more = (y > x) | (np.isnan(y) & ~np.isnan(x)) | ((x == y) & np.signbit(x))
        largest = np.where(more, other, largest)
    return largest
