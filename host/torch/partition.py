"""Which modules are the layers of a model, and which parameters each one owns."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import torch
from torch import nn

from catchment.host.layers import LayerSpec, LayerTable, TrainingError

_WRAPPERS: Final = {"_checkpoint_wrapped_module", "_orig_mod"}


@dataclass(frozen=True, slots=True)
class ModelLayer:
    """One layer of a model.

    Attributes:
        module: whose forward uses it.
        spec: the layout of its parameters.
        names: their names within the module, as `named_parameters` has them.
        kept: a later layer uses its parameters too, or runs its module again, so they keep their memory until then.
    """

    module: nn.Module
    spec: LayerSpec
    names: tuple[str, ...]
    kept: bool = False

    @property
    def parameters(self) -> list[nn.Parameter]:
        """Its parameters, in the order of the layout."""
        found = dict(self.module.named_parameters())
        return [found[name] for name in self.names]

    def weights(self) -> torch.Tensor:
        """A copy of them as the optimizer node wants them: flat fp32."""
        return torch.cat([parameter.detach().reshape(-1).to(torch.float32) for parameter in self.parameters])


def layers_of(model: nn.Module, layers: Sequence[str] | None = None, kept: Sequence[str] = ()) -> list[ModelLayer]:
    """Split `model` into layers, in the order in which its forward runs them.

    `layers` names submodules (as in `named_modules`). By default every child that has parameters is a layer, and
    the children of an nn.ModuleList or nn.Sequential are layers of their own: embedding, each decoder block, head.
    A child without parameters of its own that has an nn.ModuleList somewhere below is looked into in the same way:
    "model.embed_tokens", "model.layers.0", ..., "model.norm", "lm_head".
    A parameter used twice is sent once, with the first layer that uses it, which then is `kept`; a layer whose
    parameters all belong to earlier ones (a head tied to the embedding) is none. `kept` names further layers to keep,
    whose parameters forward uses outside of them without any module that shows it (`h @ self.wte.weight.T`).

    Raises:
        TrainingError: a name is unknown, a parameter is in no layer, or an argument is of another type.
    """
    if not isinstance(model, nn.Module):
        raise TrainingError(f"a model {model!r:.80}: give a torch.nn.Module")
    for what, given in (("layers", layers), ("kept", kept)):
        several = given is None or (isinstance(given, Collection) and not isinstance(given, str | bytes))
        if not several or not all(isinstance(name, str) for name in given or ()):
            raise TrainingError(f"{what}={given!r:.80}: give a list of modules' names")
    modules = dict(model.named_modules(remove_duplicate=False))
    names = _default_names(model) if layers is None else list(layers)
    unknown = [name for name in names if name not in modules]
    if unknown:
        raise TrainingError(f"layers= names {unknown}, which the model does not have; it has {sorted(modules)[:20]}")
    if not names:
        raise TrainingError("the model has no layers: no child module holds parameters")
    owner: dict[int, int] = {}  # of parameters and of layers' modules, by id: the number of their layer
    found: list[ModelLayer] = []
    tied: set[int] = set()
    for name in names:
        shapes: dict[str, tuple[int, ...]] = {}
        own: list[str] = []
        earlier = {owner[id(part)] for part in _parts(modules[name]) if id(part) in owner}
        tied |= earlier
        for local, parameter in modules[name].named_parameters():
            if id(parameter) not in owner:
                owner[id(parameter)] = len(found)
                shapes[_unwrapped(f"{name}.{local}" if name else local)] = tuple(parameter.shape)
                own.append(local)
        if own or not earlier:
            owner[id(modules[name])] = len(found)
            spec = LayerSpec.of(len(found), _unwrapped(name), list(shapes.items()))
            found.append(ModelLayer(modules[name], spec, tuple(own)))
    strange = set(kept) - {layer.spec.name for layer in found}
    if strange:
        raise TrainingError(f"kept= names {sorted(strange)}, which are no layers: {[each.spec.name for each in found]}")
    found = [replace(each, kept=index in tied or each.spec.name in kept) for index, each in enumerate(found)]
    homeless = [name for name, parameter in model.named_parameters() if id(parameter) not in owner]
    if homeless:
        raise TrainingError(f"parameters {homeless} are in no layer: name the modules that hold them in layers=")
    return found


def _unwrapped(name: str) -> str:
    """A name without the levels that torch's wrappers add, so that a wrapped model fits the node's table."""
    return ".".join(part for part in name.split(".") if part not in _WRAPPERS)


def _parts(module: nn.Module) -> Iterator[object]:
    """A module and its parameters."""
    yield module
    yield from module.parameters()


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
