"""`MiCS`: a model sharded over the ranks of torch.distributed."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Final

import torch.distributed as dist
from torch import nn

from catchment.host.collectives import CollectiveError, Communicator
from catchment.host.given_numbers import is_whole
from catchment.host.torch.distributed.native_group import switch_of
from catchment.host.torch.sharded.errors import ShardingError
from catchment.host.torch.sharded.footprint import footprint
from catchment.host.torch.sharded.groups import Groups, Ranks, node_size_of, partition_sizes
from catchment.host.torch.sharded.links import Explain, Links
from catchment.host.torch.sharded.memory_model import choose
from catchment.host.torch.sharded.options import MiCSOptions
from catchment.host.torch.sharded.session import ShardedModel, model_layers

_LOG: Final = logging.getLogger("catchment.torch")


class MiCS(ShardedModel):
    """A model sharded over partition groups of the ranks of `dist.init_process_group("catchment")`.

        mics = MiCS(model, MiCSOptions(partition_size=4, micro_steps=4))
        optimizer = torch.optim.AdamW(mics.parameters())
        for batch in data:
            for number, part in enumerate(batch):
                with mics.micro_step(number):
                    loss_of(model(part)).backward()
            optimizer.step()
            optimizer.zero_grad()

    Args:
        model: the same, with the same weights, on all ranks.
        options: how it is sharded.
        layers: names of the modules that are layers, in the order forward runs them.
        kept: layers whose parameters forward also uses outside of them (`h @ self.wte.weight.T`).
        node_size: ranks of each node; found by their hosts' names unless given.

    Raises:
        ShardingError: the world, the options or the model do not fit each other.
    """

    def __init__(
        self,
        model: nn.Module,
        options: MiCSOptions | None = None,
        *,
        layers: Sequence[str] | None = None,
        kept: Sequence[str] = (),
        node_size: int | None = None,
    ) -> None:
        options = MiCSOptions() if options is None else options
        if not isinstance(options, MiCSOptions):
            raise ShardingError(f"options {options!r:.80}: give MiCSOptions, or None")
        if node_size is not None and not is_whole(node_size, 1):
            raise ShardingError(f"node_size is {node_size!r}: give the ranks of each node, or None")
        model_layers(model, layers, kept)  # before the ranks speak to each other
        if not dist.is_initialized():
            raise ShardingError('there is no process group: call torch.distributed.init_process_group("catchment")')
        world, rank = dist.get_world_size(), dist.get_rank()
        size = _node_size(world) if node_size is None else node_size
        if options.partition_size == "auto":
            options = replace(options, partition_size=_chosen(model, options, layers, world, size))
        assert options.partition_size != "auto"
        groups = Groups.of(world, options.partition_size, size)
        self._groups: list[dist.ProcessGroup] = []
        opener = partial(_open, self._groups)
        links = Links.open(groups, rank, opener, hierarchical=options.hierarchical)
        super().__init__(model, options, links, layers, kept)

    def close(self) -> None:
        """Remove the hooks, and end the groups: their jobs are free for others."""
        super().close()
        while self._groups:
            dist.destroy_process_group(self._groups.pop())


def _node_size(world: int) -> int:
    hosts: list[str] = [""] * world
    dist.all_gather_object(hosts, os.environ.get("CATCHMENT_NODE", socket.gethostname()))
    return node_size_of(hosts)


def _chosen(model: nn.Module, options: MiCSOptions, layers: Sequence[str] | None, world: int, node_size: int) -> int:
    memory = options.memory or _host_memory() // node_size
    numels = [layer.spec.numel for layer in model_layers(model, layers)]
    needs = {size: footprint(numels, options, size) for size in partition_sizes(world, node_size)}
    own: int | str
    try:
        own = choose(needs, memory, "the model").partition_size
    except ShardingError as error:
        own = f"rank {dist.get_rank()}: {error}"
    found: list[int | str] = [own] * world
    dist.all_gather_object(found, own)
    if failed := [said for said in found if isinstance(said, str)]:
        raise ShardingError(failed[0])
    size = max(said for said in found if isinstance(said, int))  # hosts may have unequal memory
    _LOG.info("partition groups of %d ranks: %s fit %d bytes of each", size, needs[size], memory)
    return size


def _host_memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _open(opened: list[dist.ProcessGroup], purpose: str, groups: Sequence[Ranks]) -> tuple[Communicator, Explain]:
    """A communicator of this rank's group, which is added to `opened`; all ranks make all groups."""
    rank = dist.get_rank()
    world = switch_of(dist.group.WORLD)
    patience = None if world is None else timedelta(seconds=world.communicator.timeout)  # torch gives its default else
    own = None
    for ranks in groups:
        made = dist.new_group(list(ranks), timeout=patience, group_desc=purpose)
        if rank in ranks:
            own = made
            opened.append(made)
    switch = switch_of(own)
    if switch is None:
        raise ShardingError(
            f"the {purpose} group of rank {rank} does not go through a switch: MiCS needs the backend catchment, and "
            "a switch for groups of ranks (docs/explanation/mics.md)"
        )
    if not switch.order.is_same:
        raise ShardingError(f"the {purpose} group of rank {rank} has its ranks in another order than its job")

    if world is not None:  # a rank that is gone stops those, too, that wait for ranks that wait for it
        switch.end_with(world, dist.get_process_group_ranks(own))

    def explain(error: CollectiveError) -> tuple[CollectiveError, Ranks]:
        details = ("kind", "operation", "peers", "seq", "hint", "fatal")
        told = switch.failed(error.message, **{name: getattr(error, name) for name in details})
        loss = None if world is None or switch.loss is None else world.await_loss()
        return told, () if loss is None else tuple(loss.ranks)

    return switch.communicator, explain
