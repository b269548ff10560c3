"""Verilated sync nodes in a ring, with their memories and links, as an object."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from catchment.rtl.driver.bus import BusError
from catchment.rtl.driver.sync import SyncNode
from catchment.rtl.harness.library import RtlLibrary, load

LANES = 16
_HARNESS = Path(__file__).with_name("sync_harness.cpp")
_ANSWER_CLOCKS = 1000
_RELAX_CLOCKS = 64


class SyncRingError(Exception):
    """The ring does not get done, or broke a rule of its memories' ports."""


@cache
def library(fp32: bool) -> RtlLibrary:
    """The nodes and their bench; `fp32`: with lanes of binary32."""
    found = load("sync_node", _HARNESS, {"FP32": int(fp32)})
    for name in ("ring_new", "node_new", "catchment_ring_device"):
        getattr(found, name).restype = ctypes.c_void_p
    for name in ("ring_now", "ring_broken_laws", "node_broken_laws"):
        getattr(found, name).restype = ctypes.c_uint64
    return found


@dataclass(frozen=True, slots=True)
class NodeBus:
    """The register bus of one device; an access takes clocks of the whole ring."""

    ring: SyncRing
    device: int

    def read(self, address: int) -> int:
        """The 32-bit word at a byte address.

        Raises:
            BusError: it cannot be read.
        """
        self.ring.call("ring_begin_read", self.device, address)
        return self._answer(f"read of {address:#x}")

    def write(self, address: int, value: int) -> None:
        """Write a 32-bit word.

        Raises:
            BusError: it cannot be written.
        """
        self.ring.call("ring_begin_write", self.device, address, value)
        self._answer(f"write to {address:#x}")

    def relax(self) -> None:
        """Let some clocks pass."""
        self.ring.run(_RELAX_CLOCKS)

    def _answer(self, what: str) -> int:
        value = ctypes.c_uint32()
        if not self.ring.call("ring_finish", _ANSWER_CLOCKS):
            raise BusError(f"device {self.device}: no answer to a {what}")
        response = self.ring.call("ring_answer", self.device, ctypes.byref(value))
        if response:
            raise BusError(f"device {self.device}: a {what} was answered with error {response}")
        return value.value


class SyncRing:
    """`devices` nodes with `entries` of memory each, on links of `latency` clocks; a context manager.

    `memory` is theirs: shape (devices, entries, 16), int32; with `fp32` a view of it as float32 is what they sum.
    """

    def __init__(
        self,
        devices: int,
        entries: int,
        latency: int = 20,
        seed: int = 1,
        least_segment: int = 64,
        *,
        fp32: bool = False,
    ) -> None:
        self.memory: NDArray[np.int32] = np.zeros((devices, entries, LANES), np.int32)
        self._library = library(fp32)
        self._ring = ctypes.c_void_p(
            self._library.ring_new(
                ctypes.c_uint32(devices), self.memory.ctypes.data_as(ctypes.c_void_p),
                ctypes.c_uint64(self.memory[0].nbytes), ctypes.c_uint32(latency), ctypes.c_uint32(seed & 0xFFFF_FFFF),
            )
        )  # fmt: skip
        self.nodes = [SyncNode(NodeBus(self, i), i, devices, least_segment) for i in range(devices)]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            broken = self.call("ring_broken_laws")
        finally:
            self._library.ring_delete(self._ring)
        if kind is None and broken:
            raise SyncRingError(f"{broken} bursts broke AXI4's rules (rtl/harness/axi_memory.hpp)")

    def call(self, name: str, *arguments: Any) -> int:
        """A function of the harness."""
        words = [ctypes.c_uint32(a) if isinstance(a, int) else a for a in arguments]
        return int(getattr(self._library, name)(self._ring, *words) or 0)

    @property
    def now(self) -> int:
        """Clocks since the beginning."""
        return self.call("ring_now")

    def faults(self, damage: float = 0.0, lose: float = 0.0, stall: float = 0.0) -> None:
        """Which part of the flits is damaged and lost, and of the clocks in which a link takes none."""
        self.call("ring_faults", round(damage * 65536), round(lose * 65536), round(stall * 256))

    def pace(self, latency: int = 20, stall: float = 0.0) -> None:
        """Memory's latency in clocks, and the part of the clocks in which it stands still."""
        self.call("ring_pace", latency, round(stall * 256))

    def run(self, clocks: int) -> None:
        """Let clocks pass."""
        self.call("ring_run", clocks, 0)

    def run_until_interrupts(self, limit: int) -> None:
        """Run until all devices' interrupts are raised.

        Raises:
            SyncRingError: one is not, after `limit` clocks.
        """
        if not self.call("ring_run", limit, 1):
            missing = [f"{i}: {node.done:#x}" for i, node in enumerate(self.nodes)]
            raise SyncRingError(f"not all devices are done after {limit} clocks; DONE of {', '.join(missing)}")
