"""A store as a checkpoint of torch.distributed.checkpoint (DCP), and back, a layer in memory at a time.

The checkpoint is what `dcp.save({"model": .., "optimizer": ..})` of torch's `get_state_dict(model, optimizer)` writes,
on whatever number of ranks: `dcp.load` and `set_state_dict` take it into a plain or a sharded model, and a checkpoint
of such a model becomes a store of any number of devices.
"""

from __future__ import annotations

import functools
import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.default_planner import DefaultSavePlanner
from torch.distributed.checkpoint.filesystem import FileSystemWriter
from torch.distributed.checkpoint.metadata import Metadata, MetadataIndex, TensorStorageMetadata
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import save

from catchment.host.checkpoint_reader import METADATA, CheckpointError, CheckpointReader, WeightsOnlyPlanner, reasons
from catchment.host.layers import LayerSpec, LayerTable, TensorSpec
from catchment.host.optimizer.rules import Adam, Sgd
from catchment.host.optimizer.store import ModelState, Rule, Store, StoreError, layer_names
from catchment.host.optimizer.store.importing import Progress, check_table, table_of
from catchment.host.optimizer.store.interchange import read_elements
from catchment.host.optimizer.torch_options import torch_group, unpack_groups
from catchment.host.optimizer.torch_state import MOMENTS, OWN, layer_notes, state_dict_of


def export_dcp(
    store: Store, folder: Path, *, state: ModelState | None = None, on_layer: Progress = lambda _: None
) -> Path:
    """Write weights and moments, fp32, of the present state (or `state`) as a checkpoint into `folder`.

    Raises:
        StoreError: kind ``busy``: the folder holds a checkpoint; ``full``, ``corrupt``, ``device``.
    """
    state = store.state if state is None else state
    geometry = store.geometry
    if (folder / METADATA).exists():
        raise StoreError("there is a checkpoint already", kind="busy", path=str(folder), hint="name an empty folder")
    sections = {section.name: section for section in geometry.state}

    @functools.lru_cache(maxsize=len(sections))
    def read(layer: int, section: str) -> torch.Tensor:
        on_layer(layer)
        return read_elements(store, state.layers[layer], layer, sections[section])

    places: dict[int, tuple[int, str, TensorSpec]] = {}
    stand_ins = []  # kept, so that no two have one id

    def stand_in(layer: LayerSpec, section: str, tensor: TensorSpec) -> torch.Tensor:
        made = torch.empty(tensor.shape, device="meta")
        stand_ins.append(made)
        places[id(made)] = (layer.index, section, tensor)
        return made

    class Lazily(DefaultSavePlanner):
        """Reads a tensor when it is to be written."""

        def lookup_object(self, index: MetadataIndex) -> Any:
            found = super().lookup_object(index)
            if id(found) not in places:
                return found
            layer, section, tensor = places[id(found)]
            return read(layer, section)[tensor.span].view(tensor.shape).clone()

    packed = state.notes.get("groups")
    if packed is None:  # never trained, or imported
        default = Adam() if geometry.rule is Rule.ADAM else Sgd()
        names = [tensor.name for layer in geometry.table for tensor in layer.tensors]
        groups = [torch_group(geometry.rule, default, default.lr, names)]
    else:
        groups = unpack_groups(geometry.table, geometry.rule, packed)
    steps = [version.steps for version in state.layers]
    notes = {
        "trained": state.trained,
        "store": dict(state.notes),
        "loss_scale": state.notes.get("loss_scale"),
        "layers": layer_notes(geometry.table, [version.notes for version in state.layers]),
    }
    whole = state_dict_of(geometry.table, geometry.rule, groups, steps, stand_in, notes)
    try:
        writer = FileSystemWriter(folder, single_file_per_rank=True, thread_count=1)
        with _in_one_process():
            save(whole, storage_writer=writer, planner=Lazily(), no_dist=True)
    except (CheckpointException, OSError) as error:
        raise _as_store_error(error, folder) from error
    return folder


