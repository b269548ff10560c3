"""COARSE's decisions, held to what links do: the cut of dual synchronization, and where tensors go.

Every cut of a model is run: backward is a sleep for each layer; the layers behind the cut go through the switch as
they are complete, those before it around a ring of the workers when backward has ended. The plan is made from two runs
alone, all by the one and all by the other, and its step is compared with the best that any cut took.

The routing of COARSE's Figures 8 and 15: a client with a near proxy and a far one, whose links have the rates that the
paper gives for three machines, a thousandth of them. The links are measured as `catchment proxy profile` does.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import chain
from statistics import median

import numpy as np

from bench.coarse_sums import LANES, RingCable, limit
from bench.report import Figure
from catchment.host.proxy import DualCosts, LinkCurve, dual_plan, route
from catchment.host.proxy.profile import answer, measure
from catchment.host.proxy.ring import ENTRY_BYTES, ring_sum
from catchment.host.proxy.synchronize import SwitchSynchronizer
from catchment.sim.lab.shm_lab import ShmLab

WORKERS, LAYERS, ENTRIES, SLOTS = 2, 8, 256, 64
SEGMENT = ENTRIES * ENTRY_BYTES // 4
ELEMENTS = 2 * WORKERS * SEGMENT
"""Elements of a layer: whole chunks of the ring."""
RING, SWITCH = 10_000_000, 6_000_000
"""Bits per second of a worker's link in the ring, and to the switch."""
BACKWARD = 0.04
"""Seconds of a layer's backward."""
ROUNDS = 5

MACHINES = {"V100": (9, 16, True), "P100": (25, 18, False), "T4": (12, 12, False)}
"""Gb/s of the near link and of the far one, of which Mb/s are used here; whether large tensors go far."""
NEAR_DELAY, FAR_DELAY = 1, 8
"""Milliseconds each way."""
SIZES = tuple(1 << bits for bits in range(10, 19, 2))
WITHIN = 0.1


class _Workers:
    """The workers of a small training, with a ring and a job of all."""

    def __init__(self, exits: ExitStack) -> None:
        names = [[f"{kind}{at}" for at in range(WORKERS)] for kind in ("out", "into", "peer")]
        limits = [limit(1 + at, "in", rate=RING) for at in range(WORKERS)]
        limits += [limit(1 + WORKERS + at, "out", rate=RING) for at in range(WORKERS)]
        limits += [limit(1 + 2 * WORKERS + at, "in", "out", rate=SWITCH) for at in range(WORKERS)]
        hosts = [name for own in names for name in own]
        lab = exits.enter_context(ShmLab(hosts, lanes=LANES, slots=SLOTS * (WORKERS + 1), extra=tuple(chain(*limits))))
        onward, before = [], []
        for at in range(WORKERS):
            job = lab.luwu([names[0][at]], root=names[1][at], slots=SLOTS, name=f"ring{at}")
            onward.append(exits.enter_context(lab.endpoint(job, names[0][at], timeout=60.0)))
            before.append(exits.enter_context(lab.endpoint(job, names[1][at], timeout=60.0)))
        self._cables = [RingCable(onward[at], before[at - 1], SEGMENT) for at in range(WORKERS)]
        job = lab.allreduce(names[2], slots=SLOTS, name="switch")
        self._switch = [
            SwitchSynchronizer(exits.enter_context(lab.endpoint(job, name, timeout=60.0))) for name in names[2]
        ]
        self._threads = exits.enter_context(ThreadPoolExecutor(WORKERS))
        self._together = threading.Barrier(WORKERS)

    def step(self, first: int, backward: float) -> float:
        """Seconds until every gradient is summed; layers from `first` on by the switch."""
        data = np.random.default_rng(first).integers(-1000, 1000, (WORKERS, LAYERS, ELEMENTS), np.int32)
        total = data.sum(0, dtype=np.int32)

        def work(at: int) -> float:
            self._together.wait()
            began, under_way = time.perf_counter(), []
            for layer in reversed(range(LAYERS)):
                time.sleep(backward)
                if layer >= first:
                    under_way.append(self._switch[at].begin(data[at, layer]))
            for layer in reversed(range(first)):
                ring_sum(data[at, layer], at, WORKERS, self._cables[at], entries=ENTRIES)
            for finish in under_way:
                finish()
            return time.perf_counter() - began

        seconds = max(self._threads.map(work, range(WORKERS)))
        if not (data == total).all():
            raise RuntimeError("the sum is wrong")
        return seconds


