"""`make bench-trees`: an all-reduce of 16 ranks in 4 racks below a spine, beside the same one on one switch.

Ranks are threads of this process on shared memory; between the switches is UDP. Each host's port keeps to a rate low
enough that the machine is no bound, as a network has it; the links between switches carry no more than one host does.
The exponent is that of the whole operation (`Whole`): after each turn the sums of both are compared bit for bit. Turns
alternate; the figure is the median time on the tree by that on one switch.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from statistics import median
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray

from bench.report import Figure, publish
from catchment.controlplane.topology import racks, star
from catchment.host.collectives import Communicator, Whole
from catchment.program import run_program
from catchment.sim.lab.shm_lab import LUWU
from catchment.sim.lab.tree_lab import TreeLab

RACKS, PER_RACK = 4, 4
HOSTS = [f"w{rank}" for rank in range(RACKS * PER_RACK)]
LANES, SLOTS = 256, 64
SIZES = (1 << 10, 1 << 14, 1 << 18)
GOAL = 1.3
PATIENCE = 120.0
Arrays = Sequence[NDArray[np.float32]]


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


def trees(
    *,
    rate: Annotated[int, typer.Option(help="Of each host's port, in Mb/s.", min=1)] = 20,
    turns: Annotated[int, typer.Option(help="All-reduces of each size on each network.", min=1)] = 15,
    seed: Annotated[int, typer.Option(help="Of the data.")] = 1,
) -> None:
    """Measure and report."""
    numbers = np.random.default_rng(seed)
    topologies = {
        "one": star(HOSTS, program=LUWU, lanes=LANES),
        "tree": racks([HOSTS[at : at + PER_RACK] for at in range(0, len(HOSTS), PER_RACK)], program=LUWU, lanes=LANES),
    }
    times: dict[tuple[str, int], list[float]] = {}
    with ExitStack() as exits:
        pool = exits.enter_context(ThreadPoolExecutor(len(HOSTS)))
        ranks = {}
        for name, topology in topologies.items():
            lab = exits.enter_context(TreeLab(topology, host_faults=f"rate={rate}mbit,queue=1m"))
            job = lab.allreduce(HOSTS, slots=SLOTS)
            ranks[name] = [
                exits.enter_context(lab.communicator(job, host, timeout=PATIENCE, scaling=Whole())) for host in HOSTS
            ]
        for size in SIZES:
            for turn in range(turns + 1):  # the first fills caches
                arrays = [numbers.normal(size=size).astype(np.float32) for _ in HOSTS]
                sums = {}
                for name in ("one", "tree") if turn % 2 else ("tree", "one"):
                    took, sums[name] = all_reduce(pool, ranks[name], arrays)
                    if turn:
                        times.setdefault((name, size), []).append(took)
                if sums["one"] != sums["tree"]:
                    raise SystemExit(f"{size} elements: the sums of the tree are not those of one switch")
    figures = [
        Figure(
            f"{size * 4 >> 10} KiB, {RACKS} racks of {PER_RACK}",
            1e3 * median(times["tree", size]), "ms", "one switch", 1e3 * median(times["one", size]), GOAL,
        )
        for size in SIZES
    ]  # fmt: skip
    load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
    publish("bench-trees", figures, [f"{rate} Mb/s a host; bits equal in every turn; load of the machine {load}."])


if __name__ == "__main__":
    run_program(trees)
