"""What a ring of sync cores makes of its devices' memories (rtl/sync, host/proxy/ring.py). Slow and obvious.

A chunk has at most p segments of `entries` entries of 64 bytes. The sum of segment s begins at device s, and each
device around the ring adds its own to what comes: with floats this order is the result.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

ENTRY_BYTES = 64


def ring_sums(arrays: npt.NDArray[Any], entries: int = 256) -> npt.NDArray[Any]:
    """The sum of arrays (devices, elements) of int32, wrapping around, or fp32; the same at every device."""
    devices, elements = arrays.shape
    lanes = ENTRY_BYTES // arrays.itemsize
    total = np.empty(elements, arrays.dtype)
    for place in range(elements):
        chunk = devices * entries * lanes
        start = place // chunk * chunk
        size = -(-min(chunk, elements - start) // lanes)  # entries of this chunk
        segment = (place - start) // lanes // -(-size // devices)
        at = arrays[segment, place]
        for hop in range(1, devices):
            with np.errstate(over="ignore"):
                at = at + arrays[(segment + hop) % devices, place]
        total[place] = at
    return total
