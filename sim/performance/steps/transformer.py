"""Sizes and work of a transformer, from its layers and its hidden size."""

from __future__ import annotations

from dataclasses import dataclass

from catchment.sim.performance.errors import PerformanceError

HALF = 2
"""Bytes of an element in half precision."""
STATES = 16
"""Bytes a parameter: parameters and gradients in half precision, Adam's states and a copy in single."""


@dataclass(frozen=True, slots=True)
class Transformer:
    """A decoder; `batch` sequences of `sequence` tokens a GPU and micro-step."""

    layers: int = 64
    hidden: int = 4096
    batch: int = 8
    sequence: int = 1024
    recompute: bool = True

    def __post_init__(self) -> None:
        if min(self.layers, self.hidden, self.batch, self.sequence) < 1:
            raise PerformanceError("a transformer needs at least one layer, unit, sequence and token")

    @property
    def layer_parameters(self) -> int:
        """Parameters of a layer: attention 4 h^2, feed-forward 8 h^2."""
        return 12 * self.hidden**2

    @property
    def parameters(self) -> int:
        """Parameters of all layers; embeddings are left out."""
        return self.layers * self.layer_parameters

    @property
    def layer_bytes(self) -> int:
        """Bytes of a layer's parameters, or of its gradients, in half precision."""
        return HALF * self.layer_parameters

    @property
    def forward_flops(self) -> float:
        """Operations of a layer's forward pass: 24 b s h^2 (1 + s / 6 h) (Narayanan et al., SC 2021)."""
        tokens = self.batch * self.sequence
        return 24 * tokens * self.hidden**2 * (1 + self.sequence / (6 * self.hidden))

    @property
    def backward_flops(self) -> float:
        """Operations of its backward pass: twice the forward pass, and once more where activations are recomputed."""
        return (3 if self.recompute else 2) * self.forward_flops

    @property
    def activation_bytes(self) -> int:
        """Bytes of activations that are kept: each layer's input, or 34 times that without recomputing."""
        kept = HALF * self.batch * self.sequence * self.hidden
        return self.layers * kept * (1 if self.recompute else 17)
