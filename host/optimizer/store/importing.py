"""A store from a model in files, whatever wrote them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch

from catchment.host.layers import LayerSpec, LayerTable, TensorSpec, TrainingError
from catchment.host.optimizer.store import layer_names
from catchment.host.optimizer.store.devices import StoreOptions
from catchment.host.optimizer.store.errors import StoreError
from catchment.host.optimizer.store.geometry import Geometry, Precision, Rule
from catchment.host.optimizer.store.store import Store, fill
from catchment.host.optimizer.store.transfer import Memory, as_type, page_aligned

Progress = Callable[[int], None]


class Source(Protocol):
    """A model in files, with or without the state of its optimizer.

    Attributes:
        table: its layers in order.
        kind: of the optimizer whose moments it has; None: it has none.
        trained, notes: of the training, as `Store.commit` takes them.
    """

    @property
    def table(self) -> LayerTable: ...
    @property
    def kind(self) -> Rule | None: ...
    @property
    def trained(self) -> int: ...
    @property
    def notes(self) -> Mapping[str, Any]: ...

    def weights(self, tensor: TensorSpec) -> torch.Tensor:
        """Fp32, flat or not."""

    def moment(self, section: str, tensor: TensorSpec) -> torch.Tensor:
        """Fp32, flat or not; `section`: first or second."""

    def layer_facts(self, layer: LayerSpec) -> tuple[tuple[int, ...], Any]:
        """How often each tensor was updated, and what the trainer keeps with the layer."""


def check_table(path: Path, shapes: Mapping[str, tuple[int, ...]], table: LayerTable) -> LayerTable:
    """`table`, if there are tensors of those names and shapes; what else there is (tied copies, buffers) is left out.

    Raises:
        StoreError: kind ``mismatch``: a tensor is missing or has another shape.
    """
    for layer in table:
        for tensor in layer.tensors:
            found = shapes.get(tensor.name)
            if found != tensor.shape:
                there = "is not there" if found is None else f"has the shape {found}"
                raise StoreError(
                    f"the model has {tensor.name} of shape {tensor.shape}; here it {there}", kind="mismatch",
                    path=str(path), hint="import the files of the model that the workers attach",
                )  # fmt: skip
    return table


def table_of(
    path: Path, shapes: Mapping[str, tuple[int, ...]], layers: Sequence[str], listed: Sequence[Mapping[str, Any]]
) -> LayerTable:
    """The layers of a model with these tensors: by `layers`, else as `listed`, else by the tensors' names.

    Raises:
        StoreError: kind ``mismatch``: there are none, or what is `listed`, name and tensors of each layer, has others.
    """
    if not shapes:
        raise StoreError("no weights there, only integers and masks or nothing", kind="mismatch", path=str(path))
    if not layers and listed:
        grouped = {layer["name"]: list(layer["tensors"]) for layer in listed}
    else:
        grouped = layer_names.grouped(shapes, layers)
    try:
        specs = [
            LayerSpec.of(index, name, [(tensor, shapes[tensor]) for tensor in tensors])
            for index, (name, tensors) in enumerate(grouped.items())
        ]
    except (KeyError, TrainingError) as error:
        raise StoreError(f"the model does not fit its index: {error}", kind="mismatch", path=str(path)) from error
    return LayerTable(tuple(specs))


def import_model(
    source: Source,
    places: Sequence[str | Path],
    *,
    rule: Rule = Rule.ADAM,
    parameters: Precision = Precision.BF16,
    moments: Precision = Precision.FP32,
    options: StoreOptions | None = None,
    overwrite: bool = False,
    on_layer: Progress = lambda _: None,
) -> Store:
    """A new store with the weights of `source`, and its moments where it has those of `rule`."""
    geometry = Geometry(source.table, len(places), rule, parameters, moments)

    def weights(layer: int) -> torch.Tensor:
        on_layer(layer)
        return torch.cat([source.weights(tensor).reshape(-1) for tensor in source.table[layer].tensors])

    def complete(store: Store) -> None:
        if source.kind is rule:
            for layer in source.table:
                _take_moments(store, source, layer)
            store.commit(source.trained, source.notes)

    return Store.create(places, geometry, weights, options, overwrite=overwrite, complete=complete)


def _take_moments(store: Store, source: Source, layer: LayerSpec) -> None:
    geometry = store.geometry
    sections: dict[str, Memory] = {
        section.name: page_aligned(geometry.section_bytes(layer.index, section)) for section in geometry.sections
    }
    fill(sections, torch.cat([source.weights(tensor).reshape(-1) for tensor in layer.tensors]))
    for section in geometry.state[1:]:
        flat = torch.cat([source.moment(section.name, tensor).reshape(-1) for tensor in layer.tensors])
        memory = sections[section.name]
        if section.size == 4:
            torch.from_numpy(as_type(memory, np.float32))[: flat.numel()].copy_(flat)
        else:
            torch.from_numpy(as_type(memory, np.int16)).view(torch.bfloat16)[: flat.numel()].copy_(flat)
    steps, notes = source.layer_facts(layer)
    plane = store.place(layer.index)
    store.put(layer.index, store.write_layer(plane, layer.index, sections, steps, notes))
