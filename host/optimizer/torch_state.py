"""A training's state as torch has it: what `torch.distributed.checkpoint.state_dict.get_state_dict` gives and takes.

    {"model": {NAME: weights}, "optimizer": {"state": {NAME: {"step", "exp_avg", ..}}, "param_groups": [..]},
     "catchment": what else a training needs to go on with the same bits, as JSON; others do without}

`numbered` and `by_name` lead from there to `torch.optim.Optimizer.state_dict()`, which counts parameters, and back.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import torch
from torch.distributed.tensor import DTensor

from catchment.host.layers import LayerSpec, LayerTable, TensorSpec, TrainingError
from catchment.host.optimizer.store import Rule

StateDict = dict[str, Any]

OWN = "catchment"
"""The entry that torch does not know."""
MOMENTS: dict[Rule, dict[str, str]] = {
    Rule.ADAM: {"first": "exp_avg", "second": "exp_avg_sq"},
    Rule.SGD: {"first": "momentum_buffer"},
}
"""Kind of optimizer -> torch's name of each section of moments."""


class TensorOf(Protocol):
    """Gives a tensor's part of a section (master, first, second) of a layer, in its shape, as fp32."""

    def __call__(self, layer: LayerSpec, section: str, tensor: TensorSpec) -> torch.Tensor: ...


def state_dict_of(  # noqa: PLR0917
    table: LayerTable,
    kind: Rule,
    groups: Sequence[Mapping[str, Any]],
    steps: Sequence[Sequence[int]],
    tensor_of: TensorOf,
    notes: Mapping[str, Any],
) -> StateDict:
    """The state dict of a training.

    Args:
        table, kind: of the model and its optimizer.
        groups: torch's `param_groups` by names (`torch_options.torch_groups`).
        steps: by layer and tensor, how often each was updated.
        tensor_of: where the values come from.
        notes: JSON, for the entry of our own: `trained` passes, and what else there is to know.
    """
    model = {t.name: tensor_of(layer, "master", t) for layer in table for t in layer.tensors}
    held: StateDict = {}
    for layer, counts in zip(table, steps, strict=True):
        for tensor, count in zip(layer.tensors, counts, strict=True):
            state = {name: tensor_of(layer, section, tensor) for section, name in MOMENTS[kind].items()}
            if kind is Rule.ADAM:
                state = {"step": torch.tensor(float(count)), **state}
            held[tensor.name] = state
    optimized = {name for group in groups for name in group["params"]}
    optimizer = {"state": {name: held[name] for name in held if name in optimized}, "param_groups": list(groups)}
    return {"model": model, "optimizer": optimizer, OWN: json.dumps(notes)}


def layer_notes(table: LayerTable, notes: Sequence[Any]) -> list[dict[str, Any]]:
    """What the layers are, in order, and what is kept with each: for the entry of our own."""
    return [
        {"name": layer.name, "tensors": [tensor.name for tensor in layer.tensors], "notes": note}
        for layer, note in zip(table, notes, strict=True)
    ]


def numbered(optimizer: Mapping[str, Any]) -> StateDict:
    """The optimizer's part of a state dict for `torch.optim.Optimizer.load_state_dict`, of an equally grouped one."""
    numbers: dict[str, int] = {}
    groups = []
    for group in optimizer["param_groups"]:
        for name in group["params"]:
            numbers[name] = len(numbers)
        groups.append({**group, "params": [numbers[name] for name in group["params"]]})
    return {"state": {numbers[name]: state for name, state in optimizer["state"].items()}, "param_groups": groups}


def by_name(optimizer: Mapping[str, Any], names: Sequence[str] | None = None) -> StateDict:
    """What `torch.optim.Optimizer.state_dict()` gives, by names.

    Args:
        optimizer: a state dict by number, or by name already.
        names: of the parameters in the order in which the optimizer was given them; None: as it says itself, which
            it does when it was made of `named_parameters()`.

    Raises:
        TrainingError: names are missing, or there are more or fewer than parameters.
    """
    groups = optimizer["param_groups"]
    numbers = [number for group in groups for number in group["params"]]
    if all(isinstance(number, str) for number in numbers):
        return dict(optimizer)
    if names is None:
        names = [name for group in groups for name in group.get("param_names", ())]
    if len(names) != len(numbers):
        raise TrainingError(
            f"the optimizer's state counts {len(numbers)} parameters, and {len(names)} names are known: give names=, "
            "in the order in which the optimizer was given its parameters"
        )
    of = dict(zip(numbers, names, strict=True))
    return {
        "state": {of[number]: state for number, state in optimizer["state"].items()},
        "param_groups": [{**group, "params": [of[number] for number in group["params"]]} for group in groups],
    }


