"""Samples as hardware reads them: words of one bit of 64 features of 8 samples (docs/explanation/glm.md)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from catchment.host.glm.encoding import Codes
from catchment.host.glm.shares import Shares, micro_batches
from catchment.wire.generated.glm_numbers import BANKS, CHUNK, PLANES

Words = NDArray[np.uint64]


def weave(codes: Codes, shares: Shares) -> Words:
    """A worker's samples as its engines' memories hold them.

    Args:
        codes: 16-bit features, shape (samples, features of this worker).
        shares: how many engines, and how many slots each has.

    Returns:
        Shape (engines, micro_batches, slots, 16, 8); `[engine].tobytes()` is an engine's memory.
    """
    samples, features = codes.shape
    batches, slots, engines = micro_batches(samples), shares.engine_chunks, shares.engines
    words = np.zeros((engines, batches, slots, PLANES, BANKS), np.uint64)
    padded = np.zeros((BANKS, slots * engines * CHUNK), np.uint16)
    for batch in range(batches):
        rows = codes[batch * BANKS : (batch + 1) * BANKS]
        padded[:] = 0
        padded[: len(rows), :features] = rows
        # (plane, bank, byte of a chunk) -> little-endian words by slot and engine
        bits = (padded[None] >> np.arange(PLANES - 1, -1, -1, dtype=np.uint16)[:, None, None]) & np.uint16(1)
        packed = np.packbits(bits.astype(np.uint8), axis=2, bitorder="little").view("<u8")
        by_slot = packed.reshape(PLANES, BANKS, slots, engines)
        words[:, batch] = by_slot.transpose(3, 2, 0, 1)
    return words
