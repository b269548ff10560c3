"""The sum of an array over a ring of proxies: what a sync core does (rtl/sync), in software and with the same bits.

A chunk is cut into a segment for each device, in entries of 64 bytes. In 2(p-1) passes every device sends a segment on:
first its own, then what comes in with its own added, and from the first complete sum on what comes in as it is. The
last pass of a chunk only receives, and does so after the first segment of the next chunk has left. So a segment's sum
begins at the device of its number and goes around once: with floats that order is the result.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Lanes = npt.NDArray[Any]
"""int32, whose sums wrap around, or fp32; flat."""
ENTRY_BYTES = 64
ENTRIES = 256
"""Most entries of a segment: what a core's receive buffer holds."""


class RingLink(Protocol):
    """The way to the next device and from the one before. A segment may be empty: then nothing need be sent."""

    def send(self, segment: Lanes) -> None:
        """Send a segment to the next device; returns as soon as the segment may be written to again."""

    def receive(self, segment: Lanes) -> None:
        """Fill a segment with what the device before sent."""


def ring_sum(array: Lanes, position: int, devices: int, link: RingLink, *, entries: int = ENTRIES) -> None:
    """Replace `array` by its sum over all devices, each of which calls this with an array of the same length.

    Args:
        array: int32 or fp32 elements, flat and contiguous.
        position: of this device, counted in the direction in which the links send.
        devices: p; one device has its sum already.
        link: to both neighbours.
        entries: of a segment, at most; all devices have the same.

    Raises:
        ProxyError: a neighbour is gone.
    """
    if devices == 1:
        return
    lanes = ENTRY_BYTES // array.itemsize
    scratch = np.empty(entries * lanes, array.dtype)
    last = None
    for chunk in _chunks(array, devices * entries * lanes):
        segments = _segments(chunk, devices, lanes)
        link.send(segments[position])
        if last is not None:
            link.receive(last)
        for number in range(1, 2 * devices - 2):
            segment = segments[(position - number) % devices]
            if number < devices:
                came = scratch[: len(segment)]
                link.receive(came)
                np.add(came, segment, out=segment)
            else:
                link.receive(segment)
            link.send(segment)
        last = segments[(position + 2) % devices]
    if last is not None:
        link.receive(last)


def _chunks(array: Lanes, size: int) -> Iterator[Lanes]:
    for start in range(0, len(array), size):
        yield array[start : start + size]


def _segments(chunk: Lanes, devices: int, lanes: int) -> list[Lanes]:
    """Equal numbers of entries, rounded up; the last ones may be short or empty."""
    entries = -(-len(chunk) // lanes)
    size = -(-entries // devices) * lanes
    return [chunk[size * number : size * (number + 1)] for number in range(devices)]
