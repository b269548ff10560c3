"""The HLS kernels as scoreboards: the shared object that hls/ builds, with numpy arrays around it."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from catchment.hls.build import scoreboard
from catchment.sim.golden import formats
from catchment.wire.generated.constants import DataType

_ITEM = {DataType.FP32: 4, DataType.FP16: 2, DataType.BF16: 2, DataType.INT32: 4}


@dataclass(frozen=True)
class Lanes:
    """What a conversion gave."""

    lanes: NDArray[np.int32]
    saturated: int
    nonfinite: int


@dataclass(frozen=True)
class How:
    """How to convert: the fields of `format_t`, from the number of workers."""

    dtype: DataType
    exponent: int
    workers: int
    packed: bool = False

    @property
    def range(self) -> int:
        """h, and what matters of packed lanes, as the kernels' functions take them."""
        headroom = formats.headroom(self.workers)
        return headroom | self.packed << 3 | (self.workers == 1 << headroom) << 4


def float_to_int(message: bytes, how: How) -> Lanes:
    """A whole message through the kernel with its streams."""
    count = len(message) // _ITEM[how.dtype]
    lanes = np.zeros(-(-count // 2) if how.packed else count, np.int32)
    cut, special = ctypes.c_uint64(), ctypes.c_uint64()
    written = scoreboard().hls_float_to_int(
        message, ctypes.c_uint64(len(message)), int(how.dtype), how.exponent, how.range,
        ctypes.c_void_p(lanes.ctypes.data), ctypes.byref(cut), ctypes.byref(special),
    )  # fmt: skip
    assert written == lanes.nbytes
    return Lanes(lanes, cut.value, special.value)


def int_to_float(lanes: NDArray[np.int32], how: How, elements: int) -> bytes:
    """A whole message back; of packed lanes an even number of elements, or all but the last."""
    out = np.zeros(elements * _ITEM[how.dtype], np.uint8)
    size = 2 * elements if how.packed else lanes.nbytes
    written = scoreboard().hls_int_to_float(
        lanes.tobytes(), ctypes.c_uint64(lanes.nbytes), ctypes.c_uint64(size), int(how.dtype), how.exponent, how.range,
        ctypes.c_void_p(out.ctypes.data),
    )  # fmt: skip
    assert written == out.nbytes
    return out.tobytes()


def quantize_words(words: NDArray[np.uint32], how: How) -> Lanes:
    """Words through the lane alone: an integer for each."""
    lanes = np.zeros(len(words), np.int32)
    cut, special = ctypes.c_uint64(), ctypes.c_uint64()
    scoreboard().hls_quantize_words(
        ctypes.c_void_p(np.ascontiguousarray(words).ctypes.data), ctypes.c_uint64(len(words)), int(how.dtype),
        how.exponent, how.range, ctypes.c_void_p(lanes.ctypes.data), ctypes.byref(cut), ctypes.byref(special),
    )  # fmt: skip
    return Lanes(lanes, cut.value, special.value)


def sender(events: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Rows {kind, first, second, third} to rows {sends, again, impossible, seq, acked, next, credit}."""
    answers = np.zeros((len(events), 7), np.uint32)
    into = np.ascontiguousarray(events)
    scoreboard().hls_sender(
        ctypes.c_void_p(into.ctypes.data), ctypes.c_uint64(len(into)), ctypes.c_void_p(answers.ctypes.data)
    )
    return answers


def consumer(events: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Rows {kind, first, second} to rows {verdict, ack, consumed, credit}."""
    answers = np.zeros((len(events), 4), np.uint32)
    into = np.ascontiguousarray(events)
    scoreboard().hls_consumer(
        ctypes.c_void_p(into.ctypes.data), ctypes.c_uint64(len(into)), ctypes.c_void_p(answers.ctypes.data)
    )
    return answers
