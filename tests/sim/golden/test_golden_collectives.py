"""The numerics contract of the collectives' definition, beside plain sums of floats."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from catchment.sim.golden import collectives, marked_vectors
from catchment.sim.golden.formats import add_lanes, bf16_values, bf16_words
from catchment.wire.generated.constants import DataType

LANES, SLOTS = 64, 8
FLOATS = (DataType.FP32, DataType.FP16, DataType.BF16)
SPECIAL = (np.nan, -np.nan, np.inf, -np.inf)
"""A NaN may have either sign; processors make negative ones."""


def elements(values: NDArray[Any], dtype: DataType) -> NDArray[Any]:
    with np.errstate(over="ignore"):
        floats = values.astype(np.float32)
        return {DataType.FP32: floats, DataType.FP16: floats.astype(np.float16), DataType.BF16: bf16_words(floats)}[
            dtype
        ]


def reals(values: NDArray[Any], dtype: DataType) -> NDArray[np.float64]:
    return (bf16_values(values) if dtype == DataType.BF16 else values).astype(np.float64)


def same_kind(sums: NDArray[np.float64], floats: NDArray[np.float64]) -> bool:
    """NaN, infinities and their signs in the same places."""
    return (
        np.array_equal(np.isnan(sums), np.isnan(floats))
        and np.array_equal(np.isposinf(sums), np.isposinf(floats))
        and np.array_equal(np.isneginf(sums), np.isneginf(floats))
    )


@pytest.mark.parametrize("op", ["sum", "mean"])
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 8, 32, 64])
def test_what_is_not_finite_is_that_of_a_sum_of_floats(ranks: int, dtype: DataType, op: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    arrays = [rng.standard_normal(1000) for _ in range(ranks)]
    for array in arrays:
        array[rng.integers(0, 500, 20)] = rng.choice(SPECIAL, 20)
    given = [elements(array, dtype) for array in arrays]
    with np.errstate(invalid="ignore"):
        floats = np.add.reduce([reals(one, dtype) for one in given])
    sums = reals(collectives.total(given, dtype, lanes=LANES, slots=SLOTS, op=op), dtype)
    assert not np.isfinite(sums[:500]).all()
    assert same_kind(sums, floats)


@pytest.mark.parametrize("ranks", [2, 3, 4, 8])
def test_finite_neighbours_of_nan_are_right(ranks: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    arrays = [rng.standard_normal(LANES * 8).astype(np.float32) for _ in range(ranks)]
    arrays[-1][5::LANES] = np.nan
    finite = np.isfinite(arrays[-1])
    exact = np.add.reduce([array.astype(np.float64) for array in arrays])[finite]
    sums = collectives.total(arrays, DataType.FP32, lanes=LANES, slots=SLOTS)[finite]
    assert np.abs(sums - exact).max() <= np.abs(arrays)[:, finite].max() * ranks * 2.0**-18


@pytest.mark.parametrize("dtype", [DataType.FP32, DataType.BF16])
def test_huge_numbers_are_not_cut(dtype: DataType) -> None:
    huge = np.full(600, 3.0e38)
    given = [elements(huge, dtype), elements(-huge, dtype), elements(huge, dtype)]
    sums = reals(collectives.total(given, dtype, lanes=LANES, slots=SLOTS), dtype)
    assert np.allclose(sums, reals(given[0], dtype), rtol=2.0**-20 if dtype == DataType.FP32 else 2.0**-8)
    assert np.isposinf(reals(collectives.total(given[::2], dtype, lanes=LANES, slots=SLOTS), dtype)).all()


def test_every_count_of_every_kind_is_told_apart(rng: random.Random) -> None:
    """Lanes of one element on all ranks, for as many ranks as there may be."""
    for ranks in (1, 2, 3, 4, 7, 16, 31, 32, 63, 64):
        for _ in range(200):
            kinds = np.array([rng.choice((*SPECIAL, 0.0, 1.5, -1.9999999, 2.0**-9)) for _ in range(ranks)], np.float32)
            lanes = [marked_vectors.quantize(kinds[i : i + 1], DataType.FP32, 1, ranks) for i in range(ranks)]
            with np.errstate(invalid="ignore"):
                wanted = np.add.reduce(kinds.astype(np.float64))
            found = marked_vectors.dequantize(add_lanes(lanes), DataType.FP32, 1, ranks).astype(np.float64)
            assert same_kind(found, np.array([wanted])), (ranks, kinds)
            if np.isfinite(wanted):
                assert abs(found[0] - wanted) <= ranks * 2.0 ** -(27 - 3 * ranks.bit_length())


def test_a_loss_beside_a_count_is_right() -> None:
    arrays = [np.array([2.35, 3.2e9], np.float32), np.array([2.40, 3.1e9], np.float32)]
    assert (
        collectives.total(arrays, DataType.FP32, lanes=1024, slots=SLOTS).tolist() == (arrays[0] + arrays[1]).tolist()
    )


def test_few_elements_keep_the_sign_of_zero() -> None:
    zeros = [np.array([-0.0, -0.0, 0.0], np.float32), np.array([-0.0, 0.0, 0.0], np.float32)]
    sums = collectives.total(zeros, DataType.FP32, lanes=LANES, slots=SLOTS)
    assert np.signbit(sums).tolist() == [True, False, False]


def test_every_vector_has_its_own_exponent(seed: int) -> None:
    """So a large one costs its neighbours nothing but what rounding the sum costs: half a unit of twice the largest."""
    rng = np.random.default_rng(seed)
    arrays = [rng.standard_normal(LANES * 8).astype(np.float32) for _ in range(2)]
    for array in arrays:
        array[LANES : 2 * LANES] *= np.float32(2.0**40)
    exact = np.add.reduce([array.astype(np.float64) for array in arrays])
    wrong = np.abs(collectives.total(arrays, DataType.FP32, lanes=LANES, slots=SLOTS) - exact).reshape(-1, LANES)
    largest = np.abs(arrays).max(0).reshape(-1, LANES).max(1)
    assert (wrong.max(1) <= largest * 2.0**-22).all()


@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_errors_beside_a_sum_of_floats_are_in_bounds(ranks: int, seed: int) -> None:
    """Bounds in units of the largest of the vector: median 2^-22, 99 % 2^-18."""
    rng = np.random.default_rng(seed)
    shape = (ranks, 20, 1024)
    given = (rng.standard_normal(shape) * 10.0 ** rng.integers(-9, 9, (1, 20, 1))).astype(np.float32)
    arrays = [one.reshape(-1) for one in given]
    floats = np.add.reduce(arrays)
    wrong = np.abs(collectives.total(arrays, DataType.FP32, lanes=1024, slots=256).astype(np.float64) - floats)
    relative = wrong.reshape(20, 1024) / np.abs(given).max((0, 2))[:, None]
    assert np.median(relative) <= 2.0**-22 and np.quantile(relative, 0.99) <= 2.0**-18


def test_fixed_scaling_spoils_whole_vectors() -> None:
    arrays = [np.ones(3 * LANES, np.float32) for _ in range(2)]
    arrays[1][LANES + 3] = np.inf
    arrays[0][2 * LANES] = 9.0
    sums = collectives.total(arrays, DataType.FP32, lanes=LANES, slots=SLOTS, exponent=1)
    assert np.isnan(sums).tolist() == [False] * LANES + [True] * LANES + [False] * LANES
    assert sums[2 * LANES] == 3.0  # cut to 2, and counted


def test_delayed_scaling_is_block_where_a_value_needs_more() -> None:
    arrays = [np.full(300, 5.0, np.float32), np.full(300, 2.0**-25, np.float32)]
    exact = collectives.total(arrays, DataType.FP32, lanes=LANES, slots=SLOTS)
    small = collectives.total(arrays, DataType.FP32, lanes=LANES, slots=SLOTS, delayed=2)
    assert np.array_equal(small, exact)
    tiny = [np.full(300, 2.0**-40, np.float32)] * 2
    assert (collectives.total(tiny, DataType.FP32, lanes=LANES, slots=SLOTS, delayed=2) == 0).all()
    assert (collectives.total(tiny, DataType.FP32, lanes=LANES, slots=4, delayed=2) == np.float32(2.0**-39)).all()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("ranks", [1, 2, 3, 8])
def test_whole_exponents_make_sums_that_no_lanes_change(ranks: int, dtype: DataType, seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 3000))
    arrays = [elements(rng.normal(size=size) * 2.0 ** rng.integers(-8, 8, size), dtype) for _ in range(ranks)]
    first, *others = [
        collectives.total(arrays, dtype, lanes=lanes, slots=SLOTS, whole=True) for lanes in (8, 64, 256, 1 << 16)
    ]
    assert all(np.array_equal(first.view(np.uint8), other.view(np.uint8)) for other in others)
    floats = np.add.reduce([reals(one, dtype) for one in arrays])
    exponent = max(collectives.scale(array, dtype).exponent for array in arrays)
    # A unit of the lanes for each rank, and half a unit of the type.
    unit = 2.0 ** (exponent + int(np.ceil(np.log2(ranks))) - 30)
    mantissa = {DataType.FP32: 24, DataType.FP16: 11, DataType.BF16: 8}[dtype]
    assert (
        np.abs(reals(first, dtype) - floats) <= ranks * unit + np.abs(floats) * 2.0**-mantissa * 1.01 + 2.0**-24
    ).all()


def test_what_the_whole_needs_is_what_block_would_need_in_one_vector(seed: int) -> None:
    rng = np.random.default_rng(seed)
    arrays = [(rng.normal(size=900) * 2.0 ** rng.integers(-30, 30, 900)).astype(np.float32) for _ in range(3)]
    scales = collectives.block_scales(arrays, DataType.FP32, LANES)
    (one,) = collectives.block_scales(arrays, DataType.FP32, 900)
    assert set(collectives.whole_scales(scales)) == {one}
    assert {scale.exponent for scale in collectives.whole_scales(scales, one.exponent + 3)} == {one.exponent + 3}
    assert len(set(scales)) > 1, "blocks alike test nothing"
