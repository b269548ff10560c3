"""Sums of proxies through the switch beside sums on a ring, over links of one rate, by bytes and by time.

The proxies' own code (`catchment.host.proxy`) on the embedded switch. A proxy's link is full-duplex and has the same
rate in both directions, whichever way the proxies add. On the ring a proxy sends to the next one by a LuWu job of one
worker, whose "sum" is a copy: so both ways have the same frames, and the switch is only a cable to the ring.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain
from statistics import median

import numpy as np

from bench.report import Figure
from catchment.host import Endpoint, Request
from catchment.host.proxy.ring import ENTRY_BYTES, Lanes, ring_sum
from catchment.host.proxy.synchronize import SwitchSynchronizer
from catchment.sim.lab.shm_lab import ShmLab

RATE = 10_000_000
"""Bits per second of a proxy's link, each way: so few that two cores do not bound."""
ELEMENTS = 1 << 18
ENTRIES = 512
"""Entries of a segment: fewer would let the ring wait for its own hops."""
SEGMENT = ENTRIES * ENTRY_BYTES // 4
"""Elements; all segments have so many."""
AHEAD = 2
"""Pulls that a proxy has posted, so that the one before it never waits for credit."""
LANES, SLOTS = 256, 64
ROUNDS = 5


@dataclass(frozen=True, slots=True)
class Sums:
    """Seconds of a sum, and bytes that a proxy sent for it, heads and heartbeats among them."""

    seconds: float
    sent: float


class RingCable:
    """A proxy's place in the ring: an endpoint that sends to the next proxy, and one that receives."""

    def __init__(self, onward: Endpoint, before: Endpoint, elements: int) -> None:
        """`elements`: of every segment."""
        self._onward, self._before, self._elements = onward, before, elements
        self._sent: deque[tuple[Request, Lanes]] = deque()
        self._posted: deque[tuple[Request, Lanes]] = deque()
        for _ in range(AHEAD):
            self._post()

    def send(self, segment: Lanes) -> None:
        """See `RingLink`."""
        copied = segment.copy()
        while self._sent and self._sent[0][0].done():
            self._sent.popleft()
        self._sent.append((self._onward.push(copied), copied))

    def receive(self, segment: Lanes) -> None:
        """See `RingLink`."""
        request, lanes = self._posted.popleft()
        self._post()
        request.wait()
        segment[:] = lanes

    def _post(self) -> None:
        lanes = np.empty(self._elements, np.int32)
        self._posted.append((self._before.pull(lanes), lanes))


def by_ring(proxies: int) -> Sums:
    """Sums on a ring; each proxy's link is a port that sends and one that receives."""
    out, into = [f"out{at}" for at in range(proxies)], [f"in{at}" for at in range(proxies)]
    limits = [limit(1 + at, "in") for at in range(proxies)] + [limit(1 + proxies + at, "out") for at in range(proxies)]
    with (
        ShmLab([*out, *into], lanes=LANES, slots=SLOTS * proxies, extra=tuple(chain(*limits))) as lab,
        ExitStack() as exits,
    ):
        onward, before = [], []
        for at in range(proxies):
            job = lab.luwu([out[at]], root=into[at], slots=SLOTS, name=f"ring{at}")  # into[at] is of the next proxy
            onward.append(exits.enter_context(lab.endpoint(job, out[at], timeout=60.0)))
            before.append(exits.enter_context(lab.endpoint(job, into[at], timeout=60.0)))
        cables = [RingCable(onward[at], before[at - 1], SEGMENT) for at in range(proxies)]

        def work(at: int, array: Lanes) -> None:
            ring_sum(array, at, proxies, cables[at], entries=ENTRIES)

        return _measured(proxies, work, [*onward, *before])


def by_switch(proxies: int) -> Sums:
    """Sums through the switch; each proxy's link is one port."""
    hosts = [f"x{at}" for at in range(proxies)]
    limits = [limit(1 + at, "in", "out") for at in range(proxies)]
    with ShmLab(hosts, lanes=LANES, slots=SLOTS, extra=tuple(chain(*limits))) as lab, ExitStack() as exits:
        job = lab.allreduce(hosts, slots=SLOTS)
        ports = [exits.enter_context(lab.endpoint(job, host, timeout=60.0)) for host in hosts]
        ways = [SwitchSynchronizer(port) for port in ports]
        return _measured(proxies, lambda at, array: ways[at].begin(array)(), ports)


def figures() -> tuple[list[Figure], list[str]]:
    """The rows of `make bench-coarse`, and each round's seconds."""
    rows, notes = [], []
    for proxies in (4, 8):
        rounds = [(by_switch(proxies), by_ring(proxies)) for _ in range(ROUNDS)]
        expected = 2 * (proxies - 1) / proxies
        sent = median(ring.sent / switch.sent for switch, ring in rounds)
        faster = median(ring.seconds / switch.seconds for switch, ring in rounds)
        switched = median(switch.seconds for switch, _ in rounds)
        rows += [
            Figure(f"{proxies} proxies, a ring's bytes beside the switch's", sent, "x", "2(p-1)/p", expected, 1.0),
            Figure(f"{proxies} proxies, a ring's time beside the switch's", faster, "x", "2(p-1)/p", expected, 1.0),
            Figure(
                f"{proxies} proxies, a sum through the switch", 1e3 * switched, "ms", "link", 1e3 * 32 * ELEMENTS / RATE
            ),
        ]
        shown = ", ".join(f"{1e3 * s.seconds:.0f} and {1e3 * r.seconds:.0f}" for s, r in rounds)
        notes.append(f"{proxies} proxies, {4 * ELEMENTS:,} bytes at {RATE / 1e6:g} Mb/s: {shown} ms.")
    return rows, notes


def _measured(proxies: int, work: Callable[[int, Lanes], None], senders: Sequence[Endpoint]) -> Sums:
    numbers = np.random.default_rng(proxies)
    data = numbers.integers(-(2**20), 2**20, (proxies, ELEMENTS), np.int32)
    total = data.sum(0, dtype=np.int32)
    with ThreadPoolExecutor(proxies) as threads:
        list(threads.map(work, range(proxies), data.copy()))  # timers know the way
        before = _sent(senders)
        began = time.perf_counter()
        list(threads.map(work, range(proxies), data))
        seconds = time.perf_counter() - began
    if not (data == total).all():
        raise RuntimeError(f"{proxies} proxies: the sum is wrong")
    return Sums(seconds, (_sent(senders) - before) / proxies)


def _sent(senders: Sequence[Endpoint]) -> int:
    return sum(int(sender.stats()["bytes_sent"]) for sender in senders)


def limit(port: int, *ways: str, rate: int = RATE) -> tuple[str, str]:
    """The option that limits a port's rate in the ways named, `in` or `out`."""
    return "--fault", f"{port}:" + ",".join(f"{way}.rate={rate // 1000}kbit,{way}.queue=1m" for way in ways)
