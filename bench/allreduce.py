"""`make bench-allreduce`: all_reduce of fp32 through the switch beside others on the same machine, taking turns.

The same number of ranks in one run: ours on shared-memory ports of one switch, whose program the ranks run themselves
unless CATCHMENT_IN_CALLERS=0, and over UDP through a switch in Mininet
(needs root; left out, and said, otherwise); beside both torch's gloo over loopback TCP, and beside shared memory Open
MPI's `MPI.Allreduce` (left out, and said, where it is not installed) and the least time by this machine's own copy
bandwidth (memory_bound.py).  Ours and gloo's are `dist.all_reduce` of the same tensors in the same loop, and only the
backend's name differs; `--api communicator` drives ours without torch.distributed, as MPI is.  Block scaling, the
default.  The time of an operation is the median over all operations of all ranks in the turn whose ratio is the median
of all turns'; the algorithm's bandwidth is the array's bytes by that time.  All have passed two windows' vectors before
anything is measured: the first ones touch memory that nobody has touched.  A point takes `--seconds`, or three turns
where those are longer: a whole run is a matter of ten minutes, of twenty-five at most.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Literal

import typer

from bench.allreduce_plot import plot
from bench.allreduce_ranks import Ranks, Way, gloo, open_mpi, shared_memory, udp, without_open_mpi
from bench.memory_bound import least_seconds, own_passes, shared_passes
from bench.processors import round_trip
from bench.report import RESULTS, Figure, publish
from catchment.program import one_of, run_program
from catchment.sim.lab.local_switch import LANES, SLOTS

KIB, MIB = 1 << 10, 1 << 20
RANKS, WAYS = [2, 4, 8], ["shared-memory", "udp"]
SIZES = [KIB << shift for shift in range(0, 17, 2)]
WINDOW = 4 * LANES * SLOTS
SMALL, LARGE = 64 * KIB, MIB
LATENCY_GOAL, BANDWIDTH_GOAL, LOSS_GOAL = 5.0, 1.0, 0.7
GLOO, OPEN_MPI, BOUND = "gloo", "Open MPI", "the least passes"
OPEN_MPI_GOALS = {2: (1 / 3, 1 / 1.5, 1.0), 4: (1 / 2, 1 / 1.2, 1.0)}
"""Ratios by ranks: up to SMALL, below 16 MiB, from there on."""
LOSS = 0.01
LOSS_TURNS, LOSS_ROUNDS = 60, 5
LEAST_TURNS = 3

Seconds = Callable[[int, int], float]
"""The time of one all-reduce: of bytes and rounds."""


@dataclass(frozen=True, slots=True)
class Point:
    """Median seconds of one operation, ours and a peer's, of one turn."""

    way: str
    peer: str
    ranks: int
    bytes: int
    seconds: float
    other: float

    @property
    def ratio(self) -> float:
        """The peer's time over ours; ours is the faster one above 1."""
        return self.other / self.seconds

    def figure(self) -> Figure:
        """Operations or bytes per second, so that a ratio above 1 is better."""
        name = f"{self.ranks} ranks, {self.way}, {_size(self.bytes)}"
        if self.bytes <= SMALL:
            return Figure(name, 1 / self.seconds, "1/s", self.peer, 1 / self.other, self.goal())
        return Figure(
            name, self.bytes / self.seconds / 1e9, "GB/s", self.peer, self.bytes / self.other / 1e9, self.goal()
        )

    def goal(self) -> float | None:
        """The ratio that is aimed for."""
        if self.peer == OPEN_MPI:
            small, middle, large = OPEN_MPI_GOALS.get(self.ranks, (None, None, None))
            return small if self.bytes <= SMALL else middle if self.bytes < 16 * MIB else large
        if self.peer != GLOO:
            return None
        if self.bytes <= SMALL:
            return LATENCY_GOAL
        return BANDWIDTH_GOAL if self.bytes >= LARGE and self.way == "shared memory" else None


