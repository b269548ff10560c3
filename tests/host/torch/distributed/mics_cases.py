"""MiCS over the ranks of torch.distributed, its checkpoints, and FSDP2 with the hierarchical gather; four ranks."""

from __future__ import annotations

import copy
import errno
import os
import pickle
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.checkpoint.filesystem import FileSystem, FileSystemWriter
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor

from catchment.host.torch.distributed.native_group import switch_of
from catchment.host.torch.sharded import Groups, MiCS, MiCSOptions, ShardingError
from catchment.host.torch.sharded.checkpoint import load, save
from catchment.host.torch.sharded.fsdp import accumulate, hierarchical

STEPS, MICRO_STEPS = 3, 2


def refused(call: Callable[[], Any]) -> str:
    """What a call says that has to be refused."""
    try:
        call()
    except ShardingError as error:
        return str(error)
    raise AssertionError("it was not refused")


def model(width: int = 9) -> nn.Module:
    torch.manual_seed(11)
    blocks = [nn.Sequential(nn.Linear(width, 13), nn.GELU(), nn.Linear(13, width)) for _ in range(3)]
    return nn.Sequential(*blocks, nn.Linear(width, 2))


def batch(rank: int, step: int, number: int) -> torch.Tensor:
    made = torch.Generator().manual_seed(1000 * step + 10 * number + rank)
    return torch.randn(3, 9, generator=made)


def train(mics: MiCS, optimizer: torch.optim.Optimizer, steps: range) -> None:
    for step in steps:
        for number in range(MICRO_STEPS):
            with mics.micro_step(number):
                (mics.model(batch(dist.get_rank(), step, number)) ** 2).mean().backward()
        optimizer.step()
        optimizer.zero_grad()


def options(partition_size: int, **more: Any) -> MiCSOptions:
    return MiCSOptions(partition_size=partition_size, micro_steps=MICRO_STEPS, accumulate="int", **more)


def weights(mics: MiCS) -> list[torch.Tensor]:
    """Every layer's, from all ranks of the partition group."""
    found = []
    for number, (_, parameter) in enumerate(mics.named_parameters()):
        chunks: list[Any] = [None] * dist.get_world_size()
        dist.all_gather_object(chunks, parameter.detach())
        first = mics.links.groups.partition(dist.get_rank())[0]
        whole = torch.cat(chunks[first : first + mics.links.groups.partition_size])
        found.append(whole[: mics.shards.layouts[number].rows * 2].clone())
    return found


def reference(steps: int) -> list[torch.Tensor]:
    """The same training with the whole model on every rank."""
    with MiCS(model(), options(1), node_size=1) as whole:
        train(whole, torch.optim.AdamW(whole.parameters(), lr=0.01), range(steps))
        return weights(whole)


def case_groups_have_the_timeout_of_the_process_group(rank: int, size: int) -> None:
    world = switch_of(dist.group.WORLD)
    assert world is not None
    with MiCS(model(), options(2), node_size=2) as mics:
        made = [line.communicator for line in mics.links.lines if line.communicator is not None]
        assert made and {one.timeout for one in made} == {world.communicator.timeout}


def case_a_checkpoint_loads_at_another_partition_size(rank: int, size: int) -> None:
    folder: list[Any] = [tempfile.mkdtemp() if rank == 0 else None]
    dist.broadcast_object_list(folder, 0)
    with MiCS(model(), options(4), node_size=2) as mics:
        optimizer = torch.optim.AdamW(mics.parameters(), lr=0.01)
        train(mics, optimizer, range(STEPS))
        save(mics, folder[0], optimizer)
    torch.manual_seed(11)
    with MiCS(nn.Sequential(*copy.deepcopy(list(model().children()))), options(2), node_size=2) as mics:
        optimizer = torch.optim.AdamW(mics.parameters(), lr=0.01)
        load(mics, folder[0], optimizer)
        train(mics, optimizer, range(STEPS, 2 * STEPS))
        found = weights(mics)
    for own, right in zip(found, reference(2 * STEPS), strict=True):
        assert torch.equal(own, right)
    with MiCS(nn.Sequential(*list(model().children())[:3]), options(2), node_size=2) as other:
        before = [value.detach().clone() for value in other.parameters()]
        assert "its layer 3 is not in this one" in refused(lambda: load(other, folder[0]))
        assert all(map(torch.equal, before, other.parameters()))
    with MiCS(model(8), options(2), node_size=2) as wider:
        assert "layer 0.0 has 130 parameters there, 118 here" in refused(lambda: load(wider, folder[0]))
        assert "there is no checkpoint in" in refused(lambda: load(wider, Path(folder[0]) / "none"))


