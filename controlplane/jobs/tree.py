"""The tree of switches over which a job's vectors meet.

It follows the racks of the topology: a job within one rack stays there, one over several meets at a spine (or at the
root's switch), and no rack's switch carries what goes from one other rack to another unless there is no other way.
Where several spines would do, the one that does least is taken, so that jobs spread over them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heapreplace

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


def _hops(topology: Topology, start: str) -> dict[str, int]:
    """Switch -> links on the shortest way to `start`, past whatever switch: at most the depth of `start` below it."""
    hops = {start: 0}
    queue = deque([start])
    while queue:
        here = queue.popleft()
        for peer in topology.wiring.trunks[here].values():
            if peer.switch not in hops:
                hops[peer.switch] = hops[here] + 1
                queue.append(peer.switch)
    return hops


def _top(topology: Topology, workers: Iterable[Host], root: Host | None, load: Load) -> str:
    """The first switch by height of the tree below it, then a worker's own, then by load and name.

    The height costs a search from each switch, so it is asked only of those whose least possible height, by the hops
    to a few leaves, does not put them behind the best one so far.
    """
    if root is not None:
        return root.link.switch
    leaves = sorted({worker.link.switch for worker in workers})
    out_of_reach = len(topology.switches)  # deeper than any tree

    def depths(candidate: str) -> dict[str, int]:
        towards = _distances(topology, candidate, load)
        return {leaf: (_depth(towards, topology, leaf) if leaf in towards else out_of_reach) for leaf in leaves}

    racks = {None, *map(topology.rack_of, leaves)}
    own = set(leaves)
    least = {name: 0 for name in topology.switches if topology.rack_of(name) in racks}
    seen_from: set[str] = set()

    def look_from(leaf: str) -> str:
        """Raise the least heights by the hops to a leaf; the leaf that is furthest from it."""
        seen_from.add(leaf)
        hops = _hops(topology, leaf)
        for name, height in least.items():
            least[name] = max(height, hops.get(name, out_of_reach))
        return max(leaves, key=lambda other: hops.get(other, out_of_reach))

    look_from(look_from(leaves[0]))
    waiting = [(height, name not in own, load(name), name) for name, height in least.items()]
    heapify(waiting)
    best = None
    while waiting and (best is None or waiting[0] < best):
        height, name = waiting[0][0], waiting[0][-1]
        if height < least[name]:
            heapreplace(waiting, (least[name], name not in own, load(name), name))
            continue
        heappop(waiting)
        below = depths(name)
        deepest = max(below, key=below.__getitem__)
        found = (below[deepest], name not in own, load(name), name)
        best = found if best is None else min(best, found)
        if below[deepest] > height and deepest not in seen_from:
            look_from(deepest)
    assert best is not None
    return best[-1]


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
    wids: dict[tuple[str, str], int] = {}
    for parent, below in members.items():
        for wid, (_, name) in enumerate(below):
            wids.setdefault((parent, name), wid)
    branches = []
    for switch in sorted(members, key=lambda name: _depth(towards, topology, name)):
        port = towards[switch]
        if port is None:
            branches.append(Branch(switch, tuple(members[switch]), root.link.port if root else None, None, 0))
            continue
        peer = topology.ports(switch)[port.port]
        assert isinstance(peer, PortRef)
        branches.append(Branch(switch, tuple(members[switch]), port.port, peer, wids[peer.switch, switch]))
    return branches
