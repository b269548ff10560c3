"""Memory that a NIC may reach: pinned and mapped once, handed out in pieces (LuWu, 3.2.1, "Software Driver")."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from catchment.rtl.driver.errors import NicError

PAGE = 1 << 21
ALIGNMENT = 64  # of a buffer: a beat of the memory bus


@dataclass(frozen=True, slots=True)
class Buffer:
    """A piece of pinned memory.  `virtual` is its address for requests; `bytes` are shared with the NIC."""

    virtual: int
    bytes: NDArray[np.uint8]


@dataclass(slots=True)
class PinnedMemory:
    """A range of whole 2 MiB pages, contiguous for the program and page by page for the NIC.

    Args:
        bytes: the range.
        virtual: its first address, a multiple of 2 MiB, as requests name it.
        physical: for each page its physical address.

    Raises:
        NicError: the range is no number of whole pages, or an address is off a page.
    """

    bytes: NDArray[np.uint8]
    virtual: int
    physical: tuple[int, ...]
    _free: list[tuple[int, int]] = field(init=False)  # (offset, size), by offset
    _sizes: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.bytes.size != PAGE * len(self.physical) or not self.physical:
            raise NicError(f"{self.bytes.size} bytes in {len(self.physical)} pages: give whole pages of {PAGE} bytes")
        for address in (self.virtual, *self.physical):
            if address % PAGE:
                raise NicError(f"address {address:#x} is not on a page: give a multiple of {PAGE:#x}")
        self._free = [(0, self.bytes.size)]

    def pages(self) -> Iterator[tuple[int, int]]:
        """(virtual, physical) of each page."""
        for index, physical in enumerate(self.physical):
            yield self.virtual + index * PAGE, physical

    def allocate(self, size: int) -> Buffer:
        """A buffer of `size` bytes on a beat of the memory bus.

        Raises:
            NicError: nothing so large is free.
        """
        room = -(-max(size, 1) // ALIGNMENT) * ALIGNMENT
        for index, (offset, free) in enumerate(self._free):
            if free >= room:
                self._free[index : index + 1] = [(offset + room, free - room)] if free > room else []
                self._sizes[offset] = room
                return Buffer(self.virtual + offset, self.bytes[offset : offset + size])
        largest = max((free for _, free in self._free), default=0)
        raise NicError(f"no {size} bytes free: the largest piece has {largest}; release buffers or pin more pages")

    def release(self, buffer: Buffer) -> None:
        """Give a buffer back; neither the caller nor the NIC may use it any more.

        Raises:
            NicError: it is none of this memory's, or was given back before.
        """
        offset = buffer.virtual - self.virtual
        if offset not in self._sizes:
            raise NicError(f"no buffer begins at {buffer.virtual:#x}: release it once, whole")
        pieces = sorted([*self._free, (offset, self._sizes.pop(offset))])
        merged = [pieces[0]]
        for begin, size in pieces[1:]:
            last, length = merged[-1]
            if last + length == begin:
                merged[-1] = (last, length + size)
            else:
                merged.append((begin, size))
        self._free = merged