def damaged_entry(why: object) -> TrainingError:
    """An error about what a state has of our own."""
    return TrainingError(f"the entry {OWN!r} of the state is damaged: {why}; leave it out")


def _own_entry(state: Mapping[str, Any]) -> dict[str, Any]:
    """What a state has that torch does not know."""
    try:
        own = json.loads(state.get(OWN, "{}"))
        trained = own.get("trained", 0)
    except (ValueError, TypeError, AttributeError) as error:
        raise damaged_entry(error) from error
    if not isinstance(trained, int) or trained < 0:
        raise damaged_entry(f"{trained!r} training passes")
    return dict(own)


class LoadedState:
    """A state dict, checked against a table: each tensor's weights, moments and count."""

    def __init__(self, table: LayerTable, kind: Rule, state: Mapping[str, Any]) -> None:
        """`state`: as `state_dict_of` or torch's get_state_dict gives it; without "optimizer", moments are 0.

        Raises:
            TrainingError: a weight is missing, a shape differs, a count is none, the state is of another kind of
                optimizer, or our entry is damaged.
        """
        self._kind = kind
        self._model: Mapping[str, Any] = state.get("model", state)
        optimizer = by_name(state["optimizer"]) if "optimizer" in state else {"state": {}}
        self._held: Mapping[str, Any] = optimizer["state"]
        own = _own_entry(state)
        self.trained: int = own.get("trained", 0)
        """Training passes so far; without an entry of our own the largest count of a tensor."""
        self.notes: Mapping[str, Any] = own
        for layer in table:
            for tensor in layer.tensors:
                self._check(tensor)
        if OWN not in state:
            self.trained = max((self.steps(tensor) for layer in table for tensor in layer.tensors), default=0)

    def weights(self, tensor: TensorSpec) -> torch.Tensor:
        """Flat fp32."""
        found: torch.Tensor = self._model[tensor.name]
        return found.detach().reshape(-1).to(torch.float32)

    def moment(self, section: str, tensor: TensorSpec) -> torch.Tensor:
        """Flat fp32; zeros where the optimizer has none yet."""
        found = self._held.get(tensor.name, {}).get(MOMENTS[self._kind][section])
        if found is None:
            return torch.zeros(tensor.numel)
        return torch.as_tensor(found).detach().reshape(-1).to(torch.float32)

    def steps(self, tensor: TensorSpec) -> int:
        """How often it was updated; torch's SGD does not count."""
        return int(self._held.get(tensor.name, {}).get("step", 0))

    def layer_notes(self, layer: LayerSpec) -> Any:
        """What was kept with the layer; None unless the state has a layer of the same tensors."""
        for each in self.notes.get("layers", ()):
            if each["name"] == layer.name and each["tensors"] == [tensor.name for tensor in layer.tensors]:
                return each["notes"]
        return None

    def _check(self, tensor: TensorSpec) -> None:
        found = self._model.get(tensor.name)
        if found is None:
            raise TrainingError(f"the state dict has no weights of {tensor.name}: it is of another model")
        if not isinstance(found, torch.Tensor):
            raise TrainingError(f"the weights of {tensor.name} are {type(found).__name__}, no tensor")
        held = self._held.get(tensor.name, {})
        count = float(held.get("step", 0))
        if not (count >= 0 and count.is_integer()):
            raise TrainingError(f"{tensor.name} was updated {count:g} times, the state says: it is damaged")
        foreign = set(held) - {"step", *MOMENTS[self._kind].values()}
        if foreign:
            raise TrainingError(f"the state of {tensor.name} has {sorted(foreign)}: no {self._kind} of ours has that")
        moments = [held[name] for name in MOMENTS[self._kind].values() if held.get(name) is not None]
        for each in (found, *moments):
            if isinstance(each, DTensor):
                raise TrainingError(
                    f"{tensor.name} is sharded: take torch's get_state_dict with full_state_dict=True, or a checkpoint"
                )
            if tuple(each.shape) != tensor.shape:
                raise TrainingError(f"{tensor.name} has the shape {tuple(each.shape)}, the table says {tensor.shape}")
        missing = [name for name in MOMENTS[self._kind].values() if held and name not in held]
        if missing:
            raise TrainingError(f"the state of {tensor.name} lacks {missing}: it is of another optimizer")
