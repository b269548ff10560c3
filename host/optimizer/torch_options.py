"""Our update rules as the options of torch's optimizers, and back: what `param_groups` of torch.optim say."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import astuple
from typing import Any

import torch
from torch import nn

from catchment.host.layers import LayerTable, TrainingError
from catchment.host.optimizer.groups import ParameterGroup, TensorRules
from catchment.host.optimizer.rules import Adam, Sgd, UpdateRule
from catchment.host.optimizer.store import Rule

_TORCH_CLASS = {Rule.ADAM: torch.optim.AdamW, Rule.SGD: torch.optim.SGD}
# What our kernels do not do, and the value that says that it is not wanted. Of the rest, torch's own
# implementations (foreach, fused, capturable) change no formula.
_REFUSED = {"amsgrad": False, "maximize": False, "differentiable": False, "dampening": 0}


def parameter_groups(
    optimizer: torch.optim.Optimizer, model: nn.Module, table: LayerTable
) -> tuple[ParameterGroup, ...]:
    """The groups of torch's AdamW, Adam or SGD over `model`, for `NodeOptions(groups=...)`.

    The model may be on the meta device: only the identity of its parameters counts. Parameters that the optimizer
    does not have are in a group without a rule, and stay as they are. A group's `lr` is taken as it is now; what a
    torch scheduler would do to it later is said by a schedule (`ParameterGroup.rate`, `NodeOptions.rate`).

    Raises:
        TrainingError: an option that the kernels do not have, another optimizer, or a parameter that is not in `table`.
    """
    kind = _kind_of(optimizer)
    known = set(_names(table))
    names: dict[int, str] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        if name in known:
            names[id(parameter)] = name
    groups = []
    for number, group in enumerate(optimizer.param_groups):
        missing = sum(id(parameter) not in names for parameter in group["params"])
        if missing:
            raise TrainingError(f"{missing} parameters of group {number} are in no layer of the table: another model?")
        groups.append(ParameterGroup(tuple(names[id(p)] for p in group["params"]), rule_of(kind, group)))
    trained = {name for group in groups for name in group.tensors}
    rest = tuple(name for name in _names(table) if name not in trained)
    return (*groups, ParameterGroup(rest, None)) if rest else tuple(groups)


def rule_of(kind: Rule, options: Mapping[str, Any]) -> Adam | Sgd:
    """The rule that says the same as the options of a torch AdamW or SGD; absent ones have torch's defaults.

    Raises:
        TrainingError: an option that the kernels do not have, or a value that is no number.
    """
    wanted = {**_defaults(kind), **options}
    for name, off in _REFUSED.items():
        if wanted.get(name, off) != off:
            raise TrainingError(f"{name}={wanted[name]} of torch's {kind} is not built: only {name}={off}")
    if wanted["weight_decay"] and not wanted.get("decoupled_weight_decay", True):
        raise TrainingError("torch's Adam adds its weight_decay to the gradient, which is not built: take AdamW")
    try:
        lr, decay = float(wanted["lr"]), float(wanted["weight_decay"])
        if kind is Rule.SGD:
            return Sgd(lr, float(wanted["momentum"]), decay, bool(wanted["nesterov"]))
        beta1, beta2 = (float(beta) for beta in wanted["betas"])
        return Adam(lr, beta1, beta2, float(wanted["eps"]), decay)
    except (TypeError, ValueError) as error:
        raise TrainingError(f"options of a torch {kind} that make no sense: {error}") from error


def torch_group(kind: Rule, rule: UpdateRule, lr: float, tensors: Sequence[str]) -> dict[str, Any]:
    """A group of torch's AdamW or SGD by names, as torch's `get_state_dict` has it, at the rate `lr`."""
    names = {"params": list(tensors), "param_names": list(tensors)}
    options: dict[str, Any] = {**_defaults(kind), **names, "lr": lr}
    if isinstance(rule, Adam):
        options |= {"betas": (rule.beta1, rule.beta2), "eps": rule.eps, "weight_decay": rule.decay}
    elif isinstance(rule, Sgd):
        options |= {"momentum": rule.momentum, "weight_decay": rule.decay, "nesterov": rule.nesterov}
    return options


def torch_groups(rules: TensorRules, trained: int) -> list[dict[str, Any]]:
    """`param_groups` by names, with the rates of the training pass after `trained` others; without what stays."""
    return [
        torch_group(rules.kind, group.rule, rules.lr(group, trained), group.tensors)
        for group in rules.groups
        if group.rule is not None
    ]


def pack_groups(table: LayerTable, groups: Sequence[Mapping[str, Any]]) -> list[Any]:
    """What `torch_groups` gives, short, for JSON: tensors by their number in the table."""
    numbers = {name: number for number, name in enumerate(_names(table))}
    return [
        [astuple(rule_of(Rule.SGD if "momentum" in group else Rule.ADAM, group)), [numbers[n] for n in group["params"]]]
        for group in groups
    ]


def unpack_groups(table: LayerTable, kind: Rule, packed: Sequence[Any]) -> list[dict[str, Any]]:
    """What `pack_groups` was given."""
    names = _names(table)
    rules = [(Adam if kind is Rule.ADAM else Sgd)(*values) for values, _ in packed]
    return [
        torch_group(kind, rule, rule.lr, [names[number] for number in numbers])
        for rule, (_, numbers) in zip(rules, packed, strict=True)
    ]


def _names(table: LayerTable) -> list[str]:
    return [tensor.name for layer in table for tensor in layer.tensors]


@functools.cache
def _defaults(kind: Rule) -> Mapping[str, Any]:
    group = _TORCH_CLASS[kind]([torch.empty(0, requires_grad=True)]).state_dict()["param_groups"][0]
    return {name: value for name, value in group.items() if name != "params"}


def _kind_of(optimizer: torch.optim.Optimizer) -> Rule:
    if isinstance(optimizer, torch.optim.Adam):
        return Rule.ADAM
    if isinstance(optimizer, torch.optim.SGD):
        return Rule.SGD
    raise TrainingError(f"{type(optimizer).__name__}: the optimizer node has torch's AdamW, Adam and SGD")