def dual_figures() -> tuple[list[Figure], list[str]]:
    """The step of the planned cut beside the best of all cuts."""
    size = 4 * ELEMENTS
    with ExitStack() as exits:
        workers = _Workers(exits)
        workers.step(LAYERS // 2, 0.0)  # timers know the way
        alone = [median(workers.step(first, 0.0) for _ in range(3)) for first in (LAYERS, 0)]
        share = 2 * (WORKERS - 1) / WORKERS
        costs = DualCosts(
            0.0, LAYERS * BACKWARD, WORKERS, share * LAYERS * size / alone[0], float("inf"), LAYERS * size / alone[1]
        )
        plan = dual_plan([size] * LAYERS, costs)
        taken: list[list[float]] = [[] for _ in range(LAYERS + 1)]
        for _ in range(ROUNDS):
            for first in range(LAYERS + 1):
                taken[first].append(workers.step(first, BACKWARD))
    steps = [median(each) for each in taken]
    rows = [
        Figure("dual plan: its step", 1e3 * steps[plan.first], "ms", "best cut", 1e3 * min(steps), 1.03),
        Figure("dual plan: its step", 1e3 * steps[plan.first], "ms", "all by workers", 1e3 * steps[LAYERS]),
        Figure("dual plan: its step", 1e3 * steps[plan.first], "ms", "as it says", 1e3 * plan.seconds),
    ]
    shown = ", ".join(f"{1e3 * each:.0f}" for each in steps)
    return rows, [f"Dual plan: layers from {plan.first} of {LAYERS} on by the switch; a step of each cut: {shown} ms."]


def _curve(rate: int, delay: int) -> LinkCurve:
    """A client's link to a proxy of so many Mb/s and milliseconds, measured."""
    words = f"rate={1000 * rate}kbit,queue=1m,delay={delay}ms"
    fault = ("--fault", "1:" + ",".join(f"{way}.{word}" for way in ("in", "out") for word in words.split(",")))
    with ShmLab(["client", "proxy"], lanes=LANES, slots=SLOTS, extra=fault) as lab, ExitStack() as exits:
        job = lab.luwu(["client"], root="proxy", slots=SLOTS)
        client, proxy = (exits.enter_context(lab.endpoint(job, host, timeout=60.0)) for host in ("client", "proxy"))
        answering = threading.Thread(target=answer, args=(proxy, SIZES, 3))
        answering.start()
        found = measure(client, SIZES, 3)
        answering.join()
        return found


def routing_figures() -> tuple[list[Figure], list[str]]:
    """How many of the three decisions are the paper's, and where large begins."""
    right, rows, notes = 0, [], []
    for name, (near, far, goes_far) in MACHINES.items():
        routing = route({"near": _curve(near, NEAR_DELAY), "far": _curve(far, FAR_DELAY)}, within=WITHIN)
        chosen = routing.proxy(SIZES[0]), routing.proxy(SIZES[-1])
        right += chosen == ("near", "far" if goes_far else "near")
        if goes_far:
            wanted = 2 * (FAR_DELAY - NEAR_DELAY) * 1e-3 / (8e-6 / near - 8e-6 / far)
            rows.append(Figure(f"{name}: tensors from here on go far", routing.threshold, "bytes", "set links", wanted))
        notes.append(f"{name}, near {near} and far {far} Mb/s: {routing.reason}.")
    return [
        Figure("routing: decisions as in Figures 8 and 15", right, "", "machines", len(MACHINES), 1.0),
        *rows,
    ], notes


def figures() -> tuple[list[Figure], list[str]]:
    """The rows of `make bench-coarse`, and notes."""
    parts: Sequence[tuple[list[Figure], list[str]]] = (dual_figures(), routing_figures())
    return [row for rows, _ in parts for row in rows], [note for _, notes in parts for note in notes]


def main() -> None:
    """Print the rows alone."""
    from bench.report import publish  # noqa: PLC0415

    publish("bench-coarse-plans", *figures())


if __name__ == "__main__":
    main()
