"""What a person may choose about an optimizer node, in memory or out of core."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from host.layers import TrainingError, WireType
from host.optimizer.rules import Adam, UpdateRule
from host.optimizer.scaling import ScalingOptions


@dataclass(frozen=True, slots=True)
class NodeOptions:
    """How the node streams and updates.

    Attributes:
        workers: of the job; sums are divided by it.
        rule: the optimizer.
        wire: element type of parameters on the wire.
        scaling: of the gradients' exponents.
        rate: learning-rate schedule (host.optimizer.schedules): scales the rule's lr; its argument counts training
            passes from 0, over all runs of a store.
        loss_scale: what the workers multiply their loss by; the sums are divided by it.
        ahead: in memory: layers whose gradients are asked for before they are needed.
        threads: of the update.
    """

    workers: int
    rule: UpdateRule = field(default_factory=Adam)
    wire: WireType = WireType.BF16
    scaling: ScalingOptions = field(default_factory=ScalingOptions)
    rate: Callable[[int], float] = lambda _step: 1.0
    loss_scale: float = 1.0
    ahead: int = 3
    threads: int = 1

    def __post_init__(self) -> None:
        if self.workers < 1 or not self.loss_scale > 0 or self.ahead < 1 or self.threads < 1:
            raise TrainingError(f"{self}: workers, ahead and threads from 1 on, loss_scale above 0")

    @property
    def scale(self) -> float:
        """What makes of a sum over the workers the mean gradient."""
        return 1 / (self.workers * self.loss_scale)
