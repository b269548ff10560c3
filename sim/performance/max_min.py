"""Max-min fair rates of flows that share lines, and how long messages take at them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Rates = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Flow:
    """Bytes through lines, all of them at one rate: a way between two hosts, or a tree in which switches add.

    Attributes:
        lines: their numbers; several flows may share one. A line that is there twice takes the bytes twice.
        size: bytes on each line.
    """

    lines: tuple[int, ...]
    size: float


def fair_rates(flows: Sequence[Flow], capacity: Rates) -> Rates:
    """The max-min fair rates of flows: progressive filling; bytes a second of each.

    Args:
        capacity: of each line, bytes a second.
    """
    users = np.zeros(len(capacity))
    taken = [np.unique(flow.lines, return_counts=True) for flow in flows]
    for lines, times in taken:
        users[lines] += times
    left = capacity.astype(float).copy()
    rates = np.zeros(len(flows))
    waiting = set(range(len(flows)))
    while waiting:
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(users > 0, left / users, np.inf)
        least = share.min()
        full = set(np.flatnonzero(share <= least * (1 + 1e-12)).tolist())
        stopped = [at for at in waiting if not full.isdisjoint(flows[at].lines)]
        for at in stopped:
            rates[at] = least
            lines, times = taken[at]
            left[lines] -= least * times
            users[lines] -= times
        waiting.difference_update(stopped)
    return rates


def completion_time(flows: Sequence[Flow], capacity: Rates) -> float:
    """Seconds until the last of them is through; a flow that is done leaves its rate to the others."""
    left = np.array([flow.size for flow in flows], float)
    running = [at for at in range(len(flows)) if left[at] > 0]
    now = 0.0
    while running:
        rates = fair_rates([flows[at] for at in running], capacity)
        step = float((left[running] / rates).min())
        now += step
        left[running] -= rates * step
        running = [at for at in running if left[at] > 1e-6 * flows[at].size]
    return now
