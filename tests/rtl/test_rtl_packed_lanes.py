"""Packed lanes in hardware: numpy = C++ = HLS = RTL bit for bit, at 16 elements a clock, under any gaps."""

from __future__ import annotations

import random

import hls_scoreboard
import numpy as np
import pytest
from beats import NO_GAPS, Beats, Gaps, beats_of, messages_of
from formats_in_rtl import LANES, LANES_VALUES, counts, how, near, to_float, to_int
from hls_scoreboard import How
from numpy.typing import NDArray

from catchment.host import _native
from catchment.sim.golden import packed_lanes
from catchment.wire.generated.constants import MAX_WORKERS, DataType

FLOATS = (DataType.FP32, DataType.FP16, DataType.BF16)
WORDS = {DataType.FP32: np.uint32, DataType.FP16: np.uint16, DataType.BF16: np.uint16}
ROUGH = (Gaps(idle=100), Gaps(stall=100), Gaps(idle=60, stall=60), Gaps(idle=10, stall=250))


@pytest.fixture
def numbers(rng: random.Random) -> np.random.Generator:
    return np.random.default_rng(rng.getrandbits(64))


def golden_lanes(words: NDArray[np.generic], to: How) -> packed_lanes.formats.Quantized:
    return packed_lanes.quantize(words.view(LANES_VALUES[to.dtype]), to.dtype, to.exponent, to.workers)


def golden_words(lanes: NDArray[np.int32], to: How, elements: int) -> bytes:
    with np.errstate(over="ignore"):
        return packed_lanes.dequantize(lanes, to.dtype, to.exponent, to.workers, elements).tobytes()


def floats(words: NDArray[np.generic], to: How) -> Beats:
    return beats_of(words.tobytes(), how(to.dtype, to.exponent, to.workers, packed=True))


def lanes_back(lanes: NDArray[np.int32], to: How, elements: int) -> Beats:
    """Beats of packed lanes, of which two bytes are kept for each element."""
    beats = beats_of(lanes.tobytes(), how(to.dtype, to.exponent, to.workers, packed=True))
    beats["keep"][-1] = np.uint64((1 << 2 * elements - 64 * (len(beats) - 1)) - 1)
    return beats


