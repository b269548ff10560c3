"""Models in and out as safetensors: one file a layer and an index, as the Hugging Face hub lays out large models.

A tensor's weights have its own name; its moments, where they are exported, `optimizer.first.NAME` and
`optimizer.second.NAME`. The index's metadata says in which order the layers run, and how far the training was.
"""

from __future__ import annotations

import errno
import json
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from catchment.host.layers import LayerSpec, LayerTable, TensorSpec
from catchment.host.optimizer.store import layer_names
from catchment.host.optimizer.store.commit import LayerVersion, ModelState
from catchment.host.optimizer.store.errors import NO_SPACE, StoreError
from catchment.host.optimizer.store.geometry import Rule, Section
from catchment.host.optimizer.store.importing import Progress, check_table, table_of
from catchment.host.optimizer.store.store import Store
from catchment.host.optimizer.store.transfer import as_type, page_aligned

INDEX = "model.safetensors.index.json"
MOMENTS = {"first": "optimizer.first.", "second": "optimizer.second."}
_FORMAT = "catchment-optimizer-1"
_OTHERS = (
    ", or the folder of a DCP checkpoint; load what torch.save wrote, and save it with safetensors.torch's save_file "
    "first"
)
_PART = re.compile(r"(?P<model>.+)-\d{5}-of-(?P<of>\d{5})\.safetensors")


def export(
    store: Store,
    folder: Path,
    *,
    state: ModelState | None = None,
    moments: bool = False,
    on_layer: Progress = lambda _: None,
) -> Path:
    """Write fp32 weights, and the moments if asked, of the present state (or `state`) into `folder`; gives the index.

    Raises:
        StoreError: kind ``busy``: the folder holds a model; ``full``, ``corrupt``, ``device``.
    """
    state = store.state if state is None else state
    with _written_to(folder):
        folder.mkdir(parents=True, exist_ok=True)
    if (folder / INDEX).exists():
        raise StoreError("there is a model already", kind="busy", path=str(folder), hint="name an empty folder")
    table, places = store.geometry.table, {}
    wanted = [s for s in store.geometry.state if s.name == "master" or moments]
    for layer in table:
        on_layer(layer.index)
        tensors: dict[str, torch.Tensor] = {}
        for section in wanted:
            flat = read_elements(store, state.layers[layer.index], layer.index, section)
            prefix = MOMENTS.get(section.name, "")
            tensors.update({prefix + t.name: flat[t.span].view(t.shape).clone() for t in layer.tensors})
        name = f"model-{layer.index + 1:05d}-of-{len(table):05d}.safetensors"
        with _written_to(folder):
            save_file(tensors, folder / name, metadata={"format": "pt"})
        places.update(dict.fromkeys(tensors, name))
    facts = {
        "format": _FORMAT,
        "total_size": sum(layer.numel for layer in table) * 4,
        "rule": store.geometry.rule,
        "trained": state.trained,
        "notes": dict(state.notes),
        "layers": [
            {"name": layer.name, "tensors": [t.name for t in layer.tensors], "steps": state.layers[layer.index].steps,
             "notes": state.layers[layer.index].notes}
            for layer in table
        ],
    }  # fmt: skip
    with _written_to(folder):
        (folder / INDEX).write_text(json.dumps({"metadata": facts, "weight_map": places}, indent=1))
    return folder / INDEX


@contextmanager
def _written_to(folder: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, SafetensorError) as error:
        found = re.search(r"os error (\d+)", str(error))
        number = getattr(error, "errno", None) or int(found[1] if found else errno.EIO)
        raise StoreError(
            f"cannot be written: {os.strerror(number)}", kind="full" if number in NO_SPACE else "device",
            path=str(folder), hint="the store is as it was; name a folder that has room",
        ) from error  # fmt: skip


def read_elements(store: Store, version: LayerVersion, layer: int, section: Section) -> torch.Tensor:
    """A section of a layer, checked, as fp32 (flat, without padding)."""
    memory = page_aligned(store.geometry.section_bytes(layer, section))
    store.read(version, layer, section, memory).wait()
    store.verify(version, layer, section, store.digests(layer, section, memory))
    if section.size == 4:
        flat = torch.from_numpy(as_type(memory, np.float32))
    else:
        flat = torch.from_numpy(as_type(memory, np.int16)).view(torch.bfloat16).to(torch.float32)
    return flat[: store.geometry.table[layer].numel]


