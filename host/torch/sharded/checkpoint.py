"""Checkpoints of a sharded model by torch.distributed.checkpoint, which load at another partition size."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from weakref import WeakKeyDictionary

import torch
import torch.distributed as dist
from torch.distributed.checkpoint.filesystem import FileSystemReader
from torch.distributed.checkpoint.metadata import TensorStorageMetadata
from torch.distributed.checkpoint.state_dict_loader import load as load_state
from torch.distributed.checkpoint.state_dict_saver import save as save_state
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Replicate, Shard

from catchment.host.torch.sharded.errors import ShardingError
from catchment.host.torch.sharded.layout import PAIR
from catchment.host.torch.sharded.session import ShardedModel

_MODEL, _OPTIMIZER = "model", "optimizer"
_SCALAR: Final = torch.Size([])
_MESHES: Final[WeakKeyDictionary[ShardedModel, DeviceMesh]] = WeakKeyDictionary()
"""Made with the first checkpoint of a model."""


def save(mics: ShardedModel, folder: Path | str, optimizer: torch.optim.Optimizer | None = None) -> None:
    """Write the model's and the optimizer's shards into a folder; every part once, all ranks together.

    Raises:
        ShardingError: there is no process group.
    """
    save_state(state_dict(mics, optimizer), checkpoint_id=str(folder))


def load(mics: ShardedModel, folder: Path | str, optimizer: torch.optim.Optimizer | None = None) -> None:
    """Read what `save` has written, for the same model at any partition size; all ranks together.

    Raises:
        ShardingError: it is of another model; nothing is changed.
    """
    wanted = _state_to_fill(mics, folder, optimizer)
    load_state(wanted, checkpoint_id=str(folder))
    load_state_dict(mics, wanted, optimizer)


def state_dict(mics: ShardedModel, optimizer: torch.optim.Optimizer | None = None) -> dict[str, Any]:
    """The shards as DTensors of (pairs, 2) elements for each layer, and the optimizer's states likewise.

    Raises:
        ShardingError: there is no process group.
    """
    mesh = _mesh(mics)
    state: dict[str, Any] = {}
    for number, (name, parameter) in enumerate(mics.named_parameters()):
        state[f"{_MODEL}.{name}"] = _rows(mics, number, parameter.detach(), mesh)
        for key, value in ({} if optimizer is None else optimizer.state.get(parameter, {})).items():
            shared = isinstance(value, torch.Tensor) and value.shape == parameter.shape
            state[f"{_OPTIMIZER}.{name}.{key}"] = _rows(mics, number, value, mesh) if shared else value
    return state


def load_state_dict(
    mics: ShardedModel, state: Mapping[str, Any], optimizer: torch.optim.Optimizer | None = None
) -> None:
    """Take what `state_dict` has given, at this partition size; the optimizer's states, too, if there is one."""
    with torch.no_grad():
        for name, parameter in mics.named_parameters():
            _take(state[f"{_MODEL}.{name}"], parameter)
            if optimizer is None:
                continue
            prefix = f"{_OPTIMIZER}.{name}."
            for key in [key for key in state if key.startswith(prefix)]:
                value = state[key]
                if isinstance(value, DTensor):
                    chunk = torch.zeros_like(parameter)
                    _take(value, chunk)
                    value = chunk
                optimizer.state[parameter][key.removeprefix(prefix)] = value


def _state_to_fill(mics: ShardedModel, folder: Path | str, optimizer: torch.optim.Optimizer | None) -> dict[str, Any]:
    """Tensors for all that a checkpoint has, if it is one of this model."""
    try:
        found = FileSystemReader(str(folder)).read_metadata().state_dict_metadata
    except OSError as error:
        raise ShardingError(f"there is no checkpoint in {folder}: {error.strerror or error}") from error
    state = state_dict(mics)
    for key, own in state.items():
        name = key.removeprefix(f"{_MODEL}.")
        there = found.get(key)
        if not isinstance(there, TensorStorageMetadata):
            raise ShardingError(f"the checkpoint in {folder} is of another model: it has no layer {name}")
        if there.size != own.shape:
            sizes = f"{there.size.numel()} parameters there, {own.shape.numel()} here"
            raise ShardingError(f"the checkpoint in {folder} is of another model: layer {name} has {sizes}")
    more = [key for key in found if key.startswith(f"{_MODEL}.") and key not in state]
    if more:
        layer = more[0].removeprefix(f"{_MODEL}.")
        raise ShardingError(f"the checkpoint in {folder} is of another model: its layer {layer} is not in this one")
    if optimizer is None:
        return state
    mesh = _mesh(mics)
    for number, (name, parameter) in enumerate(mics.named_parameters()):
        for key, there in found.items():
            if not key.startswith(f"{_OPTIMIZER}.{name}."):
                continue
            if not isinstance(there, TensorStorageMetadata):
                state[key] = None
            elif there.size == _SCALAR:
                state[key] = torch.zeros(_SCALAR, dtype=there.properties.dtype)
            else:
                state[key] = _rows(mics, number, torch.zeros_like(parameter.detach()), mesh)
    return state


def _mesh(mics: ShardedModel) -> DeviceMesh:
    if not dist.is_initialized():
        raise ShardingError("checkpoints need a process group: call torch.distributed.init_process_group first")
    groups = mics.links.groups
    ranks = torch.arange(groups.world).view(-1, groups.partition_size)
    if mics not in _MESHES:
        _MESHES[mics] = DeviceMesh("cpu", ranks, mesh_dim_names=("replicate", "shard"))
    return _MESHES[mics]


def _rows(mics: ShardedModel, layer: int, chunk: torch.Tensor, mesh: DeviceMesh) -> DTensor:
    layout = mics.shards.layouts[layer]
    rows = layout.own_rows(mics.links.groups.number(mics.links.rank))
    local = chunk[: rows * PAIR].view(rows, PAIR)
    shape = torch.Size([layout.rows, PAIR])
    return DTensor.from_local(local, mesh, [Replicate(), Shard(0)], run_check=False, shape=shape, stride=(PAIR, 1))


def _take(value: DTensor, chunk: torch.Tensor) -> None:
    """Write a DTensor's rows into a chunk, unless they are there already."""
    local = value.to_local().reshape(-1)
    chunk.detach()[: local.numel()].copy_(local)
