"""Measures what transfers between clients and proxies take (COARSE, III-E). All clients measure together.

A proxy here is the root of a LuWu job: pushes of all its clients meet in the switch and arrive as one, and the answer
is a message from the proxy to all. So what is measured is a training's own way, with all clients on it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from statistics import median

import numpy as np

from catchment.host.layers import TransferPort
from catchment.host.proxy.errors import ProxyError
from catchment.host.proxy.links import LinkCurve

SIZES = tuple(1 << bits for bits in range(10, 23, 2))
"""Bytes: 1 KiB to 4 MiB."""
ROUNDS = 5


def measure(port: TransferPort, sizes: Sequence[int] = SIZES, rounds: int = ROUNDS) -> LinkCurve:
    """A client's side: pushes of each size and their answers; the median of the rounds, after one that warms up.

    Args:
        port: to one proxy, which runs `answer` with the same arguments; so do all other clients.
        sizes: bytes, ascending, multiples of 4.
        rounds: that count for each size.

    Raises:
        ProxyError: sizes that cannot be measured. EndpointError: the proxy or a client is gone.
    """
    _check(sizes, rounds)
    found = {}
    for size in sizes:
        gradients = np.zeros(size // 4, np.float32)
        reply = np.zeros(4, np.uint8)
        seconds = []
        for _ in range(rounds + 1):
            began = time.perf_counter()
            port.push(gradients, exponent=0)
            port.pull(reply).wait()
            seconds.append(time.perf_counter() - began)
        found[size] = median(seconds[1:])
    return LinkCurve.of(found)


def answer(port: TransferPort, sizes: Sequence[int] = SIZES, rounds: int = ROUNDS) -> None:
    """A proxy's side of `measure`; returns when the last answer is acknowledged.

    Raises:
        ProxyError, EndpointError: as `measure`.
    """
    _check(sizes, rounds)
    for size in sizes:
        total = np.zeros(size // 4, np.float32)
        for _ in range(rounds + 1):
            port.pull(total).wait()
            port.push(np.zeros(4, np.uint8)).wait()


def _check(sizes: Sequence[int], rounds: int) -> None:
    if len(sizes) < 2 or list(sizes) != sorted(set(sizes)) or sizes[0] < 4 or any(size % 4 for size in sizes):
        raise ProxyError(f"sizes {list(sizes)}: two or more, ascending, multiples of 4 bytes")
    if rounds < 1:
        raise ProxyError(f"{rounds} rounds: at least one")
