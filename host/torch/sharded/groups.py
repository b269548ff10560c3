"""Which ranks share one copy of a model, which hold the same part of it, and which of them share a node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from catchment.host.given_numbers import is_whole
from catchment.host.given_several import in_order
from catchment.host.torch.sharded.errors import ShardingError

Ranks = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Groups:
    """How the ranks of a world are divided; ranks of a node are consecutive.

    Partition group g is the `partition_size` ranks from g times `partition_size` on. The lane of a rank is its number
    within its node.

    Attributes:
        world: ranks in all.
        partition_size: ranks that share one copy of the model states.
        node_size: ranks of each node.
    """

    world: int
    partition_size: int
    node_size: int

    @classmethod
    def of(cls, world: int, partition_size: int, node_size: int) -> Self:
        """Divide a world.

        Raises:
            ShardingError: a size does not divide what it has to.
        """
        for name, value in (("world", world), ("partition_size", partition_size), ("node_size", node_size)):
            if not is_whole(value, 1):
                raise ShardingError(f"{name} is {value!r}: give a whole number of ranks, at least 1")
        if world % node_size:
            raise ShardingError(f"{world} ranks are no whole number of nodes of {node_size}: all nodes need as many")
        if world % partition_size:
            fits = [size for size in partition_sizes(world, node_size) if size != world]
            raise ShardingError(
                f"a partition group of {partition_size} does not divide a world of {world}: "
                f"give one of {', '.join(map(str, [*fits, world]))}"
            )
        if partition_size % node_size and node_size % partition_size:
            raise ShardingError(
                f"a partition group of {partition_size} fits no nodes of {node_size} ranks: "
                "give a divisor or a multiple of the ranks of a node"
            )
        return cls(int(world), int(partition_size), int(node_size))

    @classmethod
    def of_nodes(cls, nodes: Sequence[str], partition_size: int) -> Self:
        """Divide a world of which `nodes` names the node of each rank, in the order of the ranks.

        Raises:
            ShardingError: nodes have unequal numbers of ranks, or their ranks are not consecutive.
        """
        named = in_order(nodes)
        if named is None or not all(isinstance(node, str) for node in named):
            raise ShardingError(f"nodes {nodes!r:.80}: give the name of each rank's node")
        return cls.of(len(named), partition_size, node_size_of(named))

    @property
    def lanes(self) -> int:
        """Ranks of a partition group in each node: the chunks that a node's gather puts together."""
        return min(self.partition_size, self.node_size)

    @property
    def nodes(self) -> int:
        """Nodes of a partition group, 1 if it lies within one."""
        return self.partition_size // self.lanes

    def number(self, rank: int) -> int:
        """A rank's number in its partition group: which part it holds."""
        return rank % self.partition_size

    def partition(self, rank: int) -> Ranks:
        """The ranks that hold one copy of the model together with `rank`."""
        first = rank - self.number(rank)
        return tuple(range(first, first + self.partition_size))

    def replication(self, rank: int) -> Ranks:
        """The ranks that hold the same part as `rank`, one of each partition group."""
        return tuple(range(self.number(rank), self.world, self.partition_size))

    def lane(self, rank: int) -> Ranks:
        """The ranks of the partition group with the same lane as `rank`, one of each of its nodes."""
        return tuple(other for other in self.partition(rank) if (other - rank) % self.lanes == 0)

    def node(self, rank: int) -> Ranks:
        """The ranks of the partition group in the node of `rank`."""
        first = rank - rank % self.lanes
        return tuple(range(first, first + self.lanes))

    def all(self) -> Mapping[str, list[Ranks]]:
        """Every group of each kind, in the order of their first ranks: the same on all ranks."""
        kinds = {"partition": self.partition, "replication": self.replication, "lane": self.lane, "node": self.node}
        return {kind: sorted({of(rank) for rank in range(self.world)}) for kind, of in kinds.items()}


def partition_sizes(world: int, node_size: int) -> Iterator[int]:
    """The partition sizes that a world allows, in rising order."""
    for size in range(1, world + 1):
        if world % size == 0 and (size % node_size == 0 or node_size % size == 0):
            yield size


def node_size_of(nodes: Sequence[str]) -> int:
    """How many ranks each node has, of which `nodes` names one for each rank.

    Raises:
        ShardingError: unequal numbers, or ranks of one node that are not consecutive.
    """
    blocks: list[tuple[str, int]] = []
    for node in nodes:
        if blocks and blocks[-1][0] == node:
            blocks[-1] = (node, blocks[-1][1] + 1)
        else:
            blocks.append((node, 1))
    names = [name for name, _ in blocks]
    if len(set(names)) < len(names):
        split = next(name for name in names if names.count(name) > 1)
        raise ShardingError(f"the ranks of node {split} are not consecutive: start the ranks of a node one by one")
    sizes = {size for _, size in blocks}
    if len(sizes) != 1:
        listed = ", ".join(f"{name} {size}" for name, size in blocks)
        raise ShardingError(f"the nodes have unequal numbers of ranks ({listed}): start as many on each")
    return sizes.pop()