@dataclass(frozen=True, slots=True)
class SafetensorsSource:
    """A model in safetensors files: which file has which tensor, and its layers in order."""

    files: Mapping[str, Path]
    table: LayerTable
    facts: Mapping[str, Any]

    @property
    def kind(self) -> Rule | None:
        """See importing.Source."""
        exported = any(name.startswith(MOMENTS["first"]) for name in self.files)
        return Rule(self.facts["rule"]) if exported else None

    @property
    def trained(self) -> int:
        """See importing.Source."""
        return int(self.facts["trained"])

    @property
    def notes(self) -> Mapping[str, Any]:
        """See importing.Source."""
        return dict(self.facts["notes"])

    def weights(self, tensor: TensorSpec) -> torch.Tensor:
        """See importing.Source."""
        return self._read(tensor.name)

    def moment(self, section: str, tensor: TensorSpec) -> torch.Tensor:
        """See importing.Source."""
        return self._read(MOMENTS[section] + tensor.name)

    def layer_facts(self, layer: LayerSpec) -> tuple[tuple[int, ...], Any]:
        """See importing.Source."""
        found = {each["name"]: each for each in self.facts["layers"]}.get(layer.name)
        if found is None or found["tensors"] != [tensor.name for tensor in layer.tensors]:
            raise StoreError(f"the exported model has no layer {layer.name} of these tensors", kind="mismatch")
        return tuple(found["steps"]), found["notes"]

    def _read(self, name: str) -> torch.Tensor:
        if name not in self.files:
            raise StoreError(f"the exported model has no {name}", kind="mismatch", hint="export it again")
        with _opened(self.files[name]) as file:
            found: torch.Tensor = file.get_tensor(name)
        return found.to(torch.float32)


def look_at(path: Path, layers: Sequence[str] = (), table: LayerTable | None = None) -> SafetensorsSource:
    """Find out what `path` holds: a .safetensors file, or a folder with an index or with such files.

    Args:
        path: file or folder.
        layers: names of the layers in the order in which they run; a layer has the tensors whose names begin with
            its name and a dot. Without it: as exported, else by the names of the tensors (`layer_names.grouped`).
        table: of the model that workers will attach: `table_of(layers_of(model))`. Then the store has that table,
            which files alone cannot tell: in which order forward runs, and what is tied.

    Only weights are taken: integers and masks, as checkpoints of other libraries have them, are not trained.

    Raises:
        StoreError: kind ``missing`` or ``mismatch``.
    """
    files, facts = _files_of(path)
    shapes: dict[str, tuple[int, ...]] = {}
    for file in sorted(set(files.values())):
        with _opened(file) as opened:
            for name in opened.keys():  # noqa: SIM118
                found = opened.get_slice(name)
                if layer_names.is_weight(name, found.get_dtype()):
                    shapes[name] = tuple(found.get_shape())
    if facts.get("format") != _FORMAT and any(name.startswith(tuple(MOMENTS.values())) for name in shapes):
        raise StoreError(
            f"moments without {INDEX}, which says what they are of", kind="mismatch", path=str(path),
            hint="export it again: that has not come to its end",
        )  # fmt: skip
    own = {name: shape for name, shape in shapes.items() if not name.startswith(tuple(MOMENTS.values()))}
    listed = facts["layers"] if facts.get("format") == _FORMAT else ()
    chosen = table_of(path, own, layers, listed) if table is None else check_table(path, own, table)
    return SafetensorsSource(files, chosen, facts)


def _files_of(path: Path) -> tuple[dict[str, Path], dict[str, Any]]:
    index = path / INDEX if path.is_dir() else path
    try:
        if index.name == INDEX and index.exists():
            document = json.loads(index.read_text())
            files = {name: index.parent / Path(file).name for name, file in document["weight_map"].items()}
            return files, dict(document.get("metadata") or {})
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreError(f"the index makes no sense ({error})", kind="mismatch", path=str(index)) from error
    found = sorted(path.glob("*.safetensors")) if path.is_dir() else [path] if path.exists() else []
    if not found:
        raise StoreError(
            "no safetensors there", kind="missing", path=str(path), hint="name a file, or a folder of them" + _OTHERS
        )
    if path.is_dir():
        _check_whole(path, [file.name for file in found])
    files = {}
    for file in found:
        with _opened(file) as opened:
            files.update(dict.fromkeys(opened.keys(), file))
    return files, {}


def _check_whole(folder: Path, names: Sequence[str]) -> None:
    """Refuse a folder without an index that holds some of the files of a model, as an export does that was killed."""
    parts = filter(None, map(_PART.fullmatch, names))
    for (model, of), there in Counter((part["model"], int(part["of"])) for part in parts).items():
        if there != of:
            raise StoreError(
                f"{there} of {of} files of {model} are there, and no {INDEX}", kind="mismatch", path=str(folder),
                hint="export it again, or fetch the rest: this is a part of a model",
            )  # fmt: skip


@contextmanager
def _opened(file: Path) -> Iterator[Any]:
    try:
        with safe_open(file, "pt") as opened:
            yield opened
    except OSError as error:
        raise StoreError(f"cannot be read: {error}", kind="mismatch", path=str(file)) from error
    except SafetensorError as error:
        if _is_safetensors(file):
            raise StoreError(
                f"cannot be read: {error}", kind="mismatch", path=str(file),
                hint="it is damaged, or a part of it: fetch it, or export it, again",
            ) from error  # fmt: skip
        raise StoreError(
            "cannot be read, it is no safetensors file", kind="mismatch", path=str(file),
            hint="name a .safetensors file, a folder of them" + _OTHERS,
        ) from error  # fmt: skip


def _is_safetensors(file: Path) -> bool:
    """Whether a file begins like one: with the length of a header, in 8 bytes, and the header, an object in JSON."""
    with file.open("rb") as opened:
        return opened.read(9)[8:] == b"{"
