"""The converters in Verilator, and numbers worth converting."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from beats import BEAT_BYTES, Beats, Gaps, run
from numpy.typing import NDArray

from catchment.sim.golden import formats
from catchment.wire.generated.constants import DataType

LANES = BEAT_BYTES // 4
LANES_VALUES = {
    DataType.FP32: np.float32,
    DataType.FP16: np.float16,
    DataType.BF16: np.uint16,
    DataType.INT32: np.int32,
}


def how(dtype: DataType, exponent: int, workers: int, *, packed: bool = False) -> int:
    """`format_t` as bits."""
    shape = workers == 1 << formats.headroom(workers), packed
    return shape[0] << 20 | shape[1] << 19 | dtype << 11 | (exponent & 0xFF) << 3 | formats.headroom(workers)


def to_int(  # noqa: PLR0917
    beats: Beats, gaps: Gaps, seed: int, stages: int = 3, halves: int = 1, instead: tuple[Path, ...] = ()
) -> tuple[Beats, int]:
    return run(
        "float_to_int",
        "format_bench.cpp",
        "convert",
        beats,
        room=2 * len(beats),
        gaps=gaps,
        seed=seed,
        parameters={"STAGES": stages, "HALVES": halves},
        instead=instead,
    )


def to_float(  # noqa: PLR0917
    beats: Beats, gaps: Gaps, seed: int, stages: int = 3, halves: int = 1, instead: tuple[Path, ...] = ()
) -> tuple[Beats, int]:
    return run(
        "int_to_float",
        "format_bench.cpp",
        "convert",
        beats,
        room=2 * len(beats),
        gaps=gaps,
        seed=seed,
        parameters={"STAGES": stages, "HALVES": halves},
        instead=instead,
    )


def counts(beats: Beats) -> tuple[int, int]:
    """Elements cut, and elements not finite."""
    flags = [divmod(int(flag), 1 << 2 * LANES) for flag in beats["user"]]
    return sum(cut.bit_count() for cut, _ in flags), sum(nonfinite.bit_count() for _, nonfinite in flags)


def near(numbers: np.random.Generator, exponent: int, count: int) -> NDArray[np.uint32]:
    """fp32 words around what E makes of them: rounding, cutting and vanishing; some are any word at all."""
    words = numbers.integers(0, 1 << 32, count, dtype=np.uint64).astype(np.uint32)
    field = np.clip(exponent + 127 + numbers.integers(-34, 3, count), 0, 255).astype(np.uint32)
    ties = words & np.uint32(0x807F_FFFF) & ~np.uint32((1 << 12) - 1)
    kind = numbers.random(count)
    return np.select([kind < 0.2, kind < 0.6], [words, ties | field << 23], (words & 0x807F_FFFF) | field << 23)


def some_lanes(numbers: np.random.Generator, count: int) -> NDArray[np.int32]:
    """Every magnitude, and the neighbours of powers of two, where rounding carries."""
    lanes = numbers.integers(-(1 << 31), 1 << 31, count) >> numbers.integers(0, 32, count)
    powers = (1 << numbers.integers(0, 31, count)) + numbers.integers(-2, 3, count)
    return np.where(numbers.random(count) < 0.7, lanes, powers * numbers.choice([-1, 1], count)).astype(np.int32)
