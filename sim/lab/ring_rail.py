"""A ring of TCP connections as a rail, for ranks on this machine: what each of them is told of it."""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from typing import Any

from catchment.wire.rail_labels import labels_beside

_FIRST_PORT = 20_000
"""A range below the ports that the kernel gives to others."""
_rings = itertools.count()


def ring_parts(
    rail: str,
    rails: Sequence[str],
    ranks: int,
    *,
    slots: int,
    lanes: int,
    rate: int,
    transport: str = "tcp",
    packed: bool = False,
) -> list[dict[str, dict[str, Any]]]:
    """The parts of a ring, for each rank: its own stream, and what it takes for one of `rails` to fail.

    Each ring has loopback addresses of its own, so that no two meet.

    Args:
        rail: name of the ring.
        rails: names of all rails of the job.
        ranks: of the job.
        slots: of each rail.
        lanes: of each rail.
        rate: nominal, in bits per second.
        transport: ``tcp`` or ``mptcp``.
        packed: its streams may have packed lanes.
    """
    block = (os.getpid() * 64 + next(_rings)) % 65_024
    address = f"127.{1 + block // 256}.{block % 256}"
    parts: list[dict[str, dict[str, Any]]] = [{} for _ in range(ranks)]
    labels: dict[str, int | None] = {rail: slots, **labels_beside(rail, tuple(rails))}
    for number, (label, few) in enumerate(labels.items()):
        stream = {
            "gen": number + 1, "workers": ranks, "lanes": lanes, "slots": few or slots, "base_seq": 0, "packed": packed,
        }  # fmt: skip
        for rank in range(ranks):
            parts[rank][label] = {
                "rail": rail,
                "rate": rate,
                "ring": transport,
                "wid": rank,
                "sums": stream,
                "local": [f"{address}.{rank + 1}", _FIRST_PORT + number],
                "next": [f"{address}.{(rank + 1) % ranks + 1}", _FIRST_PORT + number],
            }
    return parts
