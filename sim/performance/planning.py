"""Trees of switches for jobs, from the control plane's own planner, and ways between two hosts."""

from __future__ import annotations

from collections.abc import Sequence

from catchment.controlplane.errors import ControlPlaneError
from catchment.controlplane.jobs.tree import Branch, tree_of
from catchment.controlplane.topology import PortRef, Topology
from catchment.sim.performance.cluster import Cluster
from catchment.sim.performance.errors import ClusterError, PerformanceError
from catchment.sim.performance.models import SwitchModel


def plan_tree(topology: Topology, workers: Sequence[str], root: str | None) -> list[Branch]:
    """The branches of a job, top first.

    Raises:
        PerformanceError: no worker, or one twice.
        JobError: a worker cannot reach the top.
    """
    if not workers or len({*workers, *([root] if root else [])}) != len(workers) + (root is not None):
        raise PerformanceError("a job needs workers, each once, and a root that is none of them")
    return tree_of(topology, [topology.host(name) for name in workers], topology.host(root) if root else None)


def check_ways(cluster: Cluster, workers: Sequence[str], *, ring: bool) -> None:
    """See that there is a tree over these hosts; `ring`: and a way from each to the next one, and back to the first.

    Raises:
        ClusterError: there is none; with the file and line of the topology.
    """
    try:
        plan_tree(cluster.topology, workers, None)
        for at, worker in enumerate(workers if ring and len(workers) > 1 else ()):
            path_tree(cluster.topology, worker, workers[(at + 1) % len(workers)])
    except ControlPlaneError as error:
        raise ClusterError(f"{cluster.place}: {error}") from None


def sums_tree(cluster: Cluster, workers: Sequence[str], root: str | None) -> list[Branch]:
    """The branches of a job whose switches add, top first.

    Raises:
        PerformanceError: as of `plan_tree`, or a switch has more members than its program takes.
    """
    tree = plan_tree(cluster.topology, workers, root)
    for branch in tree:
        check_members(cluster.switch, branch.switch, len(branch.members))
    return tree


def depth_of(tree: Sequence[Branch]) -> int:
    """How many switches are on the longest way from a worker to the top."""
    parents = {branch.switch: branch.parent.switch if branch.parent else None for branch in tree}
    deepest = 0
    for switch in parents:
        at: str | None = switch
        hops = 0
        while at is not None:
            at, hops = parents[at], hops + 1
        deepest = max(deepest, hops)
    return deepest


def check_members(model: SwitchModel, switch: str, members: int) -> None:
    """See that a switch's program takes so many members of a job.

    Raises:
        PerformanceError: it does not.
    """
    if members > model.max_workers:
        raise PerformanceError(
            f"switch {switch} has {members} members of the job, its program takes {model.max_workers}: "
            "set `switch.max_workers`, or make smaller racks"
        )


def middles_between(topology: Topology, start: str, end: str) -> list[tuple[str, ...]]:
    """The switches between two that differ, on each way from one to the other: none, or one of those that join them.

    [] if they are further apart than over one switch between them.
    """
    ups = [peer.switch for peer in topology.wiring.trunks[start].values()]
    downs = {peer.switch for peer in topology.wiring.trunks[end].values()}
    if end in ups:
        return [()]
    return [(name,) for name in ups if name in downs]


def path_tree(topology: Topology, start: str, end: str, spine: int = 0) -> list[Branch]:
    """The switches of a way from host `start`, which sends, to host `end`, as the tree of a job with one worker.

    Args:
        spine: of the switches that both ends' switches are on, which one.

    Raises:
        PerformanceError: they are further apart than over one switch between theirs.
    """
    first, last = topology.host(start).link, topology.host(end).link
    if first.switch == last.switch:
        return [Branch(first.switch, ((last.port, end),), first.port, None, 0)]
    middles = middles_between(topology, first.switch, last.switch)
    if not middles:
        raise PerformanceError(f"no switch joins that of {start} ({first.switch}) to that of {end} ({last.switch})")
    chain = [first.switch, *middles[spine % len(middles)], last.switch]
    branches = [Branch(chain[0], ((_port(topology, chain[0], chain[1]), chain[1]),), first.port, None, 0)]
    for at in range(1, len(chain)):
        here = chain[at]
        up = PortRef(chain[at - 1], _port(topology, chain[at - 1], here))
        below = chain[at + 1] if at + 1 < len(chain) else None
        member = (_port(topology, here, below), below) if below else (last.port, end)
        branches.append(Branch(here, (member,), _port(topology, here, chain[at - 1]), up, 0))
    return branches


def _port(topology: Topology, switch: str, peer: str) -> int:
    return next(port for port, other in topology.wiring.trunks[switch].items() if other.switch == peer)
