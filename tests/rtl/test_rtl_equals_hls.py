"""numpy = C++ = HLS = RTL, bit for bit: the HLS kernels are scoreboards of converters, sender and consumer."""

from __future__ import annotations

import ctypes
import random
from collections.abc import Callable
from pathlib import Path

import hls_scoreboard
import numpy as np
import pytest
from beats import NO_GAPS, beats_of, messages_of
from formats_in_rtl import LANES_VALUES, counts, how, near, some_lanes, to_float, to_int
from numpy.typing import NDArray

from catchment.host import _native
from catchment.rtl.harness.library import load
from catchment.sim.golden import formats
from catchment.wire.generated.constants import DataType

pytestmark = pytest.mark.sampled(8)  # what it builds takes a minute

FLOATS = (DataType.FP32, DataType.FP16, DataType.BF16)
HERE = Path(__file__).parent


@pytest.fixture
def numbers(rng: random.Random) -> np.random.Generator:
    return np.random.default_rng(rng.getrandbits(64))


def four_ways_to_lanes(words: NDArray[np.generic], dtype: DataType, exponent: int, workers: int) -> None:
    golden = formats.quantize(words.view(LANES_VALUES[dtype]), dtype, exponent, workers)
    want = (golden.saturated, golden.nonfinite)
    headroom = formats.headroom(workers)
    as_hls = hls_scoreboard.How(dtype, exponent, workers)

    big = np.zeros(words.size, ">i4")
    cut = _native.quantize(_native.Pinned(words, False), dtype, exponent, headroom, _native.Pinned(big, True))
    assert np.array_equal(big.astype(np.int32), golden.lanes) and tuple(cut) == want

    model = hls_scoreboard.quantize_words(words.astype(np.uint32), as_hls)
    assert np.array_equal(model.lanes, golden.lanes) and (model.saturated, model.nonfinite) == want

    beats, _ = to_int(beats_of(words.tobytes(), how(dtype, exponent, workers)), NO_GAPS, 1)
    (lanes,) = messages_of(beats)
    assert lanes == model.lanes.tobytes() and counts(beats) == want


def four_ways_back(lanes: NDArray[np.int32], dtype: DataType, exponent: int, workers: int) -> None:
    with np.errstate(over="ignore"):
        golden = formats.dequantize(lanes, dtype, exponent, workers).tobytes()
    headroom = formats.headroom(workers)

    words = np.zeros(len(golden), np.uint8)
    _native.dequantize(
        _native.Pinned(lanes.astype(">i4"), False), exponent, headroom, dtype, _native.Pinned(words, True)
    )
    assert words.tobytes() == golden

    assert hls_scoreboard.int_to_float(lanes, hls_scoreboard.How(dtype, exponent, workers), len(lanes)) == golden
    beats, _ = to_float(beats_of(lanes.tobytes(), how(dtype, exponent, workers)), NO_GAPS, 1)
    assert messages_of(beats) == [golden]


@pytest.mark.parametrize("dtype", [DataType.FP16, DataType.BF16])
def test_16_bit_words_to_lanes(dtype: DataType, rng: random.Random) -> None:
    words = np.arange(1 << 16, dtype=np.uint16)
    for exponent in (rng.randrange(-30, 20), rng.randrange(-128, 128)):
        four_ways_to_lanes(words, dtype, exponent, rng.choice([1, 2, 3, 8, 32]))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [DataType.FP16, DataType.BF16])
def test_every_16_bit_word_at_every_exponent_four_ways(dtype: DataType, rng: random.Random) -> None:
    words = np.arange(1 << 16, dtype=np.uint16)
    for exponent in range(-128, 128):
        four_ways_to_lanes(words, dtype, exponent, rng.choice([1, 2, 4, 8, 16, 32]))


def test_fp32_and_int32_to_lanes_four_ways(numbers: np.random.Generator, rng: random.Random) -> None:
    for exponent in (-128, 127, 0, *(rng.randrange(-128, 128) for _ in range(10))):
        four_ways_to_lanes(near(numbers, exponent, 4000), DataType.FP32, exponent, rng.randrange(1, 33))
    four_ways_to_lanes(some_lanes(numbers, 2000), DataType.INT32, 3, 4)


@pytest.mark.parametrize("dtype", [*FLOATS, DataType.INT32])
def test_lanes_back_four_ways(dtype: DataType, numbers: np.random.Generator, rng: random.Random) -> None:
    for exponent in (-128, 127, 0, *(rng.randrange(-128, 128) for _ in range(5))):
        four_ways_back(some_lanes(numbers, 1501), dtype, exponent, rng.randrange(1, 33))


