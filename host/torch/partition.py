"""Which modules are the layers of a model, and which parameters each one owns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import nn

from catchment.host.layers import LayerSpec, LayerTable, TrainingError


@dataclass(frozen=True, slots=True)
class ModelLayer:
    """One layer of a model: the module whose forward uses it, and the layout of its parameters."""

    module: nn.Module
    spec: LayerSpec


def layers_of(model: nn.Module, layers: Sequence[str] | None = None) -> list[ModelLayer]:
    """Split `model` into layers, in the order in which its forward runs them.

    `layers` names submodules (as in `named_modules`). By default every child that has parameters is a layer, and
    the children of an nn.ModuleList or nn.Sequential are layers of their own: embedding, each decoder block, head.
    A child without parameters of its own that has an nn.ModuleList somewhere below is looked into in the same way:
    "model.embed_tokens", "model.layers.0", ..., "model.norm", "lm_head".
    A parameter used twice inside one layer is sent once.

    Raises:
        TrainingError: a name is unknown, a parameter is in no layer, or is shared by two layers (tied weights).
    """
    modules = dict(model.named_modules())
    names = _default_names(model) if layers is None else list(layers)
    unknown = [name for name in names if name not in modules]
    if unknown:
        raise TrainingError(f"layers= names {unknown}, which the model does not have; it has {sorted(modules)[:20]}")
    if not names:
        raise TrainingError("the model has no layers: no child module holds parameters")
    owner: dict[int, str] = {}
    found: list[ModelLayer] = []
    for index, name in enumerate(names):
        shapes: list[tuple[str, tuple[int, ...]]] = []
        for local, parameter in modules[name].named_parameters():
            full = f"{name}.{local}" if name else local
            if id(parameter) in owner:
                raise TrainingError(
                    f"parameter {full} is shared by layers {owner[id(parameter)]} and {name}: tied weights must lie in "
                    "one layer (put both modules in one, or untie them), since each layer is pulled and updated alone"
                )
            owner[id(parameter)] = name
            shapes.append((full, tuple(parameter.shape)))
        found.append(ModelLayer(modules[name], LayerSpec.of(index, name, shapes)))
    homeless = [name for name, parameter in model.named_parameters() if id(parameter) not in owner]
    if homeless:
        raise TrainingError(f"parameters {homeless} are in no layer: name the modules that hold them in layers=")
    return found


def table_of(layers: Sequence[ModelLayer]) -> LayerTable:
    """The table both ends must agree on."""
    return LayerTable(tuple(layer.spec for layer in layers))


def _default_names(model: nn.Module, prefix: str = "") -> list[str]:
    names: list[str] = []
    for local, child in model.named_children():
        name = prefix + local
        if isinstance(child, nn.ModuleList | nn.Sequential):
            names += [f"{name}.{block}" for block, inner in child.named_children() if _has_parameters(inner)]
        elif _is_frame(child):
            names += _default_names(child, f"{name}.")
        elif _has_parameters(child):
            names.append(name)
    return names


def _is_frame(module: nn.Module) -> bool:
    """Whether a module only holds others, a list of blocks among them: as `model` of a language model with its head."""
    own = next(module.parameters(recurse=False), None)
    return own is None and any(
        isinstance(inner, nn.ModuleList) and _has_parameters(inner) for inner in module.modules()
    )


def _has_parameters(module: nn.Module) -> bool:
    return next(module.parameters(), None) is not None
