"""Sums of marked vectors, against what fp64 says of each element."""

from __future__ import annotations

import random

import numpy as np
import pytest

from catchment.sim.golden import marked_vectors
from catchment.sim.golden.formats import add_lanes
from catchment.wire.generated.constants import DataType

SPECIAL = [np.nan, np.inf, -np.inf, 0.0, 1.0, -1.5]


def summed(parts: list[np.ndarray], exponent: int) -> np.ndarray:
    workers = len(parts)
    lanes = [marked_vectors.quantize(part, DataType.FP32, exponent, workers) for part in parts]
    return marked_vectors.dequantize(add_lanes(lanes), DataType.FP32, exponent, workers)


@pytest.mark.parametrize("workers", [1, 2, 3, 4, 7, 8, 32])
def test_what_is_not_finite_is_as_in_a_real_sum(workers: int, rng: random.Random) -> None:
    parts = [np.asarray([rng.choice(SPECIAL) for _ in range(200)], np.float32) for _ in range(workers)]
    with np.errstate(invalid="ignore"):
        wanted = np.sum(parts, axis=0, dtype=np.float64)
    got = summed(parts, 2)
    assert np.array_equal(np.isnan(got), np.isnan(wanted))
    assert np.array_equal(np.isposinf(got), np.isposinf(wanted))
    assert np.array_equal(np.isneginf(got), np.isneginf(wanted))
    finite = np.isfinite(wanted)
    assert np.array_equal(got[finite], wanted[finite])


def test_each_pair_of_what_is_not_finite() -> None:
    for one in (np.nan, np.inf, -np.inf):
        for other in (np.nan, np.inf, -np.inf, 3.0):
            with np.errstate(invalid="ignore"):
                wanted = np.float32(one) + np.float32(other)
            got = summed([np.asarray([x], np.float32) for x in (one, other, 1.0)], 3)[0]
            assert np.array_equal(got, wanted, equal_nan=True), (one, other)


def test_the_largest_exponent_stands_for_128() -> None:
    largest = np.float32(2.0**127 * 1.5)
    assert summed([np.asarray([largest, np.inf], np.float32)], 127).tolist() == [largest, np.inf]
    halves = [np.asarray([2.0**127, -(2.0**127)], np.float32), np.asarray([-(2.0**127), 2.0**126], np.float32)]
    assert summed(halves, 127).tolist() == [0.0, -(2.0**126)]
    assert summed([np.asarray([2.0**127], np.float32)] * 2, 127).tolist() == [np.inf]


@pytest.mark.parametrize(
    ("workers", "counted", "unit"),  # bits of a count; the power of two by which 1.0 is multiplied at exponent 2
    [(1, 1, 26), (2, 2, 23), (3, 2, 22), (4, 3, 20), (5, 3, 19)],
)
def test_lanes_bit_for_bit(workers: int, counted: int, unit: int) -> None:
    width = 32 - 2 * counted
    part = np.asarray([np.nan, np.inf, -np.inf, 1.0, -1.0], np.float32)
    lanes = marked_vectors.quantize(part, DataType.FP32, 2, workers).view(np.uint32).tolist()
    plus, minus = 1 << (32 - counted), 1 << width
    assert lanes == [plus + minus, plus, minus, 1 << unit, (1 << 32) - (1 << unit)]
