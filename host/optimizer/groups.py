"""Parameter groups, as torch's optimizers have them: tensors with a rule and a learning-rate schedule of their own.

    NodeOptions(4, Adam(lr=1e-3, decay=0.1), groups=(ParameterGroup(("norm.weight", "norm.bias"), Adam(lr=1e-3)),))

Tensors that no group names follow the node's own rule. `host.optimizer.torch_options` makes groups of torch's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from catchment.host.layers import LayerTable, TrainingError
from catchment.host.optimizer.layer_update import Step
from catchment.host.optimizer.rules import UpdateRule
from catchment.host.optimizer.schedules import Schedule
from catchment.host.optimizer.store import Rule


@dataclass(frozen=True, slots=True)
class ParameterGroup:
    """Tensors that are updated alike.

    Attributes:
        tensors: their names in the table of layers.
        rule: their optimizer, of the same kind as the node's; None: they stay as they are.
        rate: their learning-rate schedule; None: the node's.

    Raises:
        TrainingError: a value is of another type.
    """

    tensors: tuple[str, ...]
    rule: UpdateRule | None
    rate: Schedule | None = None

    def __post_init__(self) -> None:
        named = isinstance(self.tensors, tuple | list) and all(isinstance(name, str) for name in self.tensors)
        if not named:
            raise TrainingError(f"a parameter group of {self.tensors!r}: give a tuple of tensors' names")
        if self.rule is not None and not isinstance(getattr(self.rule, "kind", None), Rule):
            raise TrainingError(f"a parameter group with rule {self.rule!r}: give an Adam or Sgd, or None")
        if self.rate is not None and not callable(self.rate):
            raise TrainingError(f"a parameter group with rate {self.rate!r}: give a function of the training pass")


class TensorRules:
    """Which rule and which schedule each tensor of a table follows."""

    def __init__(
        self, table: LayerTable, rule: UpdateRule, rate: Schedule, groups: Sequence[ParameterGroup] = ()
    ) -> None:
        """`rule` and `rate` are for the tensors that are in no group.

        Raises:
            TrainingError: a group names a tensor that the table lacks, or that another group has, or its rule keeps
                other moments than `rule`.
        """
        names = {tensor.name for layer in table for tensor in layer.tensors}
        self.kind = rule.kind
        self._rate = rate
        self._of: dict[str, ParameterGroup] = {}
        for number, group in enumerate(groups):
            if group.rule is not None and group.rule.kind is not rule.kind:
                raise TrainingError(
                    f"parameter group {number} has {group.rule}, the node {rule}: one kind of optimizer for all"
                )
            for name in group.tensors:
                if name not in names:
                    raise TrainingError(f"parameter group {number} names {name}, which is no tensor of the model")
                if name in self._of:
                    raise TrainingError(f"parameter group {number} names {name}, which another group has, or twice")
                self._of[name] = group
        rest = tuple(tensor.name for layer in table for tensor in layer.tensors if tensor.name not in self._of)
        own = ParameterGroup(rest, rule)
        self._of.update(dict.fromkeys(rest, own))
        self.groups: tuple[ParameterGroup, ...] = (*groups, own) if rest else tuple(groups)
        """All tensors of the table: the given groups, and one of those that are in none."""

    def lr(self, group: ParameterGroup, trained: int) -> float:
        """The learning rate of a group in the training pass after `trained` others; 0 when it has no rule."""
        rate = self._rate if group.rate is None else group.rate
        return 0.0 if group.rule is None else group.rule.lr * rate(trained)

    def step(self, trained: int, scale: float) -> Step:
        """The step of the training pass after `trained` others; sums of gradients are multiplied by `scale`."""
        return Step(lambda tensor: self._chosen(tensor, trained), scale)

    def _chosen(self, tensor: str, trained: int) -> tuple[UpdateRule, float] | None:
        group = self._of[tensor]
        return None if group.rule is None else (group.rule, self.lr(group, trained))
