"""The endpoint's conversion against the definition in sim/golden/formats.py, bit for bit."""

from __future__ import annotations

import os
import random
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from catchment.host import _native
from catchment.sim.golden import formats
from catchment.wire.generated.constants import DataType

WORDS = {DataType.FP32: np.uint32, DataType.FP16: np.uint16, DataType.BF16: np.uint16, DataType.INT32: np.uint32}
FLOATS = (DataType.FP32, DataType.FP16, DataType.BF16)
EVERY_EXPONENT = range(-128, 128)
WORKERS = (1, 2, 3, 4, 8, 17, 32)


def reference_view(words: NDArray[Any], dtype: DataType) -> NDArray[Any]:
    """Words as catchment.sim.golden.formats wants them."""
    views = {DataType.FP32: np.float32, DataType.FP16: np.float16, DataType.BF16: np.uint16, DataType.INT32: np.int32}
    return words.view(views[dtype])


def native_quantize(words: NDArray[Any], dtype: DataType, exponent: int, workers: int) -> formats.Quantized:
    lanes = np.zeros(words.size, ">i4")
    saturated, nonfinite = _native.quantize(
        _native.Pinned(words, False), dtype, exponent, formats.headroom(workers), _native.Pinned(lanes, True)
    )
    return formats.Quantized(lanes.astype(np.int32), saturated, nonfinite)


def native_dequantize(
    lanes: NDArray[np.int32], dtype: DataType, exponent: int, workers: int
) -> tuple[NDArray[Any], int]:
    words = np.zeros(lanes.size, WORDS[dtype])
    big = lanes.astype(">i4")
    most = _native.dequantize(
        _native.Pinned(big, False), exponent, formats.headroom(workers), dtype, _native.Pinned(words, True)
    )
    return words, most


def test_words_of_bfloat16_are_those_of_ml_dtypes(rng: random.Random) -> None:
    words = np.frombuffer(rng.randbytes(4 << 14), np.uint32)
    numbers = words.view(np.float32)[~np.isnan(words.view(np.float32))]
    assert np.array_equal(formats.bf16_words(numbers), numbers.astype(ml_dtypes.bfloat16).view(np.uint16))


def check_quantize(words: NDArray[Any], dtype: DataType, exponent: int, workers: int) -> None:
    want = formats.quantize(reference_view(words, dtype), dtype, exponent, workers)
    got = native_quantize(words, dtype, exponent, workers)
    wrong = np.flatnonzero(got.lanes != want.lanes)
    assert wrong.size == 0, (
        f"{dtype.name} E={exponent} workers={workers}: {words[wrong[0]]:#x} gives {got.lanes[wrong[0]]}, "
        f"not {want.lanes[wrong[0]]} ({wrong.size} differ)"
    )
    assert (got.saturated, got.nonfinite) == (want.saturated, want.nonfinite)


def check_dequantize(lanes: NDArray[np.int32], dtype: DataType, exponent: int, workers: int) -> None:
    want = formats.dequantize(lanes, dtype, exponent, workers).view(WORDS[dtype])
    got, most = native_dequantize(lanes, dtype, exponent, workers)
    wrong = np.flatnonzero(got != want)
    assert wrong.size == 0, (
        f"{dtype.name} E={exponent} workers={workers}: {lanes[wrong[0]]} gives {got[wrong[0]]:#x}, "
        f"not {want[wrong[0]]:#x} ({wrong.size} differ)"
    )
    assert most == int(np.abs(lanes.astype(np.int64)).max())


def seeded(seed: int) -> np.random.Generator:
    """Reproducible: CATCHMENT_SEED is printed by `make test`."""
    return np.random.default_rng([int(os.environ.get("CATCHMENT_SEED", "1")), seed])


def fp32_patterns(rng: np.random.Generator, count: int) -> NDArray[np.uint32]:
    """Random bits, with every special value and exponent in between."""
    words = rng.integers(0, 1 << 32, count, dtype=np.uint32)
    corners = [0x0, 0x1, 0x7FFFFF, 0x800000, 0x3F800000, 0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FC00000, 0x7FFFFFFF]
    ladder = (np.arange(255, dtype=np.uint32)[:, None] << 23) + np.array([0, 1, 0x400000, 0x7FFFFF], np.uint32)
    positive = np.concatenate([np.array(corners, np.uint32), ladder.ravel()])
    return np.concatenate([words, positive, positive | np.uint32(1 << 31)])


def edge_lanes(rng: np.random.Generator) -> NDArray[np.int32]:
    """Every power of two with its neighbours and halfway points, and random sums of every size."""
    powers = [1 << b for b in range(31)]
    near = {p + d for p in powers for d in (-129, -128, -127, -3, -2, -1, 0, 1, 2, 3, 127, 128, 129)}
    ties = {
        (m << s) + (1 << s >> 1) + d
        for s in range(31)
        for m in (1, 2, 3, 127, 128, 129, 2047, 2048)
        for d in (-1, 0, 1)
    }
    values = {v for v in near | ties if 0 <= v < 1 << 31}
    random = rng.integers(0, 1 << 31, 4096) >> rng.integers(0, 31, 4096)
    positive = np.concatenate([np.array(sorted(values), np.int64), random])
    return np.concatenate([positive, -positive, [-(1 << 31)]]).astype(np.int32)


