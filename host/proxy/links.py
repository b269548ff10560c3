"""What a transfer between a client and a proxy takes, as it was measured."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from catchment.host.given_numbers import as_real, as_whole, is_real, is_whole
from catchment.host.proxy.errors import ProxyError

_MOST = 1 << 60
"""Bytes: nobody measures more."""


@dataclass(frozen=True, slots=True)
class LinkCurve:
    """Seconds of a transfer by its bytes: linear between measured points, and beyond them as at their ends.

    Attributes:
        points: (bytes, seconds), ascending in bytes, at least two.
    """

    points: tuple[tuple[int, float], ...]

    def __post_init__(self) -> None:
        if not isinstance(self.points, tuple | list) or any(not _is_pair(point) for point in self.points):
            raise ProxyError(f"a link measured at {self.points!r:.80}: give pairs of bytes and seconds")
        sizes = [size for size, _ in self.points]
        if not all(as_whole(size) is not None for size in sizes):
            raise ProxyError(f"a link measured at {sizes} bytes: give whole numbers")
        if len(sizes) < 2 or sizes != sorted(set(sizes)) or sizes[0] < 1:
            raise ProxyError(f"a link measured at {sizes} bytes: two sizes or more, ascending, from 1 on")
        if sizes[-1] > _MOST:
            raise ProxyError(f"a link measured at {sizes[-1]} bytes: at most {_MOST}")
        if not all(is_real(seconds) and seconds > 0 for _, seconds in self.points):
            raise ProxyError(f"a link measured at {[s for _, s in self.points]} seconds: positive numbers")
        # What is computed with narrow integers of numpy would wrap around.
        points = tuple((as_whole(size), as_real(seconds)) for size, seconds in self.points)
        object.__setattr__(self, "points", points)

    @classmethod
    def of(cls, measured: Mapping[int, float]) -> Self:
        """The curve of bytes -> seconds.

        Raises:
            ProxyError: as the curve by its points.
        """
        if not isinstance(measured, Mapping):
            raise ProxyError(f"a link measured as {measured!r:.80}: give bytes -> seconds")
        if not all(is_whole(size, 1) for size in measured):
            raise ProxyError(f"a link measured at {list(measured)} bytes: give whole numbers")
        return cls(tuple(sorted(measured.items())))

    @classmethod
    def linear(cls, latency: float, rate: float, sizes: tuple[int, ...] = (1 << 6, 1 << 26)) -> Self:
        """Latency in seconds and rate in bytes per second, without measuring.

        Raises:
            ProxyError: the latency is negative, the rate not positive, or either is no number.
        """
        if not (is_real(latency) and is_real(rate) and latency >= 0 and rate > 0):
            raise ProxyError(
                f"a link of {latency!r} s and {rate!r} bytes per second: give seconds from 0 on, and more than 0 bytes"
            )
        if not isinstance(sizes, tuple | list) or not all(is_whole(size, 1, _MOST) for size in sizes):
            raise ProxyError(f"a link of {sizes!r:.80} bytes: give whole numbers")
        return cls(tuple((int(size), float(latency) + int(size) / float(rate)) for size in sizes))

    def seconds(self, size: float) -> float:
        """What `size` bytes take; never less than nothing."""
        at = min(max(bisect_right(self.points, (size, math.inf)), 1), len(self.points) - 1)
        (x0, t0), (x1, t1) = self.points[at - 1], self.points[at]
        return max(0.0, t0 + (t1 - t0) * (size - x0) / (x1 - x0))

    @property
    def latency(self) -> float:
        """Seconds of the smallest transfer that was measured."""
        return self.points[0][1]

    @property
    def rate(self) -> float:
        """Bytes per second of the fastest transfer that was measured."""
        return max(size / seconds for size, seconds in self.points)


def _is_pair(point: Any) -> bool:
    return isinstance(point, tuple | list) and len(point) == 2
