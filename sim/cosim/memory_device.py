"""A memory device of a ring: a Verilated sync node, its memory, its driver; made by `Machine`."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

from catchment.rtl.driver.sync import ENTRY, Operation, SyncNode, SyncRequest
from catchment.rtl.generated import sync_regs
from catchment.rtl.harness.sync_ring import LANES, library
from catchment.sim.cosim.bus import ClockedBus
from catchment.sim.cosim.errors import CosimError
from catchment.sim.cosim.models import PICOS_PER_NANO, RingModel


class RingSum:
    """A tensor that a device has posted."""

    def __init__(self, host: MemoryDevice, request: SyncRequest) -> None:
        self.host, self.request, self.kind = host, request, "sum"
        self._watch = host.device.watch()

    @property
    def done(self) -> bool:
        """All of it is in memory."""
        return bool(self._watch.at)

    @property
    def finished_ns(self) -> float:
        """The time at which the interrupt was raised, on the machine's clock.

        Raises:
            CosimError: it has not been.
        """
        if not self.done:
            raise CosimError(f"the sum of {self.host.name} is under way: finish it first")
        return float(self._watch.at) / PICOS_PER_NANO


class MemoryDevice:
    """One device; its neighbours are those before and behind it among the machine's hosts.

    Attributes:
        memory: (entries, 16) int32.
        device: the native side.
    """

    def __init__(self, world: Any, name: str, model: RingModel, seed: int) -> None:
        self.name = name
        self.memory: NDArray[np.int32] = np.zeros((model.entries, LANES), np.int32)
        self._library = library(False)
        self._node = ctypes.c_void_p(
            self._library.node_new(
                self.memory.ctypes.data_as(ctypes.c_void_p), ctypes.c_uint64(self.memory.nbytes),
                ctypes.c_uint32(model.memory_clocks), ctypes.c_uint32(seed & 0xFFFF_FFFF),
            )
        )  # fmt: skip
        self.device = world.add_ring_node(self._library.catchment_ring_device(), self._node.value)
        self._bus = ClockedBus(world, self.device.registers)
        self._driver: SyncNode | None = None
        self._pending: list[RingSum] = []

    @property
    def driver(self) -> SyncNode:
        """The node's driver.

        Raises:
            CosimError: its ring is not closed yet.
        """
        if self._driver is None:
            raise CosimError(f"{self.name} is in no ring yet")
        return self._driver

    def take_place(self, position: int, devices: int, least_segment: int) -> None:
        """Become one of a ring, all of which are there."""
        self._driver = SyncNode(self._bus, position, devices, least_segment)

    def sync(self, tensor: int, first: int, entries: int, operation: Operation = "sum") -> RingSum:
        """Post a tensor of `entries` from entry `first` on; one at a time, as the interrupt is of any.

        Raises:
            CosimError: another one is under way.
        """
        self._pending = [each for each in self._pending if not each.done]
        if self._pending:
            raise CosimError(f"{self.name} sums tensor {self._pending[0].request.tensor}: finish it first")
        driver = self.driver
        self._bus.write(sync_regs.DONE_ENABLE.address, 1 << tensor)
        request = driver.sync(tensor, first * ENTRY, entries * ENTRY, operation)
        self._pending.append(RingSum(self, request))
        return self._pending[0]

    def check(self) -> None:
        """Raise what the hardware's assertions have said in the clocks until now.

        Raises:
            RtlFailedError: one failed.
            CosimError: it broke AXI4's rules.
        """
        if broken := self._library.node_broken_laws(self._node):
            raise CosimError(f"{self.name}: {broken} bursts broke AXI4's rules (rtl/harness/axi_memory.hpp)")

    def close(self) -> None:
        """Delete the node."""
        self._library.node_delete(self._node)
