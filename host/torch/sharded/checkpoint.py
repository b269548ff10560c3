"""Checkpoints of a sharded model by torch.distributed.checkpoint, which load at another partition size."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, Final
from weakref import WeakKeyDictionary

import torch
import torch.distributed as dist
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.metadata import Metadata, TensorStorageMetadata
from torch.distributed.checkpoint.state_dict_loader import load as load_state
from torch.distributed.checkpoint.state_dict_saver import save as save_state
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Replicate, Shard

from catchment.host.checkpoint_reader import CheckpointError, CheckpointReader, WeightsOnlyPlanner, reasons
from catchment.host.torch.sharded.errors import ShardingError
from catchment.host.torch.sharded.layout import PAIR
from catchment.host.torch.sharded.replacing_writer import ReplacingWriter
from catchment.host.torch.sharded.session import ShardedModel

_MODEL, _OPTIMIZER, _BUFFER, _GROUP = "model", "optimizer", "buffer", "group"
_PARAMETERS: Final = "params"
_SCALAR: Final = torch.Size([])
_MESHES: Final[WeakKeyDictionary[ShardedModel, DeviceMesh]] = WeakKeyDictionary()
"""Made with the first checkpoint of a model."""


def save(mics: ShardedModel, folder: Path | str, optimizer: torch.optim.Optimizer | None = None) -> None:
    """Write the model's and the optimizer's shards, the model's buffers (of rank 0) and the settings of the
    optimizer's groups into a folder; every part once, all ranks together.

    A checkpoint that is in the folder already is replaced when the new one is whole, not before.

    Raises:
        ShardingError: there is no process group, or a rank cannot write.
    """
    state = state_dict(mics, optimizer)
    if dist.get_rank() != 0:
        state = {key: value for key, value in state.items() if not key.startswith(f"{_BUFFER}.")}
    try:
        save_state(state, storage_writer=ReplacingWriter(folder))
    except CheckpointException as error:
        raise ShardingError(f"cannot write a checkpoint into {folder}: {reasons(error)}") from error


def load(mics: ShardedModel, folder: Path | str, optimizer: torch.optim.Optimizer | None = None) -> None:
    """Read what `save` has written, for the same model at any partition size; all ranks together.

    Nothing in it is executed: of what are no tensors it takes what `torch.load(weights_only=True)` takes.

    Raises:
        ShardingError: it is of another model, damaged, or cannot be read; nothing is changed, on no rank.
    """
    metadata = _metadata_in(folder)
    wanted = _state_to_fill(mics, folder, metadata.state_dict_metadata, optimizer)
    reader = CheckpointReader(Path(folder), metadata)
    try:
        load_state(wanted, storage_reader=reader, planner=WeightsOnlyPlanner())
    except CheckpointException as error:
        raise ShardingError(f"cannot read the checkpoint in {folder}: {reasons(error)}") from error
    load_state_dict(mics, wanted, optimizer)


def state_dict(mics: ShardedModel, optimizer: torch.optim.Optimizer | None = None) -> dict[str, Any]:
    """The shards as DTensors of (pairs, 2) elements for each layer, and the optimizer's states likewise; buffers and
    the settings of the optimizer's groups as they are.

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
    state.update((f"{_BUFFER}.{name}", buffer.detach()) for name, buffer in _buffers(mics).items())
    for number, group in enumerate([] if optimizer is None else optimizer.param_groups):
        state.update((f"{_GROUP}.{number}.{key}", value) for key, value in group.items() if key != _PARAMETERS)
    return state


def load_state_dict(
    mics: ShardedModel, state: Mapping[str, Any], optimizer: torch.optim.Optimizer | None = None
) -> None:
    """Take what `state_dict` has given, at this partition size; the optimizer's states, too, if there is one."""
    for number, group in enumerate([] if optimizer is None else optimizer.param_groups):
        prefix = f"{_GROUP}.{number}."
        group.update((key.removeprefix(prefix), value) for key, value in state.items() if key.startswith(prefix))
    with torch.no_grad():
        for name, buffer in _buffers(mics).items():
            buffer.copy_(state.get(f"{_BUFFER}.{name}", buffer))
        parameters = dict(mics.named_parameters())
        for name, parameter in parameters.items():
            _take(state[f"{_MODEL}.{name}"], parameter)
        if optimizer is None:
            return
        for key, (name, kind) in _optimizer_keys(state, parameters).items():
            value = state[key]
            if isinstance(value, DTensor):
                chunk = torch.zeros_like(parameters[name])
                _take(value, chunk)
                value = chunk
            optimizer.state[parameters[name]][kind] = value


def _metadata_in(folder: Path | str) -> Metadata:
    try:
        return CheckpointReader(Path(folder)).read_metadata()
    except OSError as error:
        raise ShardingError(f"there is no checkpoint in {folder}: {error.strerror or error}") from error
    except CheckpointError as error:
        raise ShardingError(str(error)) from None


def _state_to_fill(
    mics: ShardedModel, folder: Path | str, found: Mapping[str, Any], optimizer: torch.optim.Optimizer | None
) -> dict[str, Any]:
    """New tensors for all that a checkpoint has, if it is one of this model: the model's own stay as they are."""
    whole = state_dict(mics)
    mesh = _mesh(mics)
    parameters = dict(mics.named_parameters())
    numbers = {name: number for number, name in enumerate(parameters)}

    def rows(name: str) -> DTensor:
        return _rows(mics, numbers[name], torch.zeros_like(parameters[name].detach()), mesh)

    state: dict[str, Any] = {f"{_MODEL}.{name}": rows(name) for name in parameters}
    _check_layers(state, found, folder)
    for key, there in found.items():
        if key in whole and key not in state and isinstance(there, TensorStorageMetadata):
            if there.size != whole[key].shape:
                name = key.removeprefix(f"{_BUFFER}.")
                raise ShardingError(f"the checkpoint in {folder} is of another model: buffer {name} has another shape")
            state[key] = torch.zeros_like(whole[key])
    if optimizer is None:
        return state
    state.update((key, _empty(there)) for key, there in found.items() if key.startswith(f"{_GROUP}."))
    for key, (name, _) in _optimizer_keys(found, parameters).items():
        there = found[key]
        sharded = isinstance(there, TensorStorageMetadata) and there.size != _SCALAR
        state[key] = rows(name) if sharded else _empty(there)
    return state


def _optimizer_keys(keys: Iterable[str], layers: Collection[str]) -> dict[str, tuple[str, str]]:
    """Each key of an optimizer's states -> its layer and the state's name; a layer's name may begin with another's."""
    found = {}
    longest_first = sorted(layers, key=len, reverse=True)
    for key in keys:
        top, _, rest = key.partition(".")
        if top == _OPTIMIZER:
            name = next((name for name in longest_first if rest.startswith(f"{name}.")), None)
            if name is not None:
                found[key] = (name, rest.removeprefix(f"{name}."))
    return found


def _check_layers(state: Mapping[str, Any], found: Mapping[str, Any], folder: Path | str) -> None:
    """Refuse a checkpoint of other layers than those of `state`."""
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


def _empty(there: object) -> torch.Tensor | None:
    """What a value that is the same on all ranks is read into."""
    if not isinstance(there, TensorStorageMetadata):
        return None
    return torch.zeros(there.size, dtype=there.properties.dtype)


def _buffers(mics: ShardedModel) -> dict[str, torch.Tensor]:
    """The buffers that are part of the model's state, by name."""
    saved = mics.model.state_dict()
    return {name: buffer for name, buffer in mics.model.named_buffers() if name in saved}


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
