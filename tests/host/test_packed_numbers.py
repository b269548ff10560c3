"""The endpoint's packed lanes against the definition in sim/golden/packed_lanes.py, bit for bit."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from catchment.host import _native
from catchment.sim.golden import packed_lanes
from catchment.sim.golden.formats import Quantized, bf16_words
from catchment.wire.generated.constants import DataType

WORDS = {DataType.FP32: np.uint32, DataType.FP16: np.uint16, DataType.BF16: np.uint16}
VIEWS: dict[DataType, type[np.generic]] = {
    DataType.FP32: np.float32, DataType.FP16: np.float16, DataType.BF16: np.uint16,
}  # fmt: skip
WORKERS = (1, 2, 3, 4, 7, 8, 17, 32, 64)
EVERY_EXPONENT = range(-128, 128)
every_dtype = pytest.mark.parametrize("dtype", [DataType.FP32, DataType.FP16, DataType.BF16])


@pytest.fixture
def numbers(rng: random.Random) -> np.random.Generator:
    return np.random.default_rng(rng.getrandbits(64))


def native_quantize(words: NDArray[Any], dtype: DataType, exponent: int, workers: int) -> Quantized:
    halves = np.zeros(words.size, ">i2")
    saturated, nonfinite = _native.quantize_packed(
        _native.Pinned(words, False), dtype, exponent, workers, _native.Pinned(halves, True)
    )
    return Quantized(packed_lanes.to_lanes(halves.astype(np.int16)), saturated, nonfinite)


def check_quantize(words: NDArray[Any], dtype: DataType, exponent: int, workers: int) -> None:
    want = packed_lanes.quantize(words.view(VIEWS[dtype]), dtype, exponent, workers)
    got = native_quantize(words, dtype, exponent, workers)
    wrong = np.flatnonzero(got.lanes != want.lanes)
    assert wrong.size == 0, (
        f"{dtype.name} E={exponent} workers={workers}: lane {wrong[0]} is {got.lanes[wrong[0]]:#x}, "
        f"not {want.lanes[wrong[0]]:#x} ({wrong.size} differ)"
    )
    assert (got.saturated, got.nonfinite) == (want.saturated, want.nonfinite)


@pytest.mark.parametrize("dtype", [DataType.FP16, DataType.BF16])
def test_every_16_bit_pattern_at_every_exponent(dtype: DataType) -> None:
    words = np.arange(1 << 16, dtype=np.uint16)
    for exponent in EVERY_EXPONENT:
        check_quantize(words, dtype, exponent, WORKERS[exponent % len(WORKERS)])


@pytest.mark.parametrize("workers", WORKERS)
def test_fp32_around_every_step(numbers: np.random.Generator, workers: int) -> None:
    """Random bits; and numbers at, and a bit beside, whole and half steps up to the end of the range."""
    for exponent in EVERY_EXPONENT:
        bits = packed_lanes.HALF_BITS - packed_lanes.headroom(workers)
        steps = numbers.integers(-(2 ** (bits + 1)) - 3, 2 ** (bits + 1) + 4, 2048).astype(np.float64) / 2
        with np.errstate(over="ignore"):
            near = (steps * 2.0 ** (exponent - bits)).astype(np.float32)
        words = numbers.integers(0, 1 << 32, 1024, dtype=np.uint32)
        each = near.view(np.uint32) + numbers.integers(0, 3, near.size, dtype=np.uint32) - np.uint32(1)
        check_quantize(np.concatenate([words, near.view(np.uint32), each]), DataType.FP32, exponent, workers)


@pytest.mark.sampled(4)
@every_dtype
@pytest.mark.parametrize("workers", [1, 4, 5, 64])
def test_every_sum_becomes_the_nearest_element(dtype: DataType, workers: int) -> None:
    halves = np.arange(-(1 << 15), 1 << 15, dtype=np.int64).astype(np.int16)
    for exponent in EVERY_EXPONENT:
        lanes = packed_lanes.to_lanes(halves)
        want = packed_lanes.dequantize(lanes, dtype, exponent, workers, halves.size).view(WORDS[dtype])
        got = np.zeros(halves.size, WORDS[dtype])
        big = halves.astype(">i2")
        most = _native.dequantize_packed(
            _native.Pinned(big, False), exponent, workers, dtype, _native.Pinned(got, True)
        )
        np.testing.assert_array_equal(got, want)
        assert most == 1 << 15


def test_the_sums_themselves() -> None:
    halves = np.array([-32768, -1, 0, 1, 32767], ">i2")
    raw = np.zeros(halves.size, np.int32)
    _native.dequantize_packed(_native.Pinned(halves, False), 0, 4, DataType.INT32, _native.Pinned(raw, True))
    assert raw.tolist() == halves.tolist()


@pytest.mark.parametrize("workers", range(1, 65))
def test_no_sum_of_all_workers_overflows(workers: int) -> None:
    """The largest that each can send, upward and downward; and nothing below 2^E counts as saturated."""
    below = np.nextafter(np.float32(1), np.float32(0))
    values = np.array([below, -below, np.inf, -np.inf, np.nan, 3e38, -3e38], np.float32)
    one = packed_lanes.quantize(values, DataType.FP32, 0, workers)
    assert (one.saturated, one.nonfinite) == (5, 3)
    halves = packed_lanes.from_lanes(one.lanes).astype(np.int64)
    total = packed_lanes.from_lanes(packed_lanes.add_lanes([one.lanes] * workers)).astype(np.int64)
    np.testing.assert_array_equal(total, workers * halves)
    assert np.abs(total).max() <= packed_lanes.LARGEST_SUM
    assert np.abs(halves[:2]).min() >= 2 ** (packed_lanes.HALF_BITS - packed_lanes.headroom(workers)) - 1


def test_a_sum_is_as_near_as_its_steps(numbers: np.random.Generator) -> None:
    """Half a step of each worker, a whole one at the end of the range, and one rounding."""
    for workers in WORKERS:
        step = 2.0 ** (packed_lanes.headroom(workers) - packed_lanes.HALF_BITS)
        parts = [numbers.uniform(-1, 1, 501).astype(np.float32) for _ in range(workers)]
        lanes = [packed_lanes.quantize(part, DataType.FP32, 0, workers).lanes for part in parts]
        total = packed_lanes.dequantize(packed_lanes.add_lanes(lanes), DataType.FP32, 0, workers, 501)
        exact = np.sum(np.array(parts, np.float64), axis=0)
        assert np.abs(total - exact).max() <= workers * step


def test_halves_lie_in_the_order_of_the_elements() -> None:
    words = bf16_words(np.array([1.0, -0.5, 0.25], np.float32))
    lanes = packed_lanes.quantize(words, DataType.BF16, 1, 1).lanes
    assert [f"{lane & 0xFFFFFFFF:08x}" for lane in lanes.tolist()] == ["4000e000", "10000000"]
    got = native_quantize(words, DataType.BF16, 1, 1)
    assert got.lanes.tolist() == lanes.tolist()