@pytest.mark.parametrize("dtype", [DataType.FP16, DataType.BF16])
def test_every_16_bit_pattern_at_every_exponent(dtype: DataType) -> None:
    words = np.arange(1 << 16, dtype=np.uint16)
    for exponent in EVERY_EXPONENT:
        check_quantize(words, dtype, exponent, WORKERS[exponent % len(WORKERS)])


@pytest.mark.parametrize("workers", WORKERS)
def test_fp32_patterns_at_every_exponent(workers: int) -> None:
    rng = seeded(workers)
    for exponent in EVERY_EXPONENT:
        words = fp32_patterns(rng, 2048)
        check_quantize(words, DataType.FP32, exponent, workers)
        # and values whose scaled magnitude is of the order of one unit to the limit
        scale = np.uint32(np.clip(exponent + 127 - np.arange(2048) % 34, 0, 254)) << np.uint32(23)
        check_quantize(scale | (words[:2048] & np.uint32(0x807FFFFF)), DataType.FP32, exponent, workers)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("workers", [1, 4, 32])
def test_sums_back_at_every_exponent(dtype: DataType, workers: int) -> None:
    lanes = edge_lanes(seeded(workers))
    for exponent in EVERY_EXPONENT:
        check_dequantize(lanes, dtype, exponent, workers)


def test_integers_pass_untouched() -> None:
    words = seeded(0).integers(0, 1 << 32, 1000, dtype=np.uint32)
    assert np.array_equal(native_quantize(words, DataType.INT32, 5, 4).lanes.view(np.uint32), words)
    assert np.array_equal(native_dequantize(words.view(np.int32), DataType.INT32, 5, 4)[0], words)


@settings(deadline=None, max_examples=200)
@given(
    words=st.lists(st.integers(0, (1 << 32) - 1), min_size=1, max_size=70),
    exponent=st.integers(-128, 127),
    workers=st.integers(1, 32),
    offset=st.integers(0, 3),
    dtype=st.sampled_from(FLOATS),
)
def test_any_length_and_alignment(words: list[int], exponent: int, workers: int, offset: int, dtype: DataType) -> None:
    array = np.array([0] * offset + words, np.uint32).astype(WORDS[dtype])[offset:]
    check_quantize(array, dtype, exponent, workers)
    check_dequantize(np.array([0] * offset + words, np.uint32).view(np.int32)[offset:], dtype, exponent, workers)


@pytest.mark.parametrize("dtype", FLOATS)
def test_reference_rounds_as_numpy_does(dtype: DataType) -> None:
    """The definition's own rounding, where numpy has one that rounds once."""
    lanes = edge_lanes(seeded(3))
    for exponent in (-128, -100, -20, -3, 0, 14, 15, 16, 100, 126):
        exact = lanes.astype(np.float64) * 2.0 ** (exponent - 30)
        got = formats.dequantize(lanes, dtype, exponent, 1)
        with np.errstate(over="ignore"):
            if dtype == DataType.BF16:
                assert np.all(
                    np.abs(formats.bf16_values(got).astype(np.float64) - exact) <= np.abs(exact) * 2.0**-8 + 2.0**-134
                )
            else:
                assert np.array_equal(got, exact.astype(got.dtype))


def test_worked_examples() -> None:
    """Values worked out by hand: they would catch a mistake that both implementations share."""
    one = np.array([1.0, -1.0, 0.5, 2.0, -np.inf, np.nan, 2.0**-31, 3 * 2.0**-31], np.float32)
    got = formats.quantize(one, DataType.FP32, exponent=0, workers=1)
    assert got.lanes.tolist() == [1 << 30, -(1 << 30), 1 << 29, 1 << 30, -(1 << 30), 1 << 30, 0, 2]
    assert (got.saturated, got.nonfinite) == (3, 2)
    assert formats.quantize(one[:1], DataType.FP32, 0, workers=5).lanes.tolist() == [1 << 27]
    sums = np.array([1 << 30, 3, -1, (1 << 24) + 1], np.int32)
    assert formats.dequantize(sums, DataType.FP32, 30, 1).tolist() == [2.0**30, 3.0, -1.0, 2.0**24]
    assert formats.dequantize(sums, DataType.FP16, 0, 1).tolist() == [1.0, 0.0, -0.0, 2.0**-6]
    assert formats.dequantize(sums, DataType.BF16, 30, 2).tolist() == [0x4F00, 0x40C0, 0xC000, 0x4C00]


def test_a_wrong_lane_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The checks above can fail."""
    monkeypatch.setattr(formats, "headroom", lambda workers: (workers - 1).bit_length() + (workers == 3))
    native = _native.quantize
    monkeypatch.setattr(_native, "quantize", lambda a, b, c, d, e: native(a, b, c, 2, e))
    with pytest.raises(AssertionError, match="differ"):
        check_quantize(np.array([0x3F800000], np.uint32), DataType.FP32, 0, 3)
