"""What a person may choose about an optimizer node, in memory or out of core."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from catchment.host.given_numbers import is_real, is_whole
from catchment.host.layers import Homes, LayerTable, TrainingError, WireType
from catchment.host.optimizer.groups import ParameterGroup, TensorRules
from catchment.host.optimizer.loss_scale import DynamicLossScale
from catchment.host.optimizer.rules import Adam, UpdateRule
from catchment.host.optimizer.scaling import ScalingOptions
from catchment.host.optimizer.store import Rule


@dataclass(frozen=True, slots=True)
class NodeOptions:
    """How the node streams and updates.

    Attributes:
        workers: of the job; sums are divided by it.
        rule: the optimizer.
        groups: tensors with an optimizer of the same kind, or a schedule, of their own.
        wire: element type of parameters on the wire.
        scaling: of the gradients' exponents.
        rate: learning-rate schedule (host/optimizer/schedules.py): scales the rule's lr; its argument counts training
            passes from 0, over all runs of a store.
        loss_scale: what the workers multiply their loss by, and the sums are divided by: a number, or how it moves.
        ahead: in memory: layers whose gradients are asked for before they are needed.
        threads: of the update, in memory; out of core the store's (StoreOptions).

    Raises:
        TrainingError: a value is of another type, or cannot be.
    """

    workers: int
    rule: UpdateRule = field(default_factory=Adam)
    groups: tuple[ParameterGroup, ...] = field(default=(), kw_only=True)
    wire: WireType = WireType.BF16
    scaling: ScalingOptions = field(default_factory=ScalingOptions)
    rate: Callable[[int], float] = lambda _step: 1.0
    loss_scale: float | DynamicLossScale = 1.0
    ahead: int = 3
    threads: int = 1

    def __post_init__(self) -> None:
        scale = self.loss_scale.initial if isinstance(self.loss_scale, DynamicLossScale) else self.loss_scale
        counted = all(is_whole(number, 1) for number in (self.workers, self.ahead, self.threads))
        if not counted or not is_real(scale) or not scale > 0:
            raise TrainingError(f"{self}: workers, ahead and threads from 1 on, loss_scale above 0")
        kinds = (
            (isinstance(getattr(self.rule, "kind", None), Rule), f"rule {self.rule!r}: give an Adam or Sgd"),
            (isinstance(self.wire, WireType), f"wire {self.wire!r}: give a WireType"),
            (isinstance(self.scaling, ScalingOptions), f"scaling {self.scaling!r}: give ScalingOptions"),
            (callable(self.rate), f"rate {self.rate!r}: give a schedule, a function of the training pass"),
            (
                isinstance(self.groups, tuple | list) and all(isinstance(g, ParameterGroup) for g in self.groups),
                f"groups {self.groups!r}: give a tuple of ParameterGroup",
            ),
        )
        if wrong := [text for right, text in kinds if not right]:
            raise TrainingError("; ".join(wrong))

    def at(self, homes: Homes, root: int) -> NodeOptions:
        """The same for optimizer node `root` of several: of the groups what it holds, and no group of nothing."""
        whole = {tensor.name for layer in homes.table for tensor in layer.tensors}
        groups = []
        for number, group in enumerate(self.groups):
            if unknown := [name for name in group.tensors if name not in whole]:
                raise TrainingError(f"parameter group {number} names {unknown[0]}, which is no tensor of the model")
            if names := homes.names(root, group.tensors):
                groups.append(replace(group, tensors=names))
        return replace(self, groups=tuple(groups))

    @property
    def exponents(self) -> ScalingOptions:
        """The scaling of the gradients' exponents; a dynamic loss scale ends a training by its own patience instead."""
        dynamic = isinstance(self.loss_scale, DynamicLossScale)
        return replace(self.scaling, patience=sys.maxsize) if dynamic else self.scaling

    def rules(self, table: LayerTable) -> TensorRules:
        """What each tensor of `table` is updated by.

        Raises:
            TrainingError: a group does not fit the table or the rule, or the loss scale needs all gradients of a step
                and the table has a part of them.
        """
        if table.home.roots > 1 and isinstance(self.loss_scale, DynamicLossScale):
            raise TrainingError(
                f"a dynamic loss scale with {table.home.roots} optimizer nodes: each sees a part of the gradients, so "
                "they would disagree; give a number, or train with one"
            )
        return TensorRules(table, self.rule, self.rate, self.groups)

    def mean(self, loss_scale: float) -> float:
        """What makes of a sum over the workers, of gradients at `loss_scale`, the mean gradient."""
        return 1 / (self.workers * loss_scale)
