"""The converters in hardware equal sim/golden/formats.py bit for bit, at full rate, under any gaps."""

from __future__ import annotations

import random

import numpy as np
import pytest
from beats import NO_GAPS, Gaps, beats_of, messages_of
from formats_in_rtl import LANES, LANES_VALUES, counts, how, near, some_lanes, to_float, to_int
from numpy.typing import NDArray

from catchment.sim.golden import formats
from catchment.wire.generated.constants import DataType

FLOATS = (DataType.FP32, DataType.FP16, DataType.BF16)
WORDS = {DataType.FP32: np.uint32, DataType.FP16: np.uint16, DataType.BF16: np.uint16, DataType.INT32: np.int32}
ROUGH = (Gaps(idle=100), Gaps(stall=100), Gaps(idle=60, stall=60), Gaps(idle=250, stall=10), Gaps(idle=10, stall=250))

# (STAGES, HALVES): what the tops have, and the smallest.
BUILDS = [
    (3, 1),
    (1, 0),
    *(pytest.param(stages, halves, marks=pytest.mark.slow) for stages, halves in ((1, 1), (2, 1), (2, 0), (3, 0))),
]


def every_word(dtype: DataType) -> NDArray[np.uint16]:
    assert dtype in (DataType.FP16, DataType.BF16)
    return np.arange(1 << 16, dtype=np.uint16)


def check_to_int(words: NDArray[np.generic], dtype: DataType, exponent: int, workers: int, **how_run: int) -> None:
    beats, clocks = to_int(beats_of(words.tobytes(), how(dtype, exponent, workers)), NO_GAPS, 1, **how_run)
    expected = formats.quantize(words.view(LANES_VALUES[dtype]), dtype, exponent, workers)
    (lanes,) = messages_of(beats)
    assert np.array_equal(np.frombuffer(lanes, np.int32), expected.lanes)
    assert counts(beats) == (expected.saturated, expected.nonfinite)
    assert clocks <= len(beats) + 3, "a bubble"


def check_to_float(lanes: NDArray[np.int32], dtype: DataType, exponent: int, workers: int, **how_run: int) -> None:
    beats, clocks = to_float(beats_of(lanes.tobytes(), how(dtype, exponent, workers)), NO_GAPS, 1, **how_run)
    with np.errstate(over="ignore"):
        expected = formats.dequantize(lanes, dtype, exponent, workers)
    (words,) = messages_of(beats)
    assert words == expected.tobytes()
    assert clocks <= -(-len(lanes) // LANES) + 3, "a bubble"


@pytest.fixture
def numbers(rng: random.Random) -> np.random.Generator:
    return np.random.default_rng(rng.getrandbits(64))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("dtype", [DataType.FP16, DataType.BF16])
def test_every_16_bit_word_at_the_exponents_that_matter(dtype: DataType, rng: random.Random) -> None:
    for exponent in {-128, 127, -24, 0, 16, *(rng.randrange(-128, 128) for _ in range(8))}:
        check_to_int(every_word(dtype), dtype, exponent, rng.choice([1, 2, 3, 8, 32]))


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2, 4, 8, 16, 32, 64])
@pytest.mark.parametrize("dtype", [DataType.FP16, DataType.BF16])
def test_every_16_bit_word_at_every_exponent(dtype: DataType, workers: int) -> None:
    for exponent in range(-128, 128):
        check_to_int(every_word(dtype), dtype, exponent, workers)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("stages", "halves"), BUILDS)
def test_fp32_and_int32_to_lanes(stages: int, halves: int, numbers: np.random.Generator, rng: random.Random) -> None:
    for exponent in (-128, 127, 0, *(rng.randrange(-128, 128) for _ in range(20))):
        check_to_int(
            near(numbers, exponent, 4000), DataType.FP32, exponent, rng.randrange(1, 129), stages=stages, halves=halves
        )
    check_to_int(some_lanes(numbers, 999).view(np.uint32), DataType.INT32, 5, 4, stages=stages, halves=halves)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("stages", "halves"), BUILDS)
def test_lanes_to_floats(stages: int, halves: int, numbers: np.random.Generator, rng: random.Random) -> None:
    for dtype in (*FLOATS, DataType.INT32):
        if dtype in (DataType.FP16, DataType.BF16) and not halves:
            continue
        for exponent in (-128, 127, 0, -24, -27, *(rng.randrange(-128, 128) for _ in range(20))):
            lanes, workers = some_lanes(numbers, 2001), rng.randrange(1, 129)
            check_to_float(lanes, dtype, exponent, workers, stages=stages, halves=halves)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("gaps", ROUGH)
def test_messages_of_all_lengths_and_types_one_after_another(
    gaps: Gaps, numbers: np.random.Generator, rng: random.Random
) -> None:
    """Different types, exponents and odd lengths back to back, with idle clocks and back-pressure."""
    jobs = []
    for _ in range(60):
        dtype = rng.choice([*FLOATS, DataType.INT32])
        count = rng.choice([1, 15, 16, 17, 31, 32, 33, 48, rng.randrange(1, 200)])
        words = numbers.integers(0, 1 << 16, count * 2, dtype=np.uint16).view(np.uint8)
        words = words[: count * np.dtype(WORDS[dtype]).itemsize].view(WORDS[dtype])
        jobs.append((dtype, rng.randrange(-128, 128), rng.randrange(1, 129), words))
    seed = rng.getrandbits(32)
    beats = np.concatenate([beats_of(words.tobytes(), how(*kind)) for *kind, words in jobs])
    out, _ = to_int(beats, gaps, seed)
    messages = messages_of(out)
    expected = [formats.quantize(words.view(LANES_VALUES[d]), d, e, w).lanes for d, e, w, words in jobs]
    assert messages == [lanes.tobytes() for lanes in expected]

    beats = np.concatenate(
        [beats_of(lanes.tobytes(), how(d, e, w)) for lanes, (d, e, w, _) in zip(expected, jobs, strict=True)]
    )
    out, _ = to_float(beats, gaps, seed)
    with np.errstate(over="ignore"):
        back = [
            formats.dequantize(lanes, d, e, w).tobytes() for lanes, (d, e, w, _) in zip(expected, jobs, strict=True)
        ]
    assert messages_of(out) == back
