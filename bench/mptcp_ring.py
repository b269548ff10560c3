"""Several rails beside a ring over the kernel's MPTCP, which spreads each of its connections over links of equal rates.

Both sum the same way but for the rails: the ring is the one that a rail without a switch is, its ranks in namespaces
with a NIC on each rail.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import closing
from statistics import median

from bench.mptcp_hosts import address, missing, mptcp_hosts
from bench.rail_gains import HOSTS, LANES, MBIT, MIB, Setting, opened, timed
from bench.rank_processes import RankProcesses
from bench.report import Figure
from catchment.host.collectives import RailPolicy
from catchment.sim.lab.ring_rail import ring_parts

SIZES = (MIB, 4 * MIB, 16 * MIB)
SETTLED = 20
"""Operations before those that count."""
RING = "t"
RING_SLOTS = 256
"""More than a rail's: TCP's connections take longer than a switch, and fewer vectors would not fill both links."""


def ring_times(rates: Sequence[int], transport: str, turns: int) -> list[float]:
    """Median seconds of an all-reduce of each size on a ring of connections, which have links of all rates."""
    parts = ring_parts(RING, (RING,), len(HOSTS), slots=RING_SLOTS, lanes=LANES, rate=sum(rates), transport=transport)
    for rank, own in enumerate(parts):
        for part in own.values():
            part["local"][0] = "0.0.0.0"  # a further link of a connection comes to another address
            part["next"][0] = address((rank + 1) % len(HOSTS), 0)
    told = [[json.dumps({"job": "mptcp", "parts": own})] for own in parts]
    with (
        mptcp_hosts(len(HOSTS), rates) as places,
        closing(RankProcesses("bench.mptcp_member", told, places)) as ranks,
    ):
        found = []
        for size in SIZES:
            lines = ranks.run([[size, turns + 1]] * len(HOSTS))
            slowest = [max(times) for times in zip(*map(json.loads, lines), strict=True)]
            found.append(median(slowest[1:]))  # the first fills windows
        return found


def rail_times(setting: Setting, turns: int) -> list[float]:
    """The same over all rails, once the shares are settled."""
    with opened(setting, (RailPolicy.WATERFILL,)) as sets:
        ranks = sets[RailPolicy.WATERFILL]
        found = []
        for size in SIZES:
            for _ in range(SETTLED):
                timed(ranks, size)
            found.append(median(timed(ranks, size) for _ in range(turns)))
        return found


def beside_mptcp(setting: Setting, turns: int) -> tuple[list[Figure], list[str]]:
    """A figure for each size, and how much of its links MPTCP used; without figures where this machine has none."""
    if why := missing():
        return [], [f"Kernel MPTCP over the same links: not measured, {why}."]
    rates = list(setting.rates.values())
    ours, theirs = rail_times(setting, turns), ring_times(rates, "mptcp", turns)
    figures = [
        Figure(f"{setting.name}, {size // MIB} MiB", 1 / mine, "1/s", "kernel MPTCP, ring", 1 / other, 1.0)
        for size, mine, other in zip(SIZES, ours, theirs, strict=True)
    ]
    sent = 8 * 2 * (len(HOSTS) - 1) / len(HOSTS) * SIZES[-1] / theirs[-1]
    return figures, [
        f"Kernel MPTCP, ring: {sent / MBIT:.0f} Mb/s of numbers from each rank over links of "
        f"{' + '.join(str(rate // MBIT) for rate in rates)} Mb/s, {SIZES[-1] // MIB} MiB."
    ]
