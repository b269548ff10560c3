"""host_datapath with memory behind it and its transmitter looped to its receiver."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from catchment.rtl.driver.records import RECORD
from catchment.rtl.harness.library import RtlLibrary, load
from catchment.wire.generated.constants import DataType

PAGE = 1 << 21
REQUEST = np.dtype(
    [
        ("vaddr", "<u8"), ("cmpt_ptr", "<u8"), ("len", "<u4"), ("tag", "<u2"), ("dtype", "u1"), ("exponent", "i1"),
        ("pull", "<u4"), ("wait", "<u4"), ("remap", "<u4"), ("force", "<u4"), ("block", "<u4"),
    ],
    align=True,
)  # fmt: skip
WRITE = np.dtype([("address", "<u8"), ("bytes", "<u8"), ("issued", "<u8"), ("answered", "<u8")])
UNMAP, MAP, RESET = 1, 2, 3


class Options(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_uint64) for name in ("base", "size", "error_begin", "error_end")),
        *(
            (name, ctypes.c_uint32)
            for name in (
                "latency", "read_stall", "write_stall", "address_stall", "link_stall", "headroom", "seed", "clocks",
                "quiet", "queue", "slots", "pairs",
            )
        ),
    )  # fmt: skip


class Outcome(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_uint64)
        for name in (
            "clocks", "completions", "refused", "missed", "unanswerable", "vectors", "push_beats", "first_vector",
            "last_vector", "first_ring", "first_read_beat", "first_written_beat", "first_pull_beat",
            "not_idle_at_reset",
            "writes_logged", "read_bursts", "read_beats", "write_bursts", "write_beats", "errors", "broken_laws",
        )
    )  # fmt: skip


@dataclass(frozen=True)
class Pace:
    """The clocks of 256 in which each side stands still."""

    latency: int = 20
    read_stall: int = 0
    write_stall: int = 0
    address_stall: int = 0
    link_stall: int = 0


def step(
    vaddr: int = 0, length: int = 0, completion: int = 0, *, dtype: DataType = DataType.FP32, exponent: int = 0,
    pull: bool = False, tag: int = 0, wait: int = 0, remap: int = 0, force: bool = False, block: bool = False,
) -> tuple[int, ...]:  # fmt: skip
    """One row of `REQUEST`; `force` rings although the queue is full."""
    return (vaddr, completion, length, tag, int(dtype), exponent, int(pull), wait, remap, int(force), int(block))


def mapped(pages: dict[int, int]) -> list[tuple[int, ...]]:
    """Steps that fill the TLB: virtual page to physical address."""
    return [step(virtual, completion=physical, remap=MAP) for virtual, physical in pages.items()]


@cache
def _library() -> RtlLibrary:
    return load("host_datapath", Path(__file__).with_name("host_datapath_bench.cpp"))


def run(
    memory: NDArray[np.uint8],
    base: int,
    steps: Sequence[tuple[int, ...]],
    *,
    seed: int,
    pace: Pace = Pace(),
    headroom: int = 0,
    errors: tuple[int, int] = (0, 0),
    clocks: int = 2_000_000,
    queue: int = 4096,
    slots: int = 0,
    pairs: int = 0,
) -> tuple[Any, NDArray[Any]]:
    """Changes `memory`, whose first byte is at physical address `base`; what happened, and every write burst."""
    options = Options(
        base, memory.size, *errors, pace.latency, pace.read_stall, pace.write_stall, pace.address_stall,
        pace.link_stall, headroom, seed & 0xFFFF_FFFF, clocks, 3000, queue, slots, pairs,
    )  # fmt: skip
    outcome = Outcome()
    rows = np.array(list(steps), REQUEST)
    writes = np.zeros(1 << 16, WRITE)
    _library().run(
        memory.ctypes.data_as(ctypes.c_void_p), ctypes.byref(options), rows.ctypes.data_as(ctypes.c_void_p),
        ctypes.c_uint64(len(rows)), writes.ctypes.data_as(ctypes.c_void_p), ctypes.c_uint64(len(writes)),
        ctypes.byref(outcome),
    )  # fmt: skip
    assert outcome.broken_laws == 0, f"{outcome.broken_laws} times against AXI4"
    assert outcome.clocks < clocks, "it never came to rest"
    return outcome, writes[: outcome.writes_logged]


def record_at(memory: NDArray[np.uint8], offset: int) -> Any:
    """The completion record at `offset` of memory."""
    return memory[offset : offset + RECORD.itemsize].view(RECORD)[0]
