"""The tree of switches over which a job's vectors meet.

It follows the racks of the topology: a job within one rack stays there, one over several meets at a spine (or at the
root's switch), and no rack's switch carries what goes from one other rack to another unless there is no other way.
Where several spines would do, the one that does least is taken, so that jobs spread over them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from catchment.controlplane.jobs.errors import JobError
from catchment.controlplane.topology import Host, PortRef, Topology


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


Load = Callable[[str], tuple[int, ...]]
"""How much a switch does already; the least is taken first."""


def _distances(topology: Topology, start: str, load: Load) -> dict[str, PortRef | None]:
    """Switch -> its own port towards `start` (None for `start` itself)."""
    towards: dict[str, PortRef | None] = {start: None}
    home = topology.rack_of(start)
    queue = deque([start])
    while queue:
        here = queue.popleft()
        rack = topology.rack_of(here)
        for peer in sorted(topology.wiring.trunks[here].values(), key=lambda p: (load(p.switch), p)):
            # A rack's own traffic goes through its switch, that of two others does not.
            may_pass = rack in (None, home, topology.rack_of(peer.switch))
            if may_pass and peer.switch not in towards:
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


def _top(topology: Topology, workers: Iterable[Host], root: Host | None, load: Load) -> str:
    if root is not None:
        return root.link.switch
    leaves = {worker.link.switch for worker in workers}

    def height(candidate: str) -> int:
        towards = _distances(topology, candidate, load)
        out_of_reach = len(topology.switches)  # deeper than any tree
        return max((_depth(towards, topology, leaf) if leaf in towards else out_of_reach) for leaf in leaves)

    racks = {None, *map(topology.rack_of, leaves)}
    candidates = [name for name in topology.switches if topology.rack_of(name) in racks]
    return min(candidates, key=lambda name: (height(name), name not in leaves, load(name), name))


def tree_of(
    topology: Topology, workers: Iterable[Host], root: Host | None, load: Load = lambda switch: ()
) -> list[Branch]:
    """The branches of a job, top first.

    Args:
        topology: where.
        workers: in the order of their indices.
        root: the optimizer node, which is above the top switch; None for an all-reduce, whose top
            is the switch that makes the tree flattest.
        load: how much a switch does already, to choose between those that are equally good.

    Raises:
        JobError: a worker cannot reach the top.
    """
    hosts = list(workers)
    try:
        return _tree(topology, hosts, root, load)
    except JobError:
        if not topology.racks:
            raise
        return _tree(replace(topology, racks={}), hosts, root, load)


def _tree(topology: Topology, workers: list[Host], root: Host | None, load: Load) -> list[Branch]:
    top = _top(topology, workers, root, load)
    towards = _distances(topology, top, load)
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
