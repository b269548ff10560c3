"""All-reduces without sums in switches, as workloads of frames between hosts: a ring, a double binary tree.

Hosts pass vectors on with the project's own protocol (windows, heartbeats, retransmissions), in frames of `PAYLOAD`
bytes through switches that only forward. Adding takes no time. Host i of the ring is the cluster's i-th, so that a ring
goes through each rack once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from catchment.sim.performance.errors import PerformanceError
from catchment.sim.performance.network import Network, Stream
from catchment.sim.performance.workload import Workload

PAYLOAD = 1024
"""Bytes of a frame: RoCE's usual MTU."""
WINDOW = 256
"""Frames that a host may have under way to another."""


class Hop:
    """Messages from one host to the next, in order."""

    def __init__(self, network: Network, start: str, end: str, way: int) -> None:
        self._stream: Stream = network.send(start, end, payload=PAYLOAD, window=WINDOW, spine=way)

    def carry(self, workload: Workload, size: int, after: Sequence[int]) -> int:
        """Send a message once `after` have ended; the operation that ends with its last byte in memory."""
        _, pulls = workload.transfer(self._stream, size, after)
        return pulls[0]


Ends = list[list[int]]
"""The operations after which each host has the sum: a list for each host."""


def ring_hops(network: Network, hosts: Sequence[str]) -> list[Hop]:
    """Each host's hop to the next one.

    Raises:
        PerformanceError: fewer than two hosts.
    """
    if len(hosts) < 2:
        raise PerformanceError("a ring needs two hosts")
    return [Hop(network, host, hosts[(at + 1) % len(hosts)], at) for at, host in enumerate(hosts)]


def ring(hops: Sequence[Hop], workload: Workload, size: int, starts: Ends) -> Ends:
    """Reduce-scatter and all-gather; `starts`: what each host waits for."""
    count = len(hops)
    chunk = -(-size // count)
    have = starts
    for _ in range(count - 1):
        # A host adds its own part to what has come, which it must have by then.
        have = [[*come, *own] for come, own in zip(_step(hops, workload, chunk, have), starts, strict=True)]
    return ring_gather(hops, workload, chunk, have)


def ring_gather(hops: Sequence[Hop], workload: Workload, chunk: int, starts: Ends) -> Ends:
    """All-gather of a chunk of so many bytes of each host; `starts`: what each host waits for."""
    have = starts
    for _ in range(len(hops) - 1):
        have = _step(hops, workload, chunk, have)
    return have


def _step(hops: Sequence[Hop], workload: Workload, chunk: int, have: Ends) -> Ends:
    """Each host passes a chunk on; what each then waits for."""
    arrived = [hop.carry(workload, chunk, have[at]) for at, hop in enumerate(hops)]
    return [[arrived[at - 1]] for at in range(len(hops))]


@dataclass(frozen=True, slots=True)
class Tree:
    """A binary tree of hops.

    Attributes:
        hosts: places in the cluster's order, by place in the tree's.
        parents: place in the tree -> its parent's.
        ups, downs: hops to the parent and from it.
        order: places, the lowest first.
    """

    hosts: tuple[int, ...]
    parents: dict[int, int]
    ups: dict[int, Hop]
    downs: dict[int, Hop]
    order: tuple[int, ...]


def double_tree_hops(network: Network, hosts: Sequence[str]) -> list[Tree]:
    """Two binary trees, as NCCL's: the second is the first one shifted by a host, so that leaves of one are inside
    the other.

    Raises:
        PerformanceError: fewer than two hosts.
    """
    if len(hosts) < 2:
        raise PerformanceError("a tree needs two hosts")
    parents = _parents(len(hosts))
    lowest_first = tuple(sorted(range(len(hosts)), key=lambda at: -_depth(at, parents)))
    trees = []
    for shift in range(2):
        places = tuple((at + shift) % len(hosts) for at in range(len(hosts)))
        names = [hosts[place] for place in places]
        ups = {at: Hop(network, names[at], names[parent], at) for at, parent in parents.items()}
        downs = {at: Hop(network, names[parent], names[at], at) for at, parent in parents.items()}
        trees.append(Tree(places, parents, ups, downs, lowest_first))
    return trees


def double_tree(trees: Sequence[Tree], workload: Workload, size: int, starts: Ends, pieces: int = 8) -> Ends:
    """Half of the vector up and down each tree, in `pieces` that follow one another."""
    ends: Ends = [[] for _ in starts]
    piece = max(1, -(-size // len(trees) // pieces))
    for tree in trees:
        ready: Ends = []
        for _ in range(pieces):
            ready = [list(starts[place]) for place in tree.hosts]
            for at in tree.order:
                if at in tree.parents:
                    ready[tree.parents[at]].append(tree.ups[at].carry(workload, piece, ready[at]))
            for at in reversed(tree.order):
                if at in tree.parents:
                    ready[at] = [tree.downs[at].carry(workload, piece, ready[tree.parents[at]])]
        for place, mine in zip(tree.hosts, ready, strict=True):
            ends[place] += mine
    return ends


def _parents(count: int) -> dict[int, int]:
    """An in-order binary tree over 0 .. count - 1: child -> parent."""
    found: dict[int, int] = {}

    def build(first: int, last: int) -> int:
        middle = (first + last) // 2
        for low, high in ((first, middle - 1), (middle + 1, last)):
            if low <= high:
                found[build(low, high)] = middle
        return middle

    build(0, count - 1)
    return found


def _depth(at: int, parents: dict[int, int]) -> int:
    depth = 0
    while at in parents:
        at, depth = parents[at], depth + 1
    return depth
