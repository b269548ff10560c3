"""`make bench-trees`: an all-reduce of 16 ranks in 4 racks below a spine, beside the same one on one switch.

Ranks are threads of this process; they and the switches are joined by shared memory. Once each host's NIC keeps to a
rate low enough that the machine is no bound, as a network has it, and a rack's link to the spine to that of its hosts
together; once (`--rate 0`) nothing has a rate, and two processors run five switches in place of one. A note says of
each row how busy lines and processors were. The exponent is that of the whole operation (`Whole`): after each turn the
sums of both are compared bit for bit. Turns alternate; the figure is the median time on the tree by that on one switch.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray

from bench.processors import Busy
from bench.report import Figure, publish
from catchment.controlplane.topology import Topology, racks, star
from catchment.host.collectives import Communicator, Whole
from catchment.program import run_program
from catchment.sim.lab.shm_lab import LUWU
from catchment.sim.lab.tree_lab import TreeLab

RACKS, PER_RACK = 4, 4
HOSTS = [f"w{rank}" for rank in range(RACKS * PER_RACK)]
LANES, SLOTS = 256, 64
SIZES = (1 << 10, 1 << 14, 1 << 18)
RATES = [10, 0]
GOAL = 1.3
PATIENCE = 120.0
MBIT = 10**6
NETWORKS = ("one", "tree")
Arrays = Sequence[NDArray[np.float32]]


@dataclass(slots=True)
class Times:
    """Seconds of all-reduces of one size on one network, bits that a rank sent, how busy the processors were."""

    took: list[float] = field(default_factory=list)
    sent: int = 0
    busy: Busy = field(default_factory=Busy)

    def used(self, rate: int) -> str:
        """How busy the processors were, and each rank's line of `rate` bits per second."""
        line = f"{self.sent / sum(self.took) / rate:.0%}" if rate else "of no rate"
        return f"lines {line}, processors {self.busy.share:.0%}"


def networks(rate: int) -> dict[str, Topology]:
    """The hosts on one switch, and in racks; NICs of `rate` bits per second, links of as much as a rack's NICs."""
    groups = [HOSTS[at : at + PER_RACK] for at in range(0, len(HOSTS), PER_RACK)]
    topologies = (star(HOSTS, program=LUWU, lanes=LANES), racks(groups, program=LUWU, lanes=LANES))
    return {
        name: replace(
            topology,
            hosts={host: replace(nic, rate=rate) for host, nic in topology.hosts.items()},
            links=tuple(replace(link, rate=PER_RACK * rate) for link in topology.links),
        )
        for name, topology in zip(NETWORKS, topologies, strict=True)
    }


def all_reduce(pool: ThreadPoolExecutor, ranks: Sequence[Communicator], arrays: Arrays) -> tuple[float, bytes]:
    """Seconds until every rank has the sum, and its bits, which are the same on all ranks.

    Raises:
        SystemExit: the ranks have different bits.
    """
    sums = [array.copy() for array in arrays]
    began = time.perf_counter()
    for done in [
        pool.submit(lambda rank, own: rank.all_reduce(own).wait(PATIENCE), rank, own)
        for rank, own in zip(ranks, sums, strict=True)
    ]:
        done.result()
    took = time.perf_counter() - began
    bits = {own.tobytes() for own in sums}
    if len(bits) != 1:
        raise SystemExit("the ranks have different sums")
    return took, bits.pop()


@contextmanager
def opened(rate: int) -> Iterator[Mapping[str, Sequence[Communicator]]]:
    """The ranks on each network."""
    with ExitStack() as exits:
        ranks = {}
        for name, topology in networks(rate).items():
            lab = exits.enter_context(TreeLab(topology))
            job = lab.allreduce(HOSTS, slots=SLOTS)
            ranks[name] = [
                exits.enter_context(lab.communicator(job, host, timeout=PATIENCE, scaling=Whole())) for host in HOSTS
            ]
        yield ranks


def measured(rate: int, turns: int, seed: int) -> tuple[list[Figure], list[str]]:
    """A figure for each size, and what was busy, with NICs of `rate` bits per second.

    Raises:
        SystemExit: the sums of a turn have different bits.
    """
    numbers = np.random.default_rng(seed)
    limit = f"{rate // MBIT} Mb/s" if rate else "no rate"
    figures, notes = [], []
    with ThreadPoolExecutor(len(HOSTS)) as pool, opened(rate) as ranks:
        for size in SIZES:
            times = {name: Times() for name in NETWORKS}
            for turn in range(turns + 1):  # the first fills caches
                arrays = [numbers.normal(size=size).astype(np.float32) for _ in HOSTS]
                sums = {}
                for name in NETWORKS if turn % 2 else reversed(NETWORKS):
                    before = ranks[name][0].stats()["bytes_sent"]
                    with times[name].busy if turn else nullcontext():
                        took, sums[name] = all_reduce(pool, ranks[name], arrays)
                    if turn:
                        times[name].took.append(took)
                        times[name].sent += 8 * (ranks[name][0].stats()["bytes_sent"] - before)
                if sums["one"] != sums["tree"]:
                    raise SystemExit(f"{size} elements: the sums of the tree are not those of one switch")
            one, tree = (1e3 * median(times[name].took) for name in NETWORKS)
            row = f"{size * 4 >> 10} KiB, {limit}"
            figures.append(Figure(row, tree, "ms", "one switch", one, GOAL))
            said = "; ".join(f"{name}: {times[name].used(rate)}" for name in NETWORKS)
            notes.append(f"{row}: {said}.")
    return figures, notes


def trees(
    *,
    rate: Annotated[list[int] | None, typer.Option(help="Of each NIC, in Mb/s; 0: none; repeat for several.")] = None,
    turns: Annotated[int, typer.Option(help="All-reduces of each size on each network.", min=1)] = 15,
    seed: Annotated[int, typer.Option(help="Of the data.")] = 1,
) -> None:
    """Measure and report."""
    figures, notes = [], [f"{len(HOSTS)} ranks in {RACKS} racks; bits equal in every turn."]
    for each in RATES if rate is None else rate:
        found, said = measured(each * MBIT, turns, seed)
        figures += found
        notes += said
    publish("bench-trees", figures, notes)


if __name__ == "__main__":
    run_program(trees)
