"""`make bench-coarse`: a step with one, two and three optimizer nodes, each behind a link of 100 Mb/s; sums of proxies.

A chain of square layers with next to no computation, on the embedded switch with ports of shared memory; the ports of
the optimizer nodes keep to their rate in both directions, a worker's do not. One step is bound by the nodes' links, so
R of them should make it R times as fast; where the workers' links have a rate as well, those bound in the end. Every
number of nodes is measured in turn, several times. Then proxies that synchronize among themselves
(`bench.coarse_sums`), and the decisions of dual synchronization and routing (`bench.coarse_plans`).
"""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack
from statistics import median

import torch
from torch import nn

from bench import coarse_plans, coarse_sums
from bench.coarse_sums import limit
from bench.report import Figure, publish
from catchment.host import Endpoint
from catchment.host.layers import Homes, LayerTable
from catchment.host.optimizer import NodeOptions, OptimizerNode, PassRecord, Sgd
from catchment.host.torch import attach, layers_of, table_of
from catchment.sim.lab.shm_lab import ShmLab

ROOTS = (1, 2, 3)
RATE = 100_000_000
WORKER_RATE = 200_000_000
"""The rate at which a worker's link bounds before those of three nodes."""
WORKERS, LANES, SLOTS = 2, 256, 256
LAYERS, WIDTH = 8, 384
PIECES = 6
"""Pieces of a layer, so that it divides evenly among the nodes."""
STEPS, WARM, ROUNDS = 5, 2, 3


def chain() -> nn.Module:
    """The model: every layer one square matrix."""
    return nn.Sequential(*(nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(LAYERS)))


def step_seconds(roots: int, worker_rate: int = 0) -> float:
    """Median of the steps of one training with `roots` optimizer nodes.

    `worker_rate`: bits per second of a worker's link each way, which its ports to the nodes share evenly; 0: no limit.
    """
    hosts = [f"w{wid}r{root}" for wid in range(WORKERS) for root in range(roots)]  # a worker's port to each node
    nodes = [f"opt{root}" for root in range(roots)]
    limits = [limit(len(hosts) + 1 + at, "in", "out", rate=RATE) for at in range(roots)]
    if worker_rate:
        limits += [limit(1 + at, "in", "out", rate=worker_rate // roots) for at in range(len(hosts))]
    extra = tuple(word for option in limits for word in option)
    model = chain()
    found = layers_of(model)
    table, weights = table_of(found), [layer.weights() for layer in found]
    homes = Homes.spread(table, roots, cut=WIDTH * WIDTH // PIECES)
    ends: list[float] = []
    with ExitStack() as exits:
        lab = exits.enter_context(ShmLab([*hosts, *nodes], lanes=LANES, extra=extra))
        ports: dict[str, Endpoint] = {}
        for root, node in enumerate(nodes):
            workers = [f"w{wid}r{root}" for wid in range(WORKERS)]
            job = lab.luwu(workers, root=node, slots=SLOTS, name=f"job{root}")
            for host in (*workers, node):
                ports[host] = exits.enter_context(lab.endpoint(job, host, timeout=60.0))
        threads = [threading.Thread(target=_serve, args=(ports[node], homes, root, weights, ends)) for root, node in
                   enumerate(nodes)]  # fmt: skip
        threads += [
            threading.Thread(target=_train, args=([ports[f"w{wid}r{root}"] for root in range(roots)], homes, wid))
            for wid in range(WORKERS)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    if len(ends) != STEPS + WARM:
        raise RuntimeError(f"{roots} optimizer nodes: {len(ends)} of {STEPS + WARM} steps were done")
    return median(after - before for before, after in zip(ends[WARM - 1 :], ends[WARM:], strict=False))


def _serve(port: Endpoint, homes: Homes, root: int, weights: list[torch.Tensor], ends: list[float]) -> None:
    def on_pass(_record: PassRecord) -> None:
        if root == 0:
            ends.append(time.perf_counter())

    options = NodeOptions(WORKERS, Sgd(lr=0.0)).at(homes, root)
    node = OptimizerNode(port, homes.part(root), homes.split(root, weights), options, on_pass=on_pass)
    node.run([True] * (STEPS + WARM))


def _train(ports: list[Endpoint], homes: Homes, wid: int) -> None:
    model = chain()
    network = attach(model, ports, homes=homes)
    inputs = torch.randn(1, WIDTH, generator=torch.Generator().manual_seed(wid))
    for _ in range(STEPS + WARM):
        model(inputs).square().sum().backward()
    network.wait()


def bound(table: LayerTable, rate: int) -> float:
    """Seconds that links of this rate need for a step: bf16 parameters down for the forward, int32 gradients up."""
    return 8 * table.numel * (2 + 4) / rate


def main() -> None:
    """Measure and report."""
    torch.set_num_threads(1)
    seconds: dict[int, list[float]] = {roots: [] for roots in ROOTS}
    narrow: list[float] = []
    for _ in range(ROUNDS):
        for roots in ROOTS:
            seconds[roots].append(step_seconds(roots))
        narrow.append(step_seconds(ROOTS[-1], WORKER_RATE))
    table = table_of(layers_of(chain()))
    figures, notes = [], []
    for roots in ROOTS:
        own = median(seconds[roots])
        gain = median(one / several for one, several in zip(seconds[1], seconds[roots], strict=True))
        figures.append(
            Figure(f"{roots} optimizer nodes, a step", 1e3 * own, "ms", "link", 1e3 * bound(table, roots * RATE))
        )
        if roots > 1:
            figures.append(Figure(f"{roots} optimizer nodes, times as fast as one", gain, "x", "nodes", roots, 0.9))
        notes.append(f"{roots}: " + ", ".join(f"{1e3 * each:.0f}" for each in seconds[roots]) + " ms, round by round.")
    name = f"{ROOTS[-1]} optimizer nodes, workers' links of {WORKER_RATE / 1e6:g} Mb/s"
    figures.append(Figure(name, 1e3 * median(narrow), "ms", "worker's link", 1e3 * bound(table, WORKER_RATE)))
    sums, rounds = coarse_sums.figures()
    plans, decisions = coarse_plans.figures()
    said = [f"{table.numel:,} parameters, {RATE / 1e6:g} Mb/s for each node.", *notes, *rounds, *decisions]
    publish("bench-coarse", [*figures, *sums, *plans], said)


if __name__ == "__main__":
    main()
