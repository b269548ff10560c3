"""Messages as beats of a 512-bit AXI-Stream, and a Verilated module run over them."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from catchment.rtl.harness.library import RtlLibrary, load

BEAT_BYTES = 64
BEAT = np.dtype(
    [("data", np.uint8, BEAT_BYTES), ("keep", "<u8"), ("user", "<u8"), ("last", "<u4"), ("reserved", "<u4")]
)
Beats = NDArray[Any]


class _Outcome(ctypes.Structure):
    _fields_ = (("beats", ctypes.c_uint64), ("clocks", ctypes.c_uint64), ("broken_laws", ctypes.c_uint64))


@dataclass(frozen=True)
class Gaps:
    """The clocks of 256 in which nothing is offered, and those in how many nothing is taken."""

    idle: int = 0
    stall: int = 0


NO_GAPS = Gaps()


@cache
def _library(top: str, bench: str, parameters: tuple[tuple[str, int], ...], instead: tuple[Path, ...]) -> RtlLibrary:
    return load(top, Path(__file__).with_name(bench), dict(parameters), instead=instead)


def beats_of(message: bytes, user: int) -> Beats:
    """A message, its last beat partly kept; what is not kept is noise."""
    count = max(1, -(-len(message) // BEAT_BYTES))
    beats = np.zeros(count, BEAT)
    room = np.random.default_rng(len(message)).integers(0, 256, count * BEAT_BYTES).astype(np.uint8)
    room[: len(message)] = np.frombuffer(message, np.uint8)
    beats["data"] = room.reshape(count, BEAT_BYTES)
    beats["keep"] = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
    tail = len(message) - (count - 1) * BEAT_BYTES
    beats["keep"][-1] = np.uint64((1 << tail) - 1)
    beats["last"][-1] = 1
    beats["user"] = user
    return beats


def messages_of(beats: Beats) -> list[bytes]:
    """What the kept bytes say, split at `last`: kept bytes come first in a beat, only the last may be partly kept."""
    messages, current = [], b""
    for beat in beats:
        kept = int(beat["keep"]).bit_length()
        assert int(beat["keep"]) == (1 << kept) - 1, "a hole in tkeep"
        assert beat["last"] or kept == BEAT_BYTES, "a partly kept beat in the middle of a message"
        assert not beat["data"][kept:].any(), "bytes that are not kept are not zero"
        current += beat["data"][:kept].tobytes()
        if beat["last"]:
            messages.append(current)
            current = b""
    assert not current, "a message without its last beat"
    return messages


def run(
    top: str,
    bench: str,
    function: str,
    beats: Beats,
    *,
    room: int,
    gaps: Gaps,
    seed: int,
    parameters: Mapping[str, int] = {},
    instead: tuple[Path, ...] = (),
) -> tuple[Beats, int]:
    """The beats that come out (at most `room`), and the clocks until the last one.

    `instead` takes the place of the module's sources.
    """
    library = _library(top, bench, tuple(sorted(parameters.items())), instead)
    out = np.zeros(room, BEAT)
    outcome = _Outcome()
    into = np.ascontiguousarray(beats)
    getattr(library, function)(
        into.ctypes.data_as(ctypes.c_void_p), ctypes.c_uint64(len(into)),
        out.ctypes.data_as(ctypes.c_void_p), ctypes.c_uint64(room),
        ctypes.c_uint32(gaps.idle), ctypes.c_uint32(gaps.stall), ctypes.c_uint32(seed & 0xFFFF_FFFF),
        ctypes.byref(outcome),
    )  # fmt: skip
    assert outcome.broken_laws == 0, f"{outcome.broken_laws} beats changed or vanished while they waited"
    return out[: outcome.beats], outcome.clocks
