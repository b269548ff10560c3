"""Master weights and moments of one layer, in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from catchment.host.layers import LayerSpec, TrainingError
from catchment.host.optimizer.layer_update import Step, update_layer
from catchment.host.optimizer.store import UNIT, Memory, Rule, page_aligned
from catchment.host.optimizer.torch_state import LoadedState

if TYPE_CHECKING:
    from catchment.host import _optimizer


class LayerState:
    """fp32 throughout, one step count per tensor; a tensor that is not updated keeps weights, moments and count."""

    def __init__(self, spec: LayerSpec, weights: torch.Tensor, rule: Rule, updater: _optimizer.Updater) -> None:
        """Copy `weights` (the layer's elements, flat or not) as the master weights."""
        if weights.numel() != spec.numel:
            raise TrainingError(f"layer {spec.name}: {weights.numel()} weights, the table says {spec.numel}")
        self.spec = spec
        self._updater = updater
        self._units = -(-spec.numel // UNIT)
        names = ("master", "first", "second")[: 1 + rule.moments]
        self._sections: dict[str, Memory] = {name: page_aligned(self._units * UNIT * 4) for name in names}
        self.master = self.section("master")
        self.master.copy_(weights.detach().reshape(-1))
        self._steps = (0,) * len(spec.tensors)

    @property
    def steps(self) -> tuple[int, ...]:
        """How often each tensor was updated."""
        return self._steps

    def section(self, name: str) -> torch.Tensor:
        """Master weights or a moment (master, first, second): flat fp32, live."""
        return torch.from_numpy(self._sections[name].view(np.float32))[: self.spec.numel]

    def load(self, state: LoadedState) -> None:
        """Go on from `state`."""
        for tensor in self.spec.tensors:
            self.master[tensor.span].copy_(state.weights(tensor))
            for name in self._sections.keys() - {"master"}:
                self.section(name)[tensor.span].copy_(state.moment(name, tensor))
        self._steps = tuple(state.steps(tensor) for tensor in self.spec.tensors)

    def update(self, gradients: torch.Tensor, usable: Sequence[int], step: Step) -> None:
        """One step of the tensors numbered in `usable` with the layer's sums (flat fp32)."""
        memory = gradients.numpy().view(np.uint8)
        self._steps = update_layer(
            self._updater, self.spec, self._sections, memory, self._steps, usable, step, [self._units]
        ).steps
