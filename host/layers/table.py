"""The table of layers: which tensors travel together, in which order, and where each lies in the flat layer."""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from catchment.host.layers.errors import TrainingError


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """One parameter tensor: its qualified name in the model, its shape, its first element in the flat layer."""

    name: str
    shape: tuple[int, ...]
    offset: int

    @property
    def numel(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def span(self) -> slice:
        """The tensor's elements in the layer's flat vector."""
        return slice(self.offset, self.offset + self.numel)


@dataclass(frozen=True, slots=True)
class LayerSpec:
    """What is pulled by one pull: the tensors of one layer, back to back."""

    index: int
    name: str
    tensors: tuple[TensorSpec, ...]

    @property
    def numel(self) -> int:
        """Elements of the whole layer."""
        return sum(tensor.numel for tensor in self.tensors)

    @staticmethod
    def of(index: int, name: str, shapes: Sequence[tuple[str, tuple[int, ...]]]) -> LayerSpec:
        """Lay out `shapes` (name, shape) back to back; raises TrainingError when there is nothing to lay out."""
        tensors = []
        offset = 0
        for tensor_name, shape in shapes:
            tensor = TensorSpec(tensor_name, tuple(shape), offset)
            if tensor.numel == 0:
                raise TrainingError(f"layer {index} ({name}): parameter {tensor_name} has no elements")
            tensors.append(tensor)
            offset += tensor.numel
        if not tensors:
            raise TrainingError(f"layer {index} ({name}) has no parameters: leave it out of layers=")
        return LayerSpec(index, name, tuple(tensors))


@dataclass(frozen=True, slots=True)
class Home:
    """Which of several optimizer nodes holds a table (catchment.host.layers.homes).

    Attributes:
        root: its number, from 0. roots: how many there are.
        plan: CRC-32 of the homes of the whole model's tensors; 0 for an optimizer node by itself.
    """

    root: int = 0
    roots: int = 1
    plan: int = 0


@dataclass(frozen=True, slots=True)
class LayerTable:
    """All layers in forward order. Workers and the optimizer node must hold the same table (see `digest`).

    Of several optimizer nodes each has a table of its own, with what it holds of the layers, and says so in `home`.
    """

    layers: tuple[LayerSpec, ...]
    home: Home = Home()

    def __len__(self) -> int:
        return len(self.layers)

    def __iter__(self) -> Iterator[LayerSpec]:
        return iter(self.layers)

    def __getitem__(self, index: int) -> LayerSpec:
        return self.layers[index]

    @property
    def numel(self) -> int:
        """Parameters of the model (S in the paper)."""
        return sum(layer.numel for layer in self.layers)

    @property
    def digest(self) -> int:
        """CRC-32 of names, shapes and homes: a worker notices by it that a PARAM message is of another model."""
        facts: list[object] = [
            [layer.name, [[tensor.name, list(tensor.shape)] for tensor in layer.tensors]] for layer in self.layers
        ]
        if self.home.roots > 1:
            facts.append([self.home.root, self.home.roots, self.home.plan])
        return zlib.crc32(json.dumps(facts, separators=(",", ":")).encode())