def case_a_checkpoint_has_buffers_and_the_settings_of_the_optimizer(rank: int, size: int) -> None:
    folder: list[Any] = [tempfile.mkdtemp() if rank == 0 else None]
    dist.broadcast_object_list(folder, 0)

    def made() -> nn.Module:
        torch.manual_seed(11)
        return nn.Sequential(nn.Linear(9, 13), nn.BatchNorm1d(13), nn.Linear(13, 2))

    x = batch(0, 0, 0)
    with MiCS(made(), options(4), node_size=2) as mics:
        optimizer = torch.optim.AdamW(mics.parameters(), lr=0.01)
        train(mics, optimizer, range(STEPS))
        optimizer.param_groups[0]["lr"] = 0.005
        save(mics, folder[0], optimizer)
        mics.model.eval()
        with torch.no_grad():
            before = [mics.model(x)]
        dist.broadcast(before[0], 0)  # each rank had its own means
    with MiCS(made(), options(2), node_size=2) as mics:
        optimizer = torch.optim.AdamW(mics.parameters(), lr=0.01)
        load(mics, folder[0], optimizer)
        assert optimizer.param_groups[0]["lr"] == 0.005
        mics.model.eval()
        with torch.no_grad():
            assert torch.equal(mics.model(x), before[0])


def case_a_checkpoint_is_replaced_when_the_next_is_whole(rank: int, size: int) -> None:
    """A rank that cannot write, or a first rank that fails at the very end, leaves the one that was there."""
    folder: list[Any] = [tempfile.mkdtemp() if rank == 0 else None]
    dist.broadcast_object_list(folder, 0)
    place = Path(folder[0])

    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with MiCS(model(), options(4), node_size=2) as mics:

        def fill(value: float) -> None:
            with torch.no_grad():
                for parameter in mics.parameters():
                    parameter.fill_(value)

        def is_filled(value: float) -> bool:
            return all(bool((layer == value).all()) for layer in weights(mics))

        fill(1.0)
        save(mics, place)
        for where, step in ((2, "write_data"), (0, "finish"), (0, "rename")):
            fill(2.0)
            with pytest.MonkeyPatch.context() as broken:
                if rank == where:
                    broken.setattr(FileSystem if step == "rename" else FileSystemWriter, step, fail)
                said = refused(lambda: save(mics, place))
            assert f"cannot write a checkpoint into {place}: " in said and f"rank {where}" in said, said
            assert "No space left on device" in said, said
            load(mics, place)
            assert is_filled(1.0), step
        fill(3.0)
        save(mics, place)
        dist.barrier()
        files = sorted(place.iterdir())
        assert len(files) == size + 1, "what failed, and what came before, is gone"
        fill(4.0)
        load(mics, place)
        assert is_filled(3.0)

        if rank == 0:
            os.truncate(files[-1], 7)
        dist.barrier()
        fill(5.0)
        assert f"cannot read the checkpoint in {place}: rank" in refused(lambda: load(mics, place))
        assert is_filled(5.0), "nothing is changed"


class Planted:
    """Unpickled, it makes a folder."""

    def __init__(self, path: Path) -> None:
        self._path = str(path)

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (self._path,)


def case_a_damaged_checkpoint_is_said_and_nothing_in_it_is_executed(rank: int, size: int) -> None:
    folder: list[Any] = [tempfile.mkdtemp() if rank == 0 else None]
    dist.broadcast_object_list(folder, 0)
    place, there = Path(folder[0]) / "saved", Path(folder[0]) / "there"
    with MiCS(model(), options(4), node_size=2) as mics:
        optimizer = torch.optim.AdamW(mics.parameters(), lr=0.01)
        optimizer.param_groups[0]["planted"] = Planted(there)
        save(mics, place, optimizer)
        assert f"cannot read the checkpoint in {place}: rank 0: Weights only load failed" in refused(
            lambda: load(mics, place, optimizer)
        )
        for raw in (b"garbage", pickle.dumps(Planted(there))):
            dist.barrier()
            if rank == 0:
                (place / ".metadata").write_bytes(raw)
            dist.barrier()
            before = weights(mics)
            assert f"{place}/.metadata: no metadata of a checkpoint (" in refused(lambda: load(mics, place))
            assert all(map(torch.equal, weights(mics), before)), "nothing is changed"
        assert not there.exists()


