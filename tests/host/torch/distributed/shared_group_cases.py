"""Groups of ranks that share hosts of a job, each of which goes through switches."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

from catchment.host.torch.distributed.native_group import switch_of

HOSTS = os.environ["RANKS_OF_HOSTS"].split(",")
"""The host of each rank; equally many on each, one host after the other."""
PER_HOST = HOSTS.count(HOSTS[0])


def _sums_through_the_switch(group: Any, rank: int, ranks: Sequence[int]) -> None:
    """Every rank of the group gets the sum of all of them, of data that differ in every rank and element."""
    switch = switch_of(group)
    assert switch is not None and switch.communicator.size == len(ranks), (ranks, switch)
    for elements in (3, 4000):
        tensor = torch.arange(elements, dtype=torch.int32) * (rank + 1)
        dist.all_reduce(tensor, group=group)
        wanted = torch.arange(elements, dtype=torch.int32) * sum(other + 1 for other in ranks)
        assert torch.equal(tensor, wanted), (ranks, elements)
    gathered = torch.empty(len(ranks), dtype=torch.int32)
    dist.all_gather_into_tensor(gathered, torch.tensor([rank], dtype=torch.int32), group=group)
    assert gathered.tolist() == list(ranks)


def case_all_ranks_of_all_hosts(rank: int, size: int) -> None:
    _sums_through_the_switch(dist.group.WORLD, rank, range(size))


def case_a_mesh_of_hosts_and_ranks(rank: int, size: int) -> None:
    """The ranks of each host, and those at equal places of the hosts: k groups of the same hosts."""
    mesh = init_device_mesh("cpu", (size // PER_HOST, PER_HOST), mesh_dim_names=("replicate", "shard"))
    of_host = [other for other in range(size) if other // PER_HOST == rank // PER_HOST]
    across = [other for other in range(size) if other % PER_HOST == rank % PER_HOST]
    _sums_through_the_switch(mesh.get_group("shard"), rank, of_host)
    _sums_through_the_switch(mesh.get_group("replicate"), rank, across)


def case_groups_with_several_ranks_on_each_host(rank: int, size: int) -> None:
    """One of two ranks of each host, and one of a whole host with a single rank of the next."""
    for ranks in (
        [other for other in range(size) if other % PER_HOST in (1, 2)],
        [*range(PER_HOST), PER_HOST],
        list(range(size)),
    ):
        group = dist.new_group(ranks)
        if rank in ranks:
            _sums_through_the_switch(group, rank, ranks)
            dist.destroy_process_group(group)
