"""Collectives of all hosts in frame mode: in switches, and what they are compared with."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from catchment.sim.performance import baselines
from catchment.sim.performance.baselines import Ends
from catchment.sim.performance.errors import PerformanceError
from catchment.sim.performance.models import NicModel
from catchment.sim.performance.network import Network
from catchment.sim.performance.rounds import Rounds
from catchment.sim.performance.workload import Workload

Collective = Callable[[Workload, Ends], Ends]
"""Adds a round's operations: what each host waits for -> what it has the result after."""

SWITCHML_HOST = NicModel(
    push=1_000_000, pull=1_000_000, respond=1_000_000, fifo_bytes=1 << 16, frame=100_000, least_rto=1_000_000_000
)
"""SwitchML's workers are software that answers frames: the stack of docs/explanation/cosim.md, 1 us from wire to
program and 100 ns of processor for each frame; its timeout is a millisecond, as the endpoint's in software."""


def _allreduce(network: Network, workers: Sequence[str], rounds: Rounds) -> Collective:
    stream = network.allreduce(workers, slots=rounds.slots)

    def add(workload: Workload, starts: Ends) -> Ends:
        return [[pull] for pull in workload.transfer(stream, rounds.size, each_after=starts)[1]]

    return add


def _luwu(network: Network, workers: Sequence[str], rounds: Rounds) -> Collective:
    if "opt" not in network.topology.hosts:
        raise PerformanceError("LuWu needs an optimizer node: a host `opt` in the topology, or `fabric.optimizers: 1`")
    up = network.reduce(workers, "opt", slots=rounds.slots)
    down = network.broadcast("opt", workers)

    def add(workload: Workload, starts: Ends) -> Ends:
        _, sums = workload.transfer(up, rounds.size, each_after=starts)
        return [[pull] for pull in workload.transfer(down, rounds.size, sums)[1]]

    return add


def _ring(network: Network, workers: Sequence[str], rounds: Rounds) -> Collective:
    hops = baselines.ring_hops(network, workers)
    return lambda workload, starts: baselines.ring(hops, workload, rounds.size, starts)


def _tree(network: Network, workers: Sequence[str], rounds: Rounds) -> Collective:
    trees = baselines.double_tree_hops(network, workers)
    return lambda workload, starts: baselines.double_tree(trees, workload, rounds.size, starts)


COLLECTIVES: dict[str, Callable[[Network, Sequence[str], Rounds], Collective]] = {
    "allreduce": _allreduce, "luwu": _luwu, "ring": _ring, "tree": _tree, "switchml": _allreduce,
}  # fmt: skip
"""Collectives by name: sums in switches to all hosts, or to an optimizer node and back; a ring; a double binary tree;
sums in switches for hosts in software."""
