"""Collectives of all hosts in frame mode: in switches, and what they are compared with."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from catchment.sim.performance import baselines
from catchment.sim.performance.baselines import Ends
from catchment.sim.performance.errors import PerformanceError
from catchment.sim.performance.models import NicModel
from catchment.sim.performance.network import Network
from catchment.sim.performance.rails import NEZHA, rail_costs, rail_shares, share_bytes
from catchment.sim.performance.rounds import Rounds
from catchment.sim.performance.workload import Action, Workload

Collective = Callable[[Workload, Ends, int], Ends]
"""Adds a round's operations of so many bytes: what each host waits for -> what it has the result after."""

SWITCHML_HOST = NicModel(
    push=1_000_000, pull=1_000_000, respond=1_000_000, fifo_bytes=1 << 16, frame=100_000, least_rto=1_000_000_000
)
"""SwitchML's workers are software that answers frames: the stack of docs/explanation/cosim.md, 1 us from wire to
program and 100 ns of processor for each frame; its timeout is a millisecond, as the endpoint's in software."""


def _allreduce(networks: Sequence[Network], workers: Sequence[str], rounds: Rounds) -> Collective:
    stream = networks[0].allreduce(workers, slots=rounds.slots)

    def add(workload: Workload, starts: Ends, size: int) -> Ends:
        return [[pull] for pull in workload.transfer(stream, size, each_after=starts)[1]]

    return add


def _luwu(networks: Sequence[Network], workers: Sequence[str], rounds: Rounds) -> Collective:
    network = networks[0]
    if "opt" not in network.topology.hosts:
        raise PerformanceError("LuWu needs an optimizer node: a host `opt` in the topology, or `fabric.optimizers: 1`")
    up = network.reduce(workers, "opt", slots=rounds.slots)
    down = network.broadcast("opt", workers)

    def add(workload: Workload, starts: Ends, size: int) -> Ends:
        _, sums = workload.transfer(up, size, each_after=starts)
        return [[pull] for pull in workload.transfer(down, size, sums)[1]]

    return add


def _ring(networks: Sequence[Network], workers: Sequence[str], _rounds: Rounds) -> Collective:
    hops = baselines.ring_hops(networks[0], workers)
    return lambda workload, starts, size: baselines.ring(hops, workload, size, starts)


def _tree(networks: Sequence[Network], workers: Sequence[str], _rounds: Rounds) -> Collective:
    trees = baselines.double_tree_hops(networks[0], workers)
    return lambda workload, starts, size: baselines.double_tree(trees, workload, size, starts)


def _nezha(networks: Sequence[Network], workers: Sequence[str], rounds: Rounds) -> Collective:
    """Each message in the shares of the project's balancer, each share on its rail."""
    cluster = networks[0].cluster
    by = {"switch": _allreduce, "ring": _ring}
    costs = rail_costs(cluster, workers, rounds.slots)
    carriers = [by[rail.by]([own], workers, rounds) for rail, own in zip(cluster.rails, networks, strict=True)]

    def add(workload: Workload, starts: Ends, size: int) -> Ends:
        shares = rail_shares(costs, size, rounds.splitting)
        together = rounds.splitting.together * (len({share.rail for share in shares}) - 1)
        ends: Ends = [[] for _ in workers]
        for share in shares:
            wait = cluster.rails[share.rail].start + together
            begun = [[workload.add(Action.DELAY, amount=wait, after=own)] for own in starts]
            arrived = carriers[share.rail](workload, begun, share_bytes(share))
            ends = [[*before, *more] for before, more in zip(ends, arrived, strict=True)]
        return ends

    return add


RINGS = ("ring", "tree")
"""Collectives whose switches only forward."""
COLLECTIVES: dict[str, Callable[[Sequence[Network], Sequence[str], Rounds], Collective]] = {
    "allreduce": _allreduce, "luwu": _luwu, "ring": _ring, "tree": _tree, "switchml": _allreduce, NEZHA: _nezha,
}  # fmt: skip
"""Collectives by name: sums in switches to all hosts, or to an optimizer node and back; a ring; a double binary tree;
sums in switches for hosts in software; messages that are split over rails, of which there is a network each."""