def test_a_stream_kernel_takes_messages_of_any_length(numbers: np.random.Generator, rng: random.Random) -> None:
    for dtype in FLOATS:
        for count in (1, 15, 16, 17, 31, 32, 33, rng.randrange(1, 200)):
            words = numbers.integers(0, 1 << 16, 2 * count, dtype=np.uint16).tobytes()
            words = words[: count * (4 if dtype == DataType.FP32 else 2)]
            beats, _ = to_int(beats_of(words, how(dtype, 1, 4)), NO_GAPS, 1)
            model = hls_scoreboard.float_to_int(words, hls_scoreboard.How(dtype, 1, 4))
            assert messages_of(beats) == [model.lanes.tobytes()]
            assert counts(beats) == (model.saturated, model.nonfinite)


def _through(
    top: str, function: str, events: NDArray[np.uint32], columns: int, parameters: dict[str, int]
) -> tuple[NDArray[np.uint32], int]:
    library = load(top, HERE / f"{top}_bench.cpp", parameters)
    answers = np.zeros((len(events), columns), np.uint32)
    run = getattr(library, function)
    run.restype = ctypes.c_uint64
    fault = run(ctypes.c_void_p(events.ctypes.data), ctypes.c_uint64(len(events)), ctypes.c_void_p(answers.ctypes.data))
    return answers, fault


def _agree(rtl: NDArray[np.uint32], model: NDArray[np.uint32], events: NDArray[np.uint32]) -> None:
    wrong = np.flatnonzero((rtl != model).any(axis=1))
    assert wrong.size == 0, f"event {wrong[0]} {events[wrong[0]]}: RTL {rtl[wrong[0]]}, HLS {model[wrong[0]]}"


def _wrapped(value: int) -> int:
    return value & 0xFFFF_FFFF


BASES: list[Callable[[random.Random], int]] = [lambda r: r.getrandbits(32), lambda r: 0xFFFF_FFF0 + r.randrange(16)]


@pytest.mark.parametrize("base", BASES, ids=["anywhere", "across the wrap"])
def test_the_sender_does_what_its_model_does(base: Callable[[random.Random], int], rng: random.Random) -> None:
    rows: list[tuple[int, int, int, int]] = []
    seen = set()
    for _ in range(40):
        first, window = base(rng), rng.randrange(1, 33)
        rows.append((0, first, window, 64))
        acked = sent_at_most = end = 0  # as offsets from first
        for _ in range(80):
            kind = rng.choice([1, 1, 1, 2, 2, 3, 3, 3, 3, 4] if rng.random() < 0.3 else [1, 2, 3, 3, 3])
            if kind == 1 and end - acked < 60:
                end += 1
                rows.append((1, 0, 0, 0))
            elif kind == 2:
                # stale, current, possible, and sometimes more than was ever sent
                ack = rng.choice([acked - rng.randrange(8), rng.randint(acked, sent_at_most), sent_at_most + 40])
                rows.append((2, _wrapped(first + ack), _wrapped(first + ack + rng.randrange(80)), 0))
                acked = max(acked, min(ack, sent_at_most))
            elif kind in (3, 4):
                rows.append((kind, 0, 0, 0))
            seen.add(kind)
            answers = hls_scoreboard.sender(np.array(rows[rows.index((0, first, window, 64)) :], np.uint32))
            sent_at_most = _wrapped(int(answers[-1][5]) - first)
            acked = _wrapped(int(answers[-1][4]) - first)
    events = np.array(rows, np.uint32)
    model = hls_scoreboard.sender(events)
    rtl, unasked = _through("sender", "run_sender", events, 7, {"WINDOW": 64})
    assert unasked == 0
    _agree(rtl, model, events)
    # functional coverage: new frames, repeated ones, refused heartbeats, and each kind of event
    assert model[:, 1].sum() > 20 and model[:, 2].sum() > 20 and (model[:, 0] & ~model[:, 1] & 1).sum() > 200
    assert seen >= {1, 2, 3, 4}


@pytest.mark.parametrize("base", BASES, ids=["anywhere", "across the wrap"])
def test_the_consumer_does_what_its_model_does(base: Callable[[random.Random], int], rng: random.Random) -> None:
    rows: list[tuple[int, int, int]] = []
    for _ in range(20):
        first, window = base(rng), rng.choice([1, 2, 33, 63, 64])
        rows.append((0, first, window))
        consumed, held = 0, set[int]()
        for _ in range(250):
            if rng.random() < 0.45:
                rows.append((2, 0, 0))
                if consumed in held:
                    consumed += 1
            else:
                # mostly what is next, else anything about the window
                ahead = rng.randrange(0, 3) if rng.random() < 0.7 else rng.randrange(-10, window + 10)
                rows.append((1, _wrapped(first + consumed + ahead), 0))
                if 0 <= ahead < window:
                    held.add(consumed + ahead)
    events = np.array(rows, np.uint32)
    model = hls_scoreboard.consumer(events)
    rtl, _ = _through("consumer", "run_consumer", events, 4, {"WINDOW": 64})
    _agree(rtl, model, events)
    verdicts = np.bincount(model[:, 0], minlength=6)
    assert (verdicts[1:] > 50).all(), f"verdicts {verdicts}: not every one was seen"
