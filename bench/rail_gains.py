"""What several rails gain over the best of them, and what a set of rails costs where one would do.

A gain is the median time of an all-reduce over the best rail alone (policy `single`) by that over all rails, in turns
that alternate.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.report import Figure
from bench.slow_links import slow_down
from catchment.host.collectives import Communicator, RailPolicy, RailSet
from catchment.sim.lab.rail_lab import RailLab, deployed

HOSTS = [f"w{rank}" for rank in range(4)]
MBIT, KIB, MIB = 10**6, 1 << 10, 1 << 20
LARGE = 4 * MIB
SMALL = tuple(KIB << shift for shift in range(1, 7))
SMALL_GOAL, ALONE_GOAL = 0.97, 0.97
ROUNDS = 20
"""Short operations of a turn."""
OPERATIONS = 100
"""Operations within which the table is to be settled."""
NEAR = 0.1
"""How far from the last ones shares are that count as settled."""
SLEEP = 0.05
PATIENCE = 120.0
LANES, SLOTS = 256, 32


@dataclass(frozen=True, slots=True)
class Setting:
    """Rails by nominal rate, what each carries at best beside the first, and the gain that is aimed for.

    Attributes:
        name: of the row.
        rates: bits per second.
        goal: of the gain over the best rail.
        ring: a rail that is a ring of TCP connections; its links have the rate.
        over_fixed: the gain over a split by nominal rates that is aimed for.
    """

    name: str
    rates: Mapping[str, int]
    goal: float
    ring: str = ""
    over_fixed: float | None = None

    def carries(self, rail: str) -> float:
        """Bits per second of an all-reduce over a rail alone: a ring sends an array 2 (N - 1)/N times."""
        ranks = len(HOSTS)
        return self.rates[rail] / (2 * (ranks - 1) / ranks if rail == self.ring else 1)

    @property
    def ideal(self) -> float:
        """The gain without any cost."""
        carried = [self.carries(rail) for rail in self.rates]
        return sum(carried) / max(carried)


def settings(scale: int) -> dict[str, Setting]:
    """The rows of gains by name, their rates divided by `scale`."""
    fast, middle, slow = (rate * MBIT // scale for rate in (400, 200, 100))
    return {
        "equal": Setting("2 equal rails", {"a": middle, "b": middle}, 1.86),
        "uneven": Setting("rails 4 : 1", {"a": fast, "b": slow}, 1.17),
        "three": Setting("rails 4 : 2 : 1", {"a": fast, "b": middle, "c": slow}, 1.62),
        "ring": Setting("switch and TCP ring", {"a": middle, "t": middle}, 1.52, "t", 1.14),
    }


def everywhere(ranks: Sequence[Communicator], body: Callable[[Communicator], None]) -> float:
    """Seconds until `body` is done on all ranks at once, each in a thread; the first error of any of them is raised."""
    failed: list[Exception] = []

    def run(rank: Communicator) -> None:
        try:
            body(rank)
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(rank,)) for rank in ranks]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]
    return time.perf_counter() - began


def timed(ranks: Sequence[Communicator], size: int, rounds: int = 1, late: Callable[[], None] | None = None) -> float:
    """Seconds of an all-reduce of `size` bytes, all `rounds` by their number; `late` before each of one rank's."""

    def body(rank: Communicator) -> None:
        array: NDArray[np.float32] = np.ones(size // 4, np.float32)
        for _ in range(rounds):
            if late is not None and rank is ranks[0]:
                late()
            rank.all_reduce(array, op="mean").wait()

    return everywhere(ranks, body) / rounds


@contextmanager
def opened(setting: Setting, policies: Sequence[RailPolicy]) -> Iterator[dict[RailPolicy, list[RailSet]]]:
    """Ranks over the same rails for each policy."""
    switches = {rail: rate for rail, rate in setting.rates.items() if rail != setting.ring}
    with ExitStack() as exits:
        lab = exits.enter_context(RailLab(HOSTS, switches, lanes=LANES, slots=SLOTS))
        sets = {}
        for policy in policies:
            rate = setting.rates.get(setting.ring, 0)
            rings = {setting.ring: {"lanes": LANES, "rate": rate}} if setting.ring else None
            told = exits.enter_context(deployed(lab.labs, HOSTS, list(switches.values()), slots=SLOTS, rings=rings))
            slow_down(exits, told, setting.ring, rate)
            sets[policy] = [
                exits.enter_context(RailSet.of_job(told[host], policy=policy, timeout=PATIENCE)) for host in HOSTS
            ]
        yield sets


def share_of(ranks: RailSet, rail: int) -> float:
    """The share of a large operation that a rail would carry now."""
    elements = LARGE // 4
    return sum(share.elements for share in ranks.shares(elements) if share.rail == rail) / elements


def gains(setting: Setting, turns: int) -> tuple[list[Figure], list[str]]:
    """The gain of each policy over the best rail, and after how many operations the table was settled."""
    policies = (RailPolicy.SINGLE, RailPolicy.WATERFILL, RailPolicy.FIXED, RailPolicy.SLICES)
    best = max(setting.rates, key=setting.carries)
    ideal = [setting.carries(rail) / sum(map(setting.carries, setting.rates)) for rail in setting.rates]
    times: dict[RailPolicy, list[float]] = {policy: [] for policy in policies}
    with opened(setting, policies) as sets:
        ours = sets[RailPolicy.WATERFILL]
        seen: list[list[float]] = []
        settling = OPERATIONS - turns
        for turn in range(OPERATIONS):
            for policy in policies if turn >= settling else (RailPolicy.WATERFILL,):
                took = timed(sets[policy], LARGE)
                if turn >= settling:
                    times[policy].append(took)
            seen.append([share_of(ours[0], rail) for rail in range(len(ideal))])
    off = [at for at, row in enumerate(seen) if any(abs(s - e) > NEAR for s, e in zip(row, seen[-1], strict=True))]
    middle = {policy: median(each) for policy, each in times.items()}
    figures = [
        Figure(
            f"{setting.name}, {policy.name.lower()}", 1 / middle[policy], "1/s", f"rail {best} alone",
            1 / middle[RailPolicy.SINGLE], setting.goal if policy is RailPolicy.WATERFILL else None,
        )
        for policy in policies[1:]
    ]  # fmt: skip
    if setting.over_fixed is not None:
        figures.append(
            Figure(f"{setting.name}, waterfill", 1 / middle[RailPolicy.WATERFILL], "1/s", "fixed",
                   1 / middle[RailPolicy.FIXED], setting.over_fixed)
        )  # fmt: skip
    after = off[-1] + 1 if off else 0
    last, best_shares = (" ".join(f"{share:.1%}" for share in shares) for shares in (seen[-1], ideal))
    return figures, [
        f"{setting.name}: ideal gain {setting.ideal:.2f}; shares {last} (ideal {best_shares}), none further than "
        f"{NEAR:.0%} from that after {after} operations (aim: {OPERATIONS})"
    ]


def small(setting: Setting, turns: int) -> list[Figure]:
    """Short operations over all rails beside the best of them."""
    policies = (RailPolicy.SINGLE, RailPolicy.WATERFILL)
    with opened(setting, policies) as sets:
        return [
            beside(
                Row(f"{setting.name}, {size // KIB} KiB", "the best rail", SMALL_GOAL),
                turns,
                partial(timed, sets[RailPolicy.WATERFILL], size, ROUNDS),
                partial(timed, sets[RailPolicy.SINGLE], size, ROUNDS),
            )
            for size in SMALL
        ]


def alone(turns: int) -> list[Figure]:
    """A set of one rail beside a communicator on the same switch, without a limit of rate."""
    with ExitStack() as exits:
        lab = exits.enter_context(RailLab(HOSTS[:2], {"a": 0}, lanes=LANES, slots=SLOTS, limited=False))
        job = lab.labs["a"].allreduce(HOSTS[:2], slots=SLOTS, name="alone")
        ones = [exits.enter_context(lab.labs["a"].communicator(job, host, timeout=PATIENCE)) for host in HOSTS[:2]]
        told = exits.enter_context(deployed(lab.labs, HOSTS[:2], [0], slots=SLOTS))
        sets = [exits.enter_context(RailSet.of_job(told[host], timeout=PATIENCE)) for host in HOSTS[:2]]
        return [
            beside(
                Row(f"a set of one rail, {size // KIB} KiB", "a communicator", ALONE_GOAL),
                2 * turns,
                partial(timed, sets, size, rounds),
                partial(timed, ones, size, rounds),
            )
            for size, rounds in ((4 * KIB, 100), (64 * KIB, 50), (MIB, 8), (4 * MIB, 2))
        ]


@dataclass(frozen=True, slots=True)
class Row:
    """A figure's name, what it is beside, and the ratio that is aimed for."""

    name: str
    other: str
    goal: float


def beside(row: Row, turns: int, ours: Callable[[], float], theirs: Callable[[], float]) -> Figure:
    """Operations per second of both, of the turn whose ratio is the median; who begins alternates."""
    pairs = []
    for turn in range(turns + 1):
        order = (ours, theirs) if turn % 2 else (theirs, ours)
        times = {run: run() for run in order}
        if turn:
            pairs.append((times[ours], times[theirs]))
    mine, their = sorted(pairs, key=lambda pair: pair[1] / pair[0])[len(pairs) // 2]
    return Figure(row.name, 1 / mine, "1/s", row.other, 1 / their, row.goal)


def late(setting: Setting, seed: int) -> Figure:
    """The share of the slowest rail by the ideal one, beside a rank that sleeps at random before each operation."""
    chance = random.Random(seed)
    slowest = min(range(len(setting.rates)), key=lambda at: setting.carries(list(setting.rates)[at]))
    carried: Sequence[Any] = list(map(setting.carries, setting.rates))
    with opened(setting, (RailPolicy.WATERFILL,)) as sets:
        ranks = sets[RailPolicy.WATERFILL]
        timed(ranks, LARGE, OPERATIONS, lambda: time.sleep(chance.uniform(0.0, SLEEP)))
        share = share_of(ranks[0], slowest)
    ideal = carried[slowest] / sum(carried)
    return Figure(
        f"{setting.name}, a rank that sleeps: nearness of the slowest rail's share to the ideal",
        1 - abs(share - ideal) / ideal, "x", "the ideal", 1.0, 1 - NEAR,
    )  # fmt: skip
