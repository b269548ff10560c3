"""The layers of a model, found from the names of its tensors alone: files hold no modules, and sort what they hold."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from catchment.host.optimizer.store.errors import StoreError

# What runs before a module's numbered blocks; everything else runs after them, a head last.
_FIRST: Final = re.compile(r"emb|shared|wte|wpe|stem|conv\d|patch|token|project_in", re.IGNORECASE)
_PLACES: Final = re.compile(r"pos|wpe", re.IGNORECASE)  # embeddings of places are added to those of tokens
_LAST: Final = re.compile(r"head|classif|output|embed_out|proj_out|pool|decoder$|score|^cls$", re.IGNORECASE)
BUFFERS: Final = {"inv_freq", "masked_bias", "running_mean", "running_var"}


def is_weight(name: str, kind: str) -> bool:
    """Whether a tensor is trained: floats are, save those that modules keep as buffers.

    Args:
        name: of the tensor.
        kind: its type as safetensors writes it, such as ``BF16`` or ``I64``.
    """
    return kind.startswith(("F", "BF")) and name.rpartition(".")[2] not in BUFFERS


def grouped(names: Iterable[str], layers: Sequence[str] = ()) -> dict[str, list[str]]:
    """Each layer's tensors, layers in the order in which they run.

    With `layers` a layer has the tensors whose names begin with its name and a dot.  Without, it is the module tree
    that the names spell: each block of a numbered list is a layer ("model.layers.2" before "model.layers.10"), and so
    is every module beside the lists; embeddings run before the blocks of their module, norms and heads after.

    Raises:
        StoreError: kind ``mismatch``: a tensor is in no layer of `layers`.
    """
    ordered = sorted(names, key=_natural)
    if not layers:
        tree = _Module("")
        for name in ordered:
            tree.add(name, name.split("."))
        return {layer.name: layer.tensors for layer in tree.layers()}
    found: dict[str, list[str]] = {layer: [] for layer in layers}
    for name in ordered:
        owner = next((layer for layer in layers if name.startswith(layer + ".")), None)
        if owner is None:
            raise StoreError(f"tensor {name} belongs to no layer of {list(layers)}", kind="mismatch")
        found[owner].append(name)
    return found


@dataclass(slots=True)
class _Module:
    name: str
    tensors: list[str] = field(default_factory=list)  # its own and those below
    children: dict[str, _Module] = field(default_factory=dict)
    owns: bool = False  # a tensor directly

    def add(self, tensor: str, path: Sequence[str]) -> None:
        self.tensors.append(tensor)
        if len(path) == 1:
            self.owns = True
            return
        name = f"{self.name}.{path[0]}" if self.name else path[0]
        self.children.setdefault(path[0], _Module(name)).add(tensor, path[1:])

    @property
    def is_list(self) -> bool:
        return bool(self.children) and not self.owns and all(child.isdigit() for child in self.children)

    @property
    def holds_lists(self) -> bool:
        return self.is_list or any(child.holds_lists for child in self.children.values())

    def layers(self) -> list[_Module]:
        if self.is_list:
            return list(self.children.values())
        if self.name and (self.owns or not self.holds_lists):
            return [self]
        # A tensor that is in no module is a layer of its own.
        own = [_Module(tensor, [tensor]) for tensor in self.tensors if "." not in tensor]
        parts = sorted([*self.children.items(), *((part.name, part) for part in own)], key=_turn)
        return [layer for _, part in parts for layer in part.layers() or [part]]


def _turn(part: tuple[str, _Module]) -> tuple[int, str]:
    """The turn in which a child of a module runs, among its siblings."""
    name, module = part
    if module.holds_lists:
        return (1, {"encoder": "", "decoder": "~"}.get(name, name))
    if _LAST.search(name):
        return (3, name)
    if _FIRST.search(name):
        return (0, f"~{name}" if _PLACES.search(name) else name)
    return (2, name)


def _natural(name: str) -> list[tuple[int, int, str]]:
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in name.split(".")]
