"""Which shard a group of sync cores does next: the leader's part of the protocol (COARSE, III-F, corrected).

Each proxy says READY when all parts of a shard that its clients push to it have come. When all proxies are ready the
leader says GO to all of them, with the group's own count, and they run GOs in the order of these counts. So no core
waits for data while it holds a group, and nothing can get stuck, whatever order clients push in.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

from catchment.host.proxy.errors import ProxyError


@dataclass(frozen=True, slots=True, order=True)
class Go:
    """The group's `number`-th shard; `flags`: all that any proxy said of it."""

    number: int
    shard: int
    step: int
    flags: int


class Leader:
    """The leader of one group. Not for use by two threads at once."""

    def __init__(self, proxies: int, window: int) -> None:
        """`window`: GOs that may be under way; the rest waits, so that what is ready and more urgent overtakes it."""
        self._proxies = proxies
        self._window = window
        self._ready: dict[tuple[int, int], tuple[set[int], int]] = {}
        self._waiting: list[tuple[int, int, int]] = []
        self._said = 0
        self._done = 0

    def ready(self, proxy: int, shard: int, step: int, flags: int = 0) -> list[Go]:
        """A proxy has all parts; gives the GOs to say now.

        Raises:
            ProxyError: it said so before.
        """
        who, merged = self._ready.setdefault((step, shard), (set(), 0))
        if proxy in who:
            raise ProxyError(f"proxy {proxy} is ready twice for shard {shard} of step {step}")
        who.add(proxy)
        self._ready[step, shard] = (who, merged | flags)
        if len(who) == self._proxies:
            del self._ready[step, shard]
            heapq.heappush(self._waiting, (step, shard, merged | flags))  # earlier steps, then earlier layers
        return self._next()

    def done(self) -> list[Go]:
        """The leader's own core has finished one; gives the GOs to say now."""
        self._done += 1
        return self._next()

    def _next(self) -> list[Go]:
        said = []
        while self._waiting and self._said - self._done < self._window:
            step, shard, flags = heapq.heappop(self._waiting)
            said.append(Go(self._said, shard, step, flags))
            self._said += 1
        return said