def measure(
    way: str, ours: Ranks, peers: dict[str, Seconds], *, sizes: Sequence[int], turns: int, seconds: float
) -> list[Point]:
    """All of them, in turns."""
    points = []
    ranks = ours.count
    for seconds_of in (ours.seconds, *(time_of for peer, time_of in peers.items() if peer != BOUND)):
        seconds_of(KIB, 2 * SLOTS)
    for size in sizes:
        rounds = max(1, min(40, 16 * MIB // size))
        # What memory could do says nothing about an operation that is over before it matters.
        beside = {peer: time_of for peer, time_of in peers.items() if peer != BOUND or size >= LARGE}
        pairs: dict[str, list[tuple[float, float]]] = {peer: [] for peer in beside}
        trips: list[float] = []
        begun = time.monotonic()
        for turn in range(turns):
            if turn >= LEAST_TURNS and time.monotonic() - begun >= seconds:
                break
            trips.append(round_trip())
            others = {peer: time_of(size, max(1, rounds // 2)) for peer, time_of in beside.items()}
            mine = ours.seconds(size, rounds)
            for peer, other in others.items():
                pairs[peer].append((mine, other))
        for peer, measured in pairs.items():
            # The turn whose ratio is the median: both were measured in the same moment of the machine.
            mine, other = sorted(measured, key=lambda pair: pair[1] / pair[0])[len(measured) // 2]
            point = Point(way, peer, ranks, size, mine, other)
            points.append(point)
            print(
                f"{ranks} ranks, {way}, {_size(size)}: {mine * 1e6:,.0f} us, {peer} {other * 1e6:,.0f} us, "
                f"ratio {point.ratio:.2f} (a word there and back {min(trips) * 1e9:.0f} to {max(trips) * 1e9:.0f} ns)",
                flush=True,
            )
    return points


def loss_figure(way: str, ways: dict[str, Way], ranks: int, size: int, api: str) -> Figure:
    """What 1% of loss leaves of the goodput: the same ranks, with and without it in turns of a few operations.

    All bytes by all time, as a training job pays it: timeouts count as often as they happen.
    """
    took = {0.0: 0.0, LOSS: 0.0}
    with ways[way](ranks, api) as members:
        assert members.lose is not None
        members.seconds(size, LOSS_ROUNDS)
        for turn in range(LOSS_TURNS):
            for loss in sorted(took, reverse=turn % 2 == 1):  # there and back: neither comes always first
                members.lose(loss)
                # An operation takes as long as its slowest rank.
                took[loss] += sum(max(times) for times in zip(*members.times(size, LOSS_ROUNDS), strict=True))
    whole, left = (LOSS_TURNS * LOSS_ROUNDS * size / time / 1e9 for time in took.values())
    name = f"{ranks} ranks, {way}, {_size(size)}, {LOSS:.0%} of frames lost"
    return Figure(name, left, "GB/s", "without loss", whole, LOSS_GOAL)


def _bound(ranks: int, size: int, _rounds: int) -> float:
    return least_seconds(ranks, size, WINDOW)


def _size(size: int) -> str:
    return f"{size // MIB} MiB" if size >= MIB else f"{size // KIB} KiB"


def main(
    *,
    ranks: Annotated[list[int], typer.Option(help="Number of ranks, repeatable.")] = RANKS,
    sizes: Annotated[list[int], typer.Option(help="Of the array, repeatable.", metavar="BYTES")] = SIZES,
    ways: Annotated[list[str], typer.Option(help="Repeatable.", metavar="|".join(WAYS), callback=one_of(WAYS))] = WAYS,
    api: Annotated[Literal["torch", "communicator"], typer.Option(help="What drives ours.")] = "torch",
    turns: Annotated[int, typer.Option(help="Of each point, ours and the others' one after the other.")] = 9,
    seconds: Annotated[float, typer.Option(help="After which a point gets no more turns.")] = 15.0,
    no_loss: Annotated[bool, typer.Option("--no-loss", help="Leave out the comparison under loss.")] = False,
) -> None:
    """Measure and publish all_reduce through the switch, beside gloo, Open MPI and the bound of memory."""
    opened: dict[str, Way] = {"shared memory": shared_memory} if "shared-memory" in ways else {}
    missing = without_open_mpi()
    notes = [
        f"{os.cpu_count()} cores for the ranks and the switch; {LANES} lanes, at most {SLOTS} slots, block scaling",
        "gloo runs over loopback beside both",
        "ours and gloo's are dist.all_reduce" if api == "torch" else "ours is driven without torch.distributed",
        f"Open MPI is left out: {missing}" if missing else "Open MPI's is MPI.Allreduce of mpi4py, without torch",
        *(f"{BOUND} of {n} ranks are {own_passes(n)} over their arrays, {shared_passes(n)} shared" for n in ranks),
    ]
    if "udp" in ways and os.geteuid() == 0:
        opened["UDP"] = udp
    elif "udp" in ways:
        notes.append("UDP is left out: network namespaces need root")
    points = []
    for count in ranks:
        with ExitStack() as exits:
            networked: dict[str, Seconds] = {GLOO: exits.enter_context(gloo(count)).seconds}
            local = dict(networked)
            if not missing:
                local[OPEN_MPI] = exits.enter_context(open_mpi(count)).seconds
            local[BOUND] = partial(_bound, count)
            for way, open_ranks in opened.items():
                peers = local if way == "shared memory" else networked
                with open_ranks(count, api) as ours:
                    points += measure(way, ours, peers, sizes=sizes, turns=turns, seconds=seconds)
    figures = [point.figure() for point in points]
    if not no_loss:
        figures += [loss_figure(way, opened, 2, 4 * MIB, api) for way in opened]
    publish("allreduce", figures, notes)
    plot([(p.way, p.ranks, p.bytes, p.ratio) for p in points if p.peer == GLOO], RESULTS / "allreduce.svg")


if __name__ == "__main__":
    run_program(main)