@dataclass(frozen=True)
class DcpSource:
    """A checkpoint as `store.importing.import_model` takes models; made by `look_at_dcp`."""

    folder: Path
    table: LayerTable
    kind: Rule | None
    trained: int
    notes: Mapping[str, Any]
    layer_notes: Mapping[str, Any] = field(repr=False)
    metadata: Metadata = field(repr=False)

    def weights(self, tensor: TensorSpec) -> torch.Tensor:
        """See importing.Source."""
        return self._read(("model", tensor.name), tensor.shape)

    def moment(self, section: str, tensor: TensorSpec) -> torch.Tensor:
        """See importing.Source."""
        assert self.kind is not None
        name = MOMENTS[self.kind][section]
        if f"optimizer.state.{tensor.name}.{name}" not in self.metadata.state_dict_metadata:
            return torch.zeros(tensor.shape)  # frozen, or never updated
        return self._read(("optimizer", "state", tensor.name, name), tensor.shape)

    def layer_facts(self, layer: LayerSpec) -> tuple[tuple[int, ...], Any]:
        """See importing.Source."""
        return tuple(self._steps(tensor) for tensor in layer.tensors), self.layer_notes.get(layer.name)

    def _steps(self, tensor: TensorSpec) -> int:
        found = self.metadata.state_dict_metadata.get(f"optimizer.state.{tensor.name}.step")
        if not isinstance(found, TensorStorageMetadata):
            return 0
        counts = self._read(("optimizer", "state", tensor.name, "step"), tuple(found.size))
        count = float(counts) if counts.numel() == 1 else -1.0
        if not (count >= 0 and count.is_integer()):
            raise StoreError(
                f"optimizer.state.{tensor.name}.step is {counts.tolist()}, no number of updates", kind="mismatch",
                path=str(self.folder),
            )  # fmt: skip
        return int(count)

    def _read(self, path: Sequence[str], shape: tuple[int, ...]) -> torch.Tensor:
        described = self.metadata.state_dict_metadata[".".join(path)]
        if not isinstance(described, TensorStorageMetadata) or tuple(described.size) != shape:
            raise StoreError(f"{'.'.join(path)} is no tensor of shape {shape}", kind="mismatch", path=str(self.folder))
        found = torch.empty(shape, dtype=described.properties.dtype)
        _load(self.folder, self.metadata, {".".join(path): found})
        return found.to(torch.float32)


def look_at_dcp(folder: Path, layers: Sequence[str] = (), table: LayerTable | None = None) -> DcpSource:
    """Find out what a checkpoint holds; `layers` and `table` as for `interchange.look_at`.

    Nothing in the checkpoint is executed: its `.metadata` may name only the classes that torch writes there.

    Raises:
        StoreError: kind ``missing``, ``mismatch``, or ``corrupt``: a file of it is damaged.
    """
    try:
        metadata = CheckpointReader(folder).read_metadata()
    except OSError as error:
        raise StoreError(
            f"no checkpoint that can be read: {error.strerror}", kind="missing", path=str(folder / METADATA),
            hint="name the folder that `dcp.save` or an export wrote",
        ) from error  # fmt: skip
    except CheckpointError as error:
        raise StoreError(str(error), kind="corrupt") from None
    described = metadata.state_dict_metadata
    shapes = {
        key.removeprefix("model."): tuple(entry.size)
        for key, entry in described.items()
        if key.startswith("model.") and isinstance(entry, TensorStorageMetadata) and _is_weight(key, entry)
    }
    if not shapes:
        tops = sorted({key.split(".")[0] for key in described})
        raise StoreError(
            f"no weights below 'model': there is {', '.join(tops[:8])}", kind="mismatch", path=str(folder),
            hint='save {"model": ..., "optimizer": ...} of torch\'s get_state_dict',
        )  # fmt: skip
    own = _own_entry(folder, metadata) if OWN in described else {}
    if table is None:
        table = table_of(folder, shapes, layers, own.get("layers", ()))
    else:
        check_table(folder, shapes, table)
    layer_notes = {layer["name"]: layer["notes"] for layer in own.get("layers", ())}
    source = DcpSource(folder, table, _kind_of(described, folder), 0, {}, layer_notes, metadata)
    if own:
        notes = own.get("store", {"loss_scale": own.get("loss_scale")})
        return _with(source, own["trained"], notes)
    return _with(source, max((max(source.layer_facts(layer)[0]) for layer in table), default=0), {})


