"""Which GPU is which rank: those of the first worker come first."""

from __future__ import annotations

from functools import lru_cache

from catchment.sim.performance.cluster import Cluster, Node
from catchment.sim.performance.run import workers_of


def rank_hosts(cluster: Cluster) -> tuple[str, ...]:
    """The worker of each rank."""
    return tuple(name for name in workers_of(cluster) for _ in range(cluster.node_of(name).gpus))


def rank_count(cluster: Cluster) -> int:
    """GPUs of all workers."""
    return sum(cluster.node_of(name).gpus for name in workers_of(cluster))


def rank_nodes(cluster: Cluster) -> list[Node]:
    """The node that each rank is in."""
    return [cluster.node_of(name) for name in rank_hosts(cluster)]


@lru_cache(maxsize=64)
def partition_group(rank: int, size: int) -> tuple[int, ...]:
    """The ranks of a partition group of neighbours, of the one that `rank` is in; ranks of one share the tuple."""
    first = rank // size * size
    return tuple(range(first, first + size))


@lru_cache(maxsize=64)
def partition_groups(count: int, size: int) -> tuple[tuple[int, ...], ...]:
    """All partition groups of so many ranks."""
    return tuple(partition_group(first, size) for first in range(0, count, size))


@lru_cache(maxsize=64)
def replication_groups(count: int, size: int) -> tuple[tuple[int, ...], ...]:
    """The ranks that have the same place in their partition groups of `size`, by place."""
    return tuple(tuple(range(first, count, size)) for first in range(size))
