"""The model of an all-reduce's numbers: what each scaling promises, on random vectors of many magnitudes."""

from __future__ import annotations

import random

import numpy as np
import pytest
from numpy.typing import NDArray

from catchment.sim.golden import formats
from catchment.sim.golden.scaled_sums import block_exponents, exponent_of, from_wire, scaled_sum, to_wire
from catchment.wire.generated.constants import DataType

WORKERS = 4
LANES = 8
FLOATS = (DataType.FP32, DataType.FP16, DataType.BF16)


def _parts(rng: random.Random, elements: int) -> list[NDArray[np.float32]]:
    draw = np.random.default_rng(rng.randrange(1 << 32))
    scales = 2.0 ** draw.integers(-8, 4, elements)
    return [(draw.standard_normal(elements) * scales).astype(np.float32) for _ in range(WORKERS)]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("elements", [1, LANES, 5 * LANES + 3])
def test_block_scaling_never_cuts_and_is_within_its_bound(rng: random.Random, dtype: DataType, elements: int) -> None:
    wire = [to_wire(part, dtype) for part in _parts(rng, elements)]
    exponents = block_exponents(wire, dtype, LANES)
    got = scaled_sum(wire, dtype, exponents, LANES)
    assert got.saturated == 0 and len(got.values) == elements
    exact = np.sum([from_wire(part, dtype) for part in wire], axis=0)
    unit = 2.0 ** (np.repeat(exponents, LANES)[:elements] + formats.headroom(WORKERS) - 30)
    rounding = {DataType.FP32: 2.0**-24, DataType.FP16: 2.0**-11, DataType.BF16: 2.0**-8}[dtype]
    smallest = {DataType.FP32: 2.0**-149, DataType.FP16: 2.0**-24, DataType.BF16: 2.0**-133}[dtype]
    bound = WORKERS * unit / 2 + (np.abs(exact) + WORKERS * unit) * rounding + smallest / 2
    assert np.all(np.abs(from_wire(got.values, dtype) - exact) <= bound)


def test_an_exponent_is_the_smallest_that_holds_the_value() -> None:
    values = np.asarray([1.0, 0.999, 2.0**-130, 0.0, 2.0**130, 3.0])
    assert exponent_of(values).tolist() == [1, 0, -128, -128, 127, 2]


def test_vectors_have_exponents_of_their_own(rng: random.Random) -> None:
    parts = [np.ones(2 * LANES, np.float32) * np.float32(0.3) for _ in range(WORKERS)]
    parts[1][LANES:] *= np.float32(2.0**-20)
    for part in (parts[0], *parts[2:]):
        part[LANES:] *= np.float32(2.0**-22)
    assert block_exponents(parts, DataType.FP32, LANES).tolist() == [-1, -21]


def test_the_order_of_workers_changes_no_bit(rng: random.Random) -> None:
    parts = _parts(rng, 100)
    exponents = block_exponents(parts, DataType.FP32, LANES)
    sums = []
    for _ in range(3):
        rng.shuffle(parts)
        sums.append(scaled_sum(parts, DataType.FP32, exponents, LANES).values.tobytes())
    assert len(set(sums)) == 1


def test_a_fixed_exponent_that_is_too_small_counts_what_it_cuts() -> None:
    parts = [np.asarray([0.5, 3.0, -7.0], np.float32) for _ in range(WORKERS)]
    got = scaled_sum(parts, DataType.FP32, 1, LANES)
    assert got.saturated == 2 * WORKERS
    assert got.values.tolist() == [2.0, 8.0, -8.0]


def test_what_is_cut_counts_over_all_exponents() -> None:
    vector = np.asarray([0.5, 3.0, -7.0] + [0.0] * (LANES - 3), np.float32)
    parts = [np.concatenate([vector, vector]) for _ in range(WORKERS)]
    assert scaled_sum(parts, DataType.FP32, np.asarray([1, 2]), LANES).saturated == 3 * WORKERS