def _own_entry(folder: Path, metadata: Metadata) -> dict[str, Any]:
    """What a checkpoint has that torch does not know: `trained`, and perhaps `store` and `layers`.

    Raises:
        StoreError: kind ``corrupt``.
    """
    entry: dict[str, Any] = {OWN: ""}
    _load(folder, metadata, entry)
    try:
        own = json.loads(entry[OWN])
        if type(own["trained"]) is not int or own["trained"] < 0:
            raise ValueError(f"{own['trained']!r} training passes")
        if not isinstance(own.get("store", {}), dict):
            raise TypeError(f"notes that are a {type(own['store']).__name__}")
        for layer in own.get("layers", ()):
            named = isinstance(layer["name"], str) and all(isinstance(tensor, str) for tensor in layer["tensors"])
            if not named or "notes" not in layer:
                raise ValueError(f"layer {layer!r}")
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise StoreError(
            f"the entry {OWN!r} is damaged ({type(error).__name__}: {error})", kind="corrupt", path=str(folder),
            hint="restore the checkpoint from a copy, or save it without that entry",
        ) from error  # fmt: skip
    return dict(own)


def _with(source: DcpSource, trained: int, notes: Mapping[str, Any]) -> DcpSource:
    return DcpSource(source.folder, source.table, source.kind, trained, notes, source.layer_notes, source.metadata)


def _is_weight(key: str, entry: TensorStorageMetadata) -> bool:
    return entry.properties.dtype.is_floating_point and key.rpartition(".")[2] not in layer_names.BUFFERS


def _kind_of(described: Mapping[str, Any], folder: Path) -> Rule | None:
    held = [key.rpartition(".") for key in described if key.startswith("optimizer.state.")]
    if any(path.removeprefix("optimizer.state.").isdigit() for path, _, _ in held):
        raise StoreError(
            "the optimizer's state is by number, not by name", kind="mismatch", path=str(folder),
            hint="save what torch's get_state_dict(model, optimizer) gives",
        )  # fmt: skip
    names = {name for _, _, name in held}
    for kind, moments in MOMENTS.items():
        if names and names <= {"step", *moments.values()}:
            return kind
    if names:
        raise StoreError(f"the optimizer's state has {sorted(names)}", kind="mismatch", path=str(folder))
    return None


def _load(folder: Path, metadata: Metadata, into: dict[str, Any]) -> None:
    try:
        with _in_one_process():
            reader = CheckpointReader(folder, metadata)
            load(into, storage_reader=reader, planner=WeightsOnlyPlanner(), no_dist=True)
    except CheckpointException as error:
        raise StoreError(
            f"{', '.join(into)} cannot be read: {reasons(error)}", kind="corrupt", path=str(folder),
            hint="restore its files from a copy",
        ) from error  # fmt: skip


@contextmanager
def _in_one_process() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "torch.distributed is disabled", UserWarning)  # as wanted: no_dist
        yield


def _as_store_error(error: BaseException, folder: Path) -> StoreError:
    for cause in getattr(error, "failures", {}).values():
        inner = cause[0] if isinstance(cause, tuple) else cause
        if isinstance(inner, StoreError):
            return inner
    return StoreError(f"cannot be written: {error}", kind="device", path=str(folder), hint="the store is as it was")
