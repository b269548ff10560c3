"""A sync node's driver: tensors of its memory are posted, and summed when all devices of the ring have posted them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from catchment.rtl.driver.bus import RegisterBus
from catchment.rtl.driver.errors import NicError
from catchment.rtl.generated import sync_regs
from catchment.rtl.regmap.model import Register, RegisterMapError
from catchment.wire.generated.constants import DataType

ENTRY = 64
"""Bytes of an entry: 16 lanes."""
TENSORS = 32
_BEYOND = 1 << sync_regs.ADDRESS.fields[0].bits
"""The byte address behind the last one that a tensor can have."""
SYNC_ID = 0x4E59_5343
_VERSION = 1
Operation = Literal["sum", "maximum"]


@dataclass(frozen=True, slots=True)
class SyncRequest:
    """A posted tensor, by its bit of POSTED and DONE."""

    node: SyncNode
    tensor: int

    @property
    def done(self) -> bool:
        """All of it is in memory."""
        return bool(self.node.done >> self.tensor & 1)

    def wait(self, patience: int = 1_000_000) -> None:
        """Wait until it is done; `patience`: times that the bus may relax.

        Raises:
            NicError: it is not done by then.
        """
        for _ in range(patience):
            if self.done:
                return
            self.node.bus.relax()
        raise NicError(
            f"tensor {self.tensor} is not summed: a device of the ring has not posted it, or posted another length"
        )


@dataclass(slots=True)
class SyncNode:
    """One device of a ring of `devices`, at place `position`.

    Args:
        bus: to its registers.
        position: the next device in the ring has one more.
        devices: 2..16.
        least_segment: entries of the shortest segment, 1..256: as many as a hop has clocks; the same at all devices.

    Raises:
        NicError: there is no sync node, or no such ring.
    """

    bus: RegisterBus
    position: int
    devices: int
    least_segment: int = 64

    def __post_init__(self) -> None:
        if not 2 <= self.devices <= 16 or not 0 <= self.position < self.devices:
            raise NicError(f"device {self.position} of a ring of {self.devices}: a ring has 2 to 16, counted from 0")
        if not 1 <= self.least_segment <= 256:
            raise NicError(f"a shortest segment of {self.least_segment} entries: 1 to 256 are possible")
        found = self.bus.read(sync_regs.ID.address)
        if found != SYNC_ID:
            raise NicError(f"the register ID is {found:#010x}, not {SYNC_ID:#010x}: this is no sync node")
        version = self.bus.read(sync_regs.VERSION.address)
        if version != _VERSION:
            raise NicError(f"the node has register map {version}, this driver knows {_VERSION}")
        self.bus.write(sync_regs.RING.address, sync_regs.RING.pack(position=self.position, last=self.devices - 1))
        self.bus.write(sync_regs.LEAST_SEGMENT.address, self.least_segment)

    def sync(
        self, tensor: int, address: int, length: int, operation: Operation = "sum", urgent: bool = False
    ) -> SyncRequest:
        """Post a tensor of the node's `dtype`; all devices must post the same `tensor`, `length` and `operation`.

        Args:
            tensor: 0..31. Even ones go one way around the ring, odd ones the other: two halves use both.
            address: in this device's memory, a multiple of 64.
            length: bytes, a multiple of 64.

        Raises:
            NicError: it cannot be posted, or is posted already.
        """
        if not 0 <= tensor < TENSORS:
            raise NicError(f"tensor {tensor}: a node has 0..{TENSORS - 1}")
        if length <= 0 or length % ENTRY or address % ENTRY:
            raise NicError(
                f"{length} bytes at {address:#x}: both must be multiples of {ENTRY}, and the length more than 0"
            )
        if address < _BEYOND < address + length:
            raise NicError(f"{length} bytes at {address:#x}: a node's addresses end at {_BEYOND:#x}")
        if self.bus.read(sync_regs.POSTED.address) >> tensor & 1:
            raise NicError(f"tensor {tensor} is posted and not done: wait for it")
        try:
            low, high = _words(sync_regs.ADDRESS, address)
            entries, _ = _words(sync_regs.ENTRIES, length // ENTRY)
        except RegisterMapError as error:
            raise NicError(f"{length} bytes at {address:#x}: {error}") from error
        self.bus.write(sync_regs.DONE.address, 1 << tensor)
        self.bus.write(sync_regs.ADDRESS.address, low)
        self.bus.write(sync_regs.ADDRESS.address + 4, high)
        self.bus.write(sync_regs.ENTRIES.address, entries)
        word = sync_regs.POST.pack(tensor=tensor, urgent=int(urgent), maximum=int(operation == "maximum"))
        self.bus.write(sync_regs.POST.address, word)
        return SyncRequest(self, tensor)

    @property
    def dtype(self) -> DataType:
        """Type of its lanes."""
        fp32 = sync_regs.BUILD.unpack(self.bus.read(sync_regs.BUILD.address))["fp32"]
        return DataType.FP32 if fp32 else DataType.INT32

    @property
    def done(self) -> int:
        """A bit a tensor: all of it is in memory."""
        return self.bus.read(sync_regs.DONE.address)

    def counter(self, register: Register) -> int:
        """A counter of the block `counters`."""
        value = self.bus.read(register.address)
        return value | self.bus.read(register.address + 4) << 32 if register.words == 2 else value


def _words(register: Register, value: int) -> tuple[int, int]:
    packed = register.pack(value=value)
    return packed & 0xFFFF_FFFF, packed >> 32
