"""state_dict and load_state_dict of a model whose parameters are at the optimizer node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn
from torch.utils.hooks import RemovableHandle

from catchment.host.layers import TrainingError


def state_of(model: nn.Module, weights: Mapping[int, torch.Tensor]) -> dict[str, torch.Tensor]:
    """What `model.state_dict()` of the plain model would give: `weights`, by the id of the parameter, and buffers."""
    state: dict[str, torch.Tensor] = {}
    for prefix, module in model.named_modules(remove_duplicate=False):
        dot = f"{prefix}." if prefix else ""
        for name, parameter in module.named_parameters(recurse=False, remove_duplicate=False):
            state[dot + name] = weights[id(parameter)]
        for name, buffer in module.named_buffers(recurse=False, remove_duplicate=False):
            if name not in module._non_persistent_buffers_set:
                state[dot + name] = buffer.detach().clone()
    return state


def refuse_state_dicts(model: nn.Module) -> list[RemovableHandle]:
    """Hooks by which modules refuse to give or take parameters that are not here; buffers alone may be loaded."""
    handles: list[RemovableHandle] = []
    for module in model.modules():
        if next(module.parameters(recurse=False), None) is not None:
            handles.append(module.register_state_dict_pre_hook(_refuse_to_give))  # type: ignore[no-untyped-call]
            handles.append(module.register_load_state_dict_pre_hook(_refuse_to_take))  # type: ignore[no-untyped-call]
    return handles


def _refuse_to_give(_module: nn.Module, _prefix: str, _keep_vars: bool) -> None:
    raise TrainingError(
        "this worker holds no parameters: take network.state_dict(), a forward-only pass, or the state_dict of the "
        "optimizer node"
    )


def _refuse_to_take(module: nn.Module, state: Mapping[str, Any], prefix: str, *_: object) -> None:
    given = [prefix + name for name, _ in module.named_parameters(recurse=False) if prefix + name in state]
    if given:
        raise TrainingError(
            f"{given[0]} is not on this worker: load weights at the optimizer node (load_state_dict, `catchment "
            "optimizer import`); buffers alone can be loaded here, with strict=False"
        )