def four_ways_to_lanes(words: NDArray[np.generic], to: How) -> None:
    golden = golden_lanes(words, to)
    want = (golden.saturated, golden.nonfinite)
    halves = np.zeros(words.size, ">i2")
    cut = _native.quantize_packed(
        _native.Pinned(words, False), to.dtype, to.exponent, to.workers, _native.Pinned(halves, True)
    )
    assert np.array_equal(packed_lanes.to_lanes(halves.astype(np.int16)), golden.lanes) and tuple(cut) == want
    model = hls_scoreboard.float_to_int(words.tobytes(), to)
    assert np.array_equal(model.lanes, golden.lanes) and (model.saturated, model.nonfinite) == want
    beats, clocks = to_int(floats(words, to), NO_GAPS, 1)
    (lanes,) = messages_of(beats)
    assert np.array_equal(np.frombuffer(lanes, np.int32), golden.lanes), to
    assert counts(beats) == want, to
    assert clocks <= -(-words.size // LANES) + 3, "a bubble"


def four_ways_back(lanes: NDArray[np.int32], to: How, elements: int) -> None:
    golden = golden_words(lanes, to, elements)
    words = np.zeros(len(golden), np.uint8)
    halves = packed_lanes.from_lanes(lanes)[:elements].astype(">i2")
    _native.dequantize_packed(
        _native.Pinned(halves, False), to.exponent, to.workers, to.dtype, _native.Pinned(words, True)
    )
    assert words.tobytes() == golden
    assert hls_scoreboard.int_to_float(lanes, to, elements) == golden
    beats, clocks = to_float(lanes_back(lanes, to, elements), NO_GAPS, 1)
    assert messages_of(beats) == [golden], to
    assert clocks <= -(-elements // LANES) + 3, "a bubble"


def about_the_end(numbers: np.random.Generator, exponent: int, count: int) -> NDArray[np.uint32]:
    """fp32 words within some steps of 2^E, where a number is cut, or ends one step below without a word."""
    steps = numbers.integers(-1 << 10, 1 << 10, count) * 2.0 ** numbers.integers(-23, -10, count)
    with np.errstate(over="ignore"):
        values = np.ldexp(1.0 + steps, exponent) * numbers.choice([-1, 1], count)
        return values.astype(np.float32).view(np.uint32)


def some_halves(numbers: np.random.Generator, count: int) -> NDArray[np.int16]:
    """Every magnitude that a sum may have; the last of an odd number is followed by what is not an element."""
    largest = packed_lanes.LARGEST_SUM
    halves = numbers.integers(-largest, largest + 1, count) >> numbers.integers(0, 16, count)
    return np.where(numbers.random(count) < 0.1, numbers.choice([-largest, largest], count), halves).astype(np.int16)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("dtype", [DataType.FP16, DataType.BF16])
def test_every_16_bit_word_at_the_exponents_that_matter(dtype: DataType, rng: random.Random) -> None:
    words = np.arange(1 << 16, dtype=np.uint16)
    for exponent in {-128, 127, -24, 0, 16, *(rng.randrange(-30, 20) for _ in range(4))}:
        four_ways_to_lanes(words, How(dtype, exponent, rng.choice([1, 2, 3, 4, 7, 8, 63, 64]), packed=True))


def test_all_numbers_of_workers(numbers: np.random.Generator, rng: random.Random) -> None:
    for workers in range(1, MAX_WORKERS + 1):
        exponent = rng.choice([-126, 0, 127, rng.randrange(-128, 128)])
        to = How(DataType.FP32, exponent, workers, packed=True)
        four_ways_to_lanes(about_the_end(numbers, exponent, 700), to)
        four_ways_to_lanes(near(numbers, exponent, 701), to)
        narrow = numbers.integers(0, 1 << 16, 703).astype(np.uint16)
        for dtype in (DataType.FP16, DataType.BF16):
            four_ways_to_lanes(narrow, How(dtype, rng.randrange(-16, 17), workers, packed=True))
        for dtype in FLOATS:
            count = rng.randrange(1, 300)
            lanes = packed_lanes.to_lanes(some_halves(numbers, count))
            back = How(dtype, rng.choice([-128, 127, -24, -15, 0, rng.randrange(-128, 128)]), workers, packed=True)
            four_ways_back(lanes, back, count)


def test_the_largest_numbers_of_all_workers_add_up_without_a_carry(numbers: np.random.Generator) -> None:
    for workers in range(1, MAX_WORKERS + 1):
        words = np.array([np.inf, -np.inf, 1.0, -1.0, 0.999999, -3e38], np.float32).view(np.uint32)
        to = How(DataType.FP32, 0, workers, packed=True)
        (lanes,) = messages_of(to_int(floats(words, to), NO_GAPS, 1)[0])
        halves = packed_lanes.from_lanes(np.frombuffer(lanes, np.int32)).astype(np.int64)
        assert np.abs(halves * workers).max() <= packed_lanes.LARGEST_SUM
        assert np.abs(halves).max() == packed_lanes.limit(workers)


@pytest.mark.parametrize("gaps", ROUGH)
def test_messages_of_all_lengths_and_types_packed_and_not(
    gaps: Gaps, numbers: np.random.Generator, rng: random.Random
) -> None:
    """Back to back, with idle clocks and back-pressure; every other is of lanes of one number."""
    jobs: list[tuple[How, NDArray[np.generic]]] = []
    for index in range(60):
        dtype = rng.choice(FLOATS)
        count = rng.choice([1, 2, 15, 16, 17, 31, 32, 33, 48, 63, 64, 65, rng.randrange(1, 300)])
        words = numbers.integers(0, 1 << 16, 2 * count).astype(np.uint16).view(WORDS[dtype])[:count]
        jobs.append((How(dtype, rng.randrange(-128, 128), rng.randrange(1, 65), packed=index % 2 == 0), words))

    def as_beats(data: NDArray[np.generic], to: How) -> Beats:
        return beats_of(data.tobytes(), how(to.dtype, to.exponent, to.workers, packed=to.packed))

    seed = rng.getrandbits(32)
    out, _ = to_int(np.concatenate([as_beats(words, to) for to, words in jobs]), gaps, seed)
    lanes = [np.frombuffer(message, np.int32) for message in messages_of(out)]
    assert len(lanes) == len(jobs)
    for (to, words), got in zip(jobs, lanes, strict=True):
        assert np.array_equal(got, hls_scoreboard.float_to_int(words.tobytes(), to).lanes)
        if to.packed:
            assert np.array_equal(got, golden_lanes(words, to).lanes)

    beats = [
        lanes_back(got, to, words.size) if to.packed else as_beats(got, to)
        for (to, words), got in zip(jobs, lanes, strict=True)
    ]
    out, _ = to_float(np.concatenate(beats), gaps, seed)
    for (to, words), got, back in zip(jobs, lanes, messages_of(out), strict=True):
        assert back == hls_scoreboard.int_to_float(got, to, words.size)
        if to.packed:
            assert back == golden_words(got, to, words.size)
