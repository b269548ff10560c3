"""The shards of a tensor (COARSE, III-E): as small as the link still runs at its full rate."""

from __future__ import annotations

from itertools import pairwise

from catchment.host.given_numbers import is_whole
from catchment.host.proxy.errors import ProxyError
from catchment.host.proxy.links import LinkCurve

FULL_RATE = 0.95
"""Share of the best measured rate that counts as the full one: with noise no size but one has all of it."""
ALIGN = 64
"""Shards begin at multiples of so many bytes."""
MOST_SHARDS = 1 << 20
"""Shards of a tensor: each is a message, and a place in every process's tables."""


def partition_threshold(link: LinkCurve) -> int:
    """S': the least measured size, in bytes, at which the link has its full rate."""
    return next(size for size, seconds in link.points if size / seconds >= FULL_RATE * link.rate)


def partition(size: int, threshold: int) -> list[tuple[int, int]]:
    """Bounds of the shards of a tensor of `size` bytes: as many as have at least `threshold` each, equal to 64 bytes.

    Raises:
        ProxyError: a size that is no positive whole number, or too many shards.
    """
    if not (is_whole(size, 1) and is_whole(threshold, 1)):
        raise ProxyError(f"a tensor of {size!r} bytes in shards of {threshold!r}: both from 1 on, and whole")
    size, threshold = int(size), int(threshold)
    units = -(-size // ALIGN)
    count = min(max(1, size // threshold), units)
    if count > MOST_SHARDS:
        raise ProxyError(f"a tensor of {size} bytes in {count} shards: at most {MOST_SHARDS}: give larger shards")
    bounds = [min(size, units * at // count * ALIGN) for at in range(count + 1)]
    return list(pairwise(bounds))
