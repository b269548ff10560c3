"""Collectives of ranks of which several share a host of the job."""

from __future__ import annotations

import os

import pytest
import torch
import torch.distributed as dist

from catchment.host.collectives import CollectiveError
from catchment.host.torch.distributed.native_group import switch_of

HOSTS = os.environ["RANKS_OF_HOSTS"].split(",")
"""The host of each rank."""


def case_sums_are_of_all_ranks_of_all_hosts(rank: int, size: int) -> None:
    switch = switch_of(dist.group.WORLD)
    assert switch is not None and switch.communicator.size == size
    for elements in (1, 700, 50_000):
        every = [
            torch.randn(elements, generator=torch.Generator().manual_seed(r)).round(decimals=2) for r in range(size)
        ]
        mine = every[rank].clone()
        dist.all_reduce(mine)
        exact = torch.stack(every).double().sum(0)
        assert (mine - exact).abs().max() <= 2.0**-22 * exact.abs().max().clamp(min=1)
        all_bits = [torch.empty_like(mine) for _ in range(size)]
        dist.all_gather(all_bits, mine)
        assert all(torch.equal(mine, other) for other in all_bits)
        whole = torch.full((elements,), rank, dtype=torch.int32)
        dist.all_reduce(whole)
        assert torch.equal(whole, torch.full_like(whole, size * (size - 1) // 2))


def case_parts_are_in_the_order_of_the_ranks(rank: int, size: int) -> None:
    gathered = torch.empty(size * 300)
    dist.all_gather_into_tensor(gathered, torch.full((300,), float(rank)))
    assert gathered.view(size, 300)[:, 7].tolist() == list(range(size))
    mine = torch.empty(200)
    dist.reduce_scatter_tensor(mine, torch.arange(200.0 * size) + rank)
    assert torch.equal(mine, size * torch.arange(200.0 * rank, 200.0 * (rank + 1)) + size * (size - 1) / 2)
    for root in range(size):
        sent = torch.full((5000,), float(rank))
        dist.broadcast(sent, src=root)
        assert torch.equal(sent, torch.full((5000,), float(root)))
    doubles = torch.full((9,), rank, dtype=torch.float64)  # by gloo
    dist.all_reduce(doubles)
    assert doubles[0].item() == size * (size - 1) / 2


def case_a_rank_that_calls_something_else_is_named(rank: int, size: int) -> None:
    """Operations go through both switches: every rank knows which one it was."""
    odd = size - 2
    with pytest.raises(CollectiveError) as caught:
        dist.all_reduce(torch.ones(3000 if rank == odd else 2000))
    assert caught.value.kind == "mismatch"
    assert f"rank {odd}" in str(caught.value) or rank == odd, caught.value
    dist.barrier()


def case_a_group_of_one_host_stays_there(rank: int, size: int) -> None:
    for host in dict.fromkeys(HOSTS):
        ranks = [r for r, name in enumerate(HOSTS) if name == host]
        group = dist.new_group(ranks)
        if rank in ranks and len(ranks) > 1:
            assert switch_of(group) is not None
            tensor = torch.full((4000,), float(rank))
            dist.all_reduce(tensor, group=group)
            assert torch.equal(tensor, torch.full((4000,), float(sum(ranks))))
    apart = [0, next(r for r in range(size) if HOSTS[r] != HOSTS[0])]
    group = dist.new_group(apart)
    if rank in apart:
        assert switch_of(group) is None
        tensor = torch.full((10,), float(rank))
        dist.all_reduce(tensor, group=group)
        assert tensor[0].item() == sum(apart)