def case_a_checkpoint_of_a_layer_whose_name_begins_with_another_s(rank: int, size: int) -> None:
    folder: list[Any] = [tempfile.mkdtemp() if rank == 0 else None]
    dist.broadcast_object_list(folder, 0)

    def made() -> nn.Module:
        torch.manual_seed(11)
        outer = nn.Linear(9, 9)
        outer.fc = nn.Linear(9, 4)
        outer.register_forward_hook(lambda module, _, out: module.fc(out))
        return nn.Sequential(outer, nn.Linear(4, 2))

    layers = ["0.fc", "0", "1"]
    with MiCS(made(), options(4), layers=layers, node_size=2) as mics:
        optimizer = torch.optim.AdamW(mics.parameters(), lr=0.01)
        train(mics, optimizer, range(STEPS))
        save(mics, folder[0], optimizer)
        before = {name: dict(optimizer.state[one]) for name, one in mics.named_parameters()}
    with MiCS(made(), options(4), layers=layers, node_size=2) as mics:
        optimizer = torch.optim.AdamW(mics.parameters(), lr=0.01)
        load(mics, folder[0], optimizer)
        for name, parameter in mics.named_parameters():
            assert set(before[name]) == set(optimizer.state[parameter])
            for kind, value in before[name].items():
                assert torch.equal(optimizer.state[parameter][kind], value), (name, kind)


def case_every_group_is_a_job_of_its_own(rank: int, size: int) -> None:
    generations: list[int] = []
    for partition_size, kinds in ((4, 4), (2, 3)):  # lanes and nodes; one node, and replicas
        with MiCS(model(), options(partition_size), node_size=2) as mics:
            train(mics, torch.optim.AdamW(mics.parameters(), lr=0.01), range(STEPS))
            lines = [line.communicator for line in mics.links.lines if line.communicator is not None]
            assert len(lines) == kinds
            generations += [communicator.stream.gen for communicator in lines]
            found = weights(mics)
        for own, right in zip(found, reference(STEPS), strict=True):
            assert torch.equal(own, right)
    assert len(set(generations)) == len(generations), generations


def case_a_closed_model_leaves_no_groups(rank: int, size: int) -> None:
    before = len(dist.distributed_c10d._world.pg_map)
    with MiCS(model(), options(2), node_size=2):
        assert len(dist.distributed_c10d._world.pg_map) == before + 3
    assert len(dist.distributed_c10d._world.pg_map) == before


def case_bf16_layers_train(rank: int, size: int) -> None:
    before = float((model()(batch(rank, 0, 0)).detach() ** 2).mean())
    with MiCS(model(), options(4, param_dtype=torch.bfloat16), node_size=2) as mics:
        train(mics, torch.optim.AdamW(mics.parameters(), lr=0.01), range(4))
        with torch.no_grad():
            out = mics.model(batch(rank, 0, 0))
    assert out.dtype == torch.bfloat16
    assert float((out.float() ** 2).mean()) < before


def case_auto_takes_the_smallest_that_fits(rank: int, size: int) -> None:
    with MiCS(model(), MiCSOptions(), node_size=2) as mics:
        assert mics.links.groups.partition_size == 1
    os.environ["CATCHMENT_NODE"] = f"n{rank // 2}"
    try:
        with MiCS(model(), MiCSOptions(memory=16000)) as mics:
            assert mics.links.groups.node_size == 2
            assert mics.links.groups.partition_size == 2
        assert "the model fits no partition group: on 4 ranks each needs" in refused(
            lambda: MiCS(model(), MiCSOptions(memory=1000))
        )
        os.environ["CATCHMENT_NODE"] = f"n{rank // 3}"
        assert "unequal numbers of ranks (n0 3, n1 1)" in refused(lambda: MiCS(model()))
    finally:
        del os.environ["CATCHMENT_NODE"]


def case_weights_that_differ_are_refused(rank: int, size: int) -> None:
    own = model()
    with torch.no_grad():
        own[0][0].weight[0, 0] += rank == 2
    said = refused(lambda: MiCS(own, options(2), node_size=2))
    assert ("the weights of rank" in said and " 2" in said) or "the ranks have different weights" in said


def digest(staged: bool) -> float:
    """A digest of an FSDP2 model on partition groups of four, or of two pairs, after some steps."""
    size = dist.get_world_size()
    groups = Groups.of(size, 4, 2)
    whole = model()
    mesh = init_device_mesh("cpu", (size // 4, 4), mesh_dim_names=("replicate", "shard"))
    for block in whole:
        fully_shard(block, mesh=mesh)
    fully_shard(whole, mesh=mesh)
    if staged:
        hierarchical(whole, groups)
    optimizer = torch.optim.AdamW(whole.parameters(), lr=0.01)
    for step in range(STEPS):
        for number in range(MICRO_STEPS):
            accumulate(whole, last=number == MICRO_STEPS - 1)
            (whole(batch(dist.get_rank(), step, number)) ** 2).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    full = [value.full_tensor() for value in whole.parameters() if isinstance(value, DTensor)]
    return float(torch.cat([value.detach().reshape(-1) for value in full]).double().square().sum())


def case_fsdp2_with_a_hierarchical_gather_gives_the_same_bits(rank: int, size: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert digest(staged=True) == digest(staged=False)
    assert "has no FSDP modules" in refused(lambda: accumulate(nn.Linear(2, 2), last=True))
