"""FSDP2 with the hierarchical gather and the 2-hop schedule, in a line each.

mesh = init_device_mesh("cpu", (world // 8, 8), mesh_dim_names=("replicate", "shard"))
fully_shard(model, mesh=mesh)
hierarchical(model, Groups.of(world, 8, node_size=4))
...
for number, part in enumerate(parts):
    accumulate(model, last=number == len(parts) - 1)
    loss_of(model(part)).backward()
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FSDPModule
from torch.distributed.fsdp._fully_shard._fsdp_api import AllGather

from catchment.host.torch.sharded.errors import ShardingError
from catchment.host.torch.sharded.groups import Groups, Ranks


def hierarchical(module: nn.Module, groups: Groups) -> None:
    """Gather the parameters of every FSDP module below `module` between nodes first, then inside them.

    All ranks call it, after `fully_shard` on a mesh whose shard dimension has the groups' partition groups.

    Raises:
        ShardingError: `module` has no FSDP modules, or they are sharded over other groups.
    """
    found = _fsdp_modules(module)
    if groups.nodes == 1:
        return
    rank = dist.get_rank()
    lane = _own(groups.all()["lane"], rank)
    node = _own(groups.all()["node"], rank)
    gather = _StagedAllGather(lane, node, groups, rank)
    for each in found:
        each.set_custom_all_gather(gather)


def accumulate(module: nn.Module, last: bool) -> None:
    """Sum gradients over the partition group alone, and over the groups that hold the same part in the last micro-step.

    Raises:
        ShardingError: `module` has no FSDP modules.
    """
    for each in _fsdp_modules(module):
        each.set_requires_all_reduce(last, recurse=False)


def _fsdp_modules(module: nn.Module) -> list[FSDPModule]:
    found: list[FSDPModule] = [each for each in module.modules() if isinstance(each, FSDPModule)]
    if not found:
        raise ShardingError("the module has no FSDP modules: call fully_shard on it first")
    return found


def _own(groups: Sequence[Ranks], rank: int) -> dist.ProcessGroup:
    """This rank's of the groups; all ranks make all of them."""
    own: dist.ProcessGroup | None = None
    for ranks in groups:
        made: dist.ProcessGroup = dist.new_group(list(ranks))
        own = made if rank in ranks else own
    assert own is not None
    return own


@final
class _StagedAllGather(AllGather):
    """What FSDP2 calls for each gather. The gathered chunks are in the order of the ranks, as in one operation."""

    def __init__(self, lane: dist.ProcessGroup, node: dist.ProcessGroup, groups: Groups, rank: int) -> None:
        self._lane, self._node = lane, node
        self._groups = groups
        self._rank = rank

    def allocate(self, size: Sequence[int | torch.SymInt], *, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
        """Memory of a gathered layer."""
        return torch.empty(*size, dtype=dtype, device=device)

    def __call__(
        self,
        output_tensor: torch.Tensor,
        input_tensor: torch.Tensor,
        group: dist.ProcessGroup,
        async_op: bool = False,
    ) -> dist.Work | None:
        """Gather the ranks' inputs, as dist.all_gather_into_tensor does."""
        groups = self._groups
        if dist.get_process_group_ranks(group) != list(groups.partition(self._rank)):
            raise ShardingError(
                f"the module is sharded over ranks {dist.get_process_group_ranks(group)}, not over "
                f"{list(groups.partition(self._rank))}: give groups of the mesh's shard dimension"
            )
        chunks = output_tensor.view(groups.nodes, groups.lanes, -1)
        own = input_tensor.reshape(-1)
        of_lane = torch.empty(groups.nodes, own.numel(), dtype=own.dtype, device=own.device)
        dist.all_gather_into_tensor(of_lane.view(-1), own, group=self._lane)
        works: list[Any] = [
            dist.all_gather_into_tensor(chunks[node].view(-1), of_lane[node], group=self._node, async_op=True)
            for node in range(groups.nodes)
        ]
        for work in works:
            work.wait()
        return None
