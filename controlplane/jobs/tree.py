"""The tree of switches over which a job's vectors meet."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from controlplane.jobs.errors import JobError
from controlplane.topology import Host, PortRef, Topology


@dataclass(frozen=True, slots=True)
class Branch:
    """A switch of the tree.

    Attributes:
        switch: its name.
        members: its ports with something to add, by worker index there: a host or a child switch.
        up_port: port towards the parent switch or the root host; None at the top of an all-reduce.
        parent: the parent switch's end of the link; None at the top.
        up_wid: this switch's worker index at its parent.
    """

    switch: str
    members: tuple[tuple[int, str], ...]
    up_port: int | None
    parent: PortRef | None
    up_wid: int


def _distances(topology: Topology, start: str) -> dict[str, PortRef | None]:
    """Switch -> its own port towards `start` (None for `start` itself)."""
    towards: dict[str, PortRef | None] = {start: None}
    queue = deque([start])
    while queue:
        here = queue.popleft()
        for peer in topology.ports(here).values():
            if isinstance(peer, PortRef) and peer.switch not in towards:
                towards[peer.switch] = peer
                queue.append(peer.switch)
    return towards


def _depth(towards: dict[str, PortRef | None], topology: Topology, switch: str) -> int:
    depth = 0
    while (port := towards[switch]) is not None:
        peer = topology.ports(switch)[port.port]
        assert isinstance(peer, PortRef)
        switch, depth = peer.switch, depth + 1
    return depth


def _top(topology: Topology, workers: Iterable[Host], root: Host | None) -> str:
    if root is not None:
        return root.link.switch
    racks = {worker.link.switch for worker in workers}

    def height(candidate: str) -> int:
        towards = _distances(topology, candidate)
        return max((_depth(towards, topology, r) if r in towards else 1 << 16) for r in racks)

    return min(topology.switches, key=lambda name: (height(name), name not in racks, name))


def tree_of(topology: Topology, workers: Iterable[Host], root: Host | None) -> list[Branch]:
    """The branches of a job, top first.

    Args:
        topology: where.
        workers: in the order of their indices.
        root: the optimizer node, which is above the top switch; None for an all-reduce, whose top
            is the switch that makes the tree flattest.

    Raises:
        JobError: a worker cannot reach the top.
    """
    workers = list(workers)
    top = _top(topology, workers, root)
    towards = _distances(topology, top)
    members: dict[str, list[tuple[int, str]]] = {}
    for worker in workers:
        if worker.link.switch not in towards:
            raise JobError(f"no path between {worker.name} (on {worker.link.switch}) and switch {top}")
        members.setdefault(worker.link.switch, []).append((worker.link.port, worker.name))
    # From the leaves up, each switch with members becomes a member of its parent.
    for switch in sorted(towards, key=lambda name: -_depth(towards, topology, name)):
        port = towards[switch]
        if switch in members and port is not None:
            peer = topology.ports(switch)[port.port]
            assert isinstance(peer, PortRef)
            members.setdefault(peer.switch, []).append((peer.port, switch))
    branches = []
    for switch in sorted(members, key=lambda name: _depth(towards, topology, name)):
        port = towards[switch]
        if port is None:
            branches.append(Branch(switch, tuple(members[switch]), root.link.port if root else None, None, 0))
            continue
        peer = topology.ports(switch)[port.port]
        assert isinstance(peer, PortRef)
        wid = [name for _, name in members[peer.switch]].index(switch)
        branches.append(Branch(switch, tuple(members[switch]), port.port, peer, wid))
    return branches
