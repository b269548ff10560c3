"""The HLS kernels as scoreboards: the shared object that hls/ builds, with numpy arrays around it."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from catchment.hls.build import scoreboard
from catchment.wire.generated.constants import DataType

_ITEM = {DataType.FP32: 4, DataType.FP16: 2, DataType.BF16: 2, DataType.INT32: 4}


@dataclass(frozen=True)
class Lanes:
    """What a conversion gave."""

    lanes: NDArray[np.int32]
    saturated: int
    nonfinite: int


def float_to_int(message: bytes, dtype: DataType, exponent: int, headroom: int) -> Lanes:
    """A whole message through the kernel with its streams."""
    count = len(message) // _ITEM[dtype]
    lanes = np.zeros(count, np.int32)
    cut, special = ctypes.c_uint64(), ctypes.c_uint64()
    written = scoreboard().hls_float_to_int(
        message, ctypes.c_uint64(len(message)), int(dtype), exponent, headroom,
        ctypes.c_void_p(lanes.ctypes.data), ctypes.byref(cut), ctypes.byref(special),
    )  # fmt: skip
    assert written == lanes.nbytes
    return Lanes(lanes, cut.value, special.value)


def int_to_float(lanes: NDArray[np.int32], dtype: DataType, exponent: int, headroom: int) -> bytes:
    """A whole message back."""
    out = np.zeros(len(lanes) * _ITEM[dtype], np.uint8)
    written = scoreboard().hls_int_to_float(
        lanes.tobytes(), ctypes.c_uint64(lanes.nbytes), int(dtype), exponent, headroom, ctypes.c_void_p(out.ctypes.data)
    )
    assert written == out.nbytes
    return out.tobytes()


def quantize_words(words: NDArray[np.uint32], dtype: DataType, exponent: int, headroom: int) -> Lanes:
    """Words through the lane alone."""
    lanes = np.zeros(len(words), np.int32)
    cut, special = ctypes.c_uint64(), ctypes.c_uint64()
    scoreboard().hls_quantize_words(
        ctypes.c_void_p(np.ascontiguousarray(words).ctypes.data), ctypes.c_uint64(len(words)), int(dtype), exponent,
        headroom, ctypes.c_void_p(lanes.ctypes.data), ctypes.byref(cut), ctypes.byref(special),
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
