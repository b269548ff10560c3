"""What is decided about a step while its gradients come: the factor on them, and whether it counts at all.

With a dynamic loss scale a value that overflowed anywhere skips the whole step. Layers stream, so some may be updated
by then. Their old versions are still in the store (copy on write), and the next pass begins with the layer whose
gradients come last: nothing of the new versions has been sent when they are put back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from catchment.host.optimizer.loss_scale import LossScale
from catchment.host.optimizer.node import PassRecord
from catchment.host.optimizer.options import NodeOptions
from catchment.host.optimizer.store import LayerVersion
from catchment.host.optimizer.streaming.clipping import Clip, GlobalNorm
from catchment.host.optimizer.streaming.task import Ticket


class StepControl:
    """One for all steps of a node; used by its update thread, and between steps by the one that commits."""

    def __init__(self, options: NodeOptions, clip: Clip | None, notes: Mapping[str, Any]) -> None:
        """`notes`: of the last commit."""
        self._options = options
        self.norm = GlobalNorm(clip, notes.get("norm"))
        self.loss_scale = LossScale(options.loss_scale, notes.get("loss_scale"))
        self._scale = self.loss_scale.current  # of the step whose gradients came last
        self._skipped: list[str] = []
        self._replaced: dict[int, LayerVersion] = {}
        self.overflowed = False
        """The present step is skipped: none of its gradients is used any more."""

    @property
    def mean(self) -> float:
        """What makes the mean gradient of this step's sums."""
        return self._options.mean(self._scale)

    @property
    def factor(self) -> float:
        """The factor on this step's sums: of their mean, and of clipping."""
        return self.mean * self.norm.factor

    def begin(self) -> None:
        """A layer's gradients are there: they are of the scale that was sent with it."""
        self._scale = self.loss_scale.current

    def gathered(self, ticket: Ticket, skipped: Sequence[str]) -> None:
        """Note that a layer's gradients have been looked at; the tensors named in `skipped` cannot be used.

        Raises:
            TrainingError: overflows without end.
        """
        self._skipped += skipped
        self.overflowed = self.loss_scale.dynamic and bool(self._skipped)
        if ticket.closes:
            self.loss_scale.step(self.overflowed)

    def replaced(self, layer: int, version: LayerVersion) -> None:
        """An update is on its way to take the place of `version`."""
        if self.loss_scale.dynamic:
            self._replaced[layer] = version

    def close(self, ticket: Ticket) -> tuple[PassRecord, dict[int, LayerVersion]]:
        """The last layer has been updated. What the step was, and the versions to put back."""
        if not self.norm.exact:
            self.norm.close(self.overflowed)
        record = PassRecord(ticket.number, True, tuple(self._skipped), self.overflowed, self._scale)
        undo = self._replaced if self.overflowed else {}
        self._skipped, self._replaced, self.overflowed = [], {}, False
        return record, undo

    def notes(self) -> dict[str, Any]:
        """The state to go on from, for the commit."""
        return {"norm": self.norm.last, "loss_scale": self.loss_scale.notes()}
