"""One layer at the optimizer node: what is pushed for it, and what is done with its gradients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch

from catchment.host.layers import Completion, LayerTable, ParamHeader, Phase, TransferPort, WireType, pack_message
from catchment.host.optimizer.exponents import LayerExponents
from catchment.host.optimizer.layer_state import LayerState
from catchment.host.optimizer.layer_update import Step
from catchment.host.optimizer.loss_scale import LossScale
from catchment.host.optimizer.scaling import ScalingOptions
from catchment.host.optimizer.store import Rule
from catchment.host.optimizer.torch_state import LoadedState

if TYPE_CHECKING:
    from catchment.host import _optimizer


@dataclass(frozen=True, slots=True)
class PendingSum:
    """The pulls of one layer's summed gradients: one flat buffer, one completion per tensor."""

    gradients: torch.Tensor
    completions: tuple[Completion, ...]


class LayerTask:
    """State, exponents and messages of one layer. Not thread-safe: the node serialises packing and updating."""

    def __init__(
        self,
        table: LayerTable,
        index: int,
        weights: torch.Tensor,
        *,
        workers: int,
        wire: WireType,
        scaling: ScalingOptions,
        rule: Rule,
        updater: _optimizer.Updater,
    ) -> None:
        """Start from `weights` (flat, the layer's elements)."""
        self._table = table
        self._wire = wire
        self.spec = table[index]
        self.state = LayerState(self.spec, weights, rule, updater)
        self._workers, self._scaling = workers, scaling
        self._exponents = self.exponents_after(None)

    def exponents(self, shift: int = 0) -> tuple[int, ...]:
        """One exponent per tensor for the next push of gradients; `shift` as in LayerExponents."""
        return self._exponents.current(shift)

    def notes(self) -> list[Any]:
        """What the exponents' scaling knows, for JSON."""
        return self._exponents.notes()

    def exponents_after(self, notes: list[Any] | None) -> LayerExponents:
        """The exponents to go on with; `notes`: what `notes()` once gave, None: they begin anew."""
        return LayerExponents(self.spec, self._workers, self._scaling, notes)

    def load(self, state: LoadedState, exponents: LayerExponents) -> None:
        """Go on from `state`."""
        self.state.load(state)
        self._exponents = exponents

    def message(
        self, step: int, phase: Phase, last_pass: bool, accumulate: bool, loss_scale: LossScale, *, trained: int
    ) -> npt.NDArray[np.uint8]:
        """The layer as a PARAM message."""
        exponents = self.exponents(loss_scale.shift)
        scale = loss_scale.current
        header = ParamHeader(self.spec.index, step, phase, exponents, last_pass, scale, accumulate, trained)
        return pack_message(header, self._table, self._wire, self.state.master)

    def post_pulls(self, port: TransferPort) -> PendingSum:
        """Ask for the sums of every tensor, in the order in which the workers push them."""
        flat = np.empty(self.spec.numel, dtype=np.float32)
        completions = tuple(port.pull(flat[tensor.span]) for tensor in self.spec.tensors)
        return PendingSum(torch.from_numpy(flat), completions)

    def arrived(self, pending: PendingSum, shift: int) -> list[int]:
        """Note the sums that have arrived; gives the numbers of the tensors whose sums may be used."""
        return self._exponents.observe(pending.completions, shift)

    def apply(self, pending: PendingSum, usable: Sequence[int], step: Step) -> None:
        """Update the tensors numbered in `usable`."""
        self.state.update(pending.gradients, usable, step)
