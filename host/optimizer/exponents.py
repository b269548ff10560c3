"""The exponents of one layer's tensors: what the next push is to use, and which arrived sums may be used."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from catchment.host.layers import Completion, LayerSpec
from catchment.host.layers.message import EXPONENT_MAX, EXPONENT_MIN
from catchment.host.optimizer.scaling import DelayedScaling, ScalingOptions
from catchment.wire.generated.constants import Flag

MANY = 1 << 31
"""More refusals in a row, calm steps, training passes, updates or planes than there will be."""
_LONGEST = 4096
"""A history of which no store has room for more, or any."""


class LayerExponents:
    """Delayed scaling (catchment.host.optimizer.scaling) tensor by tensor."""

    def __init__(self, layer: LayerSpec, workers: int, options: ScalingOptions, notes: Any = None) -> None:
        """`notes`: what `notes()` once gave, to go on from there."""
        self._scaling = [DelayedScaling(tensor.name, workers, options) for tensor in layer.tensors]
        for scaling, note in zip(self._scaling, notes or (), strict=notes is not None):
            scaling.restore(note)

    def current(self, shift: int = 0) -> tuple[int, ...]:
        """One exponent per tensor for the next push of gradients, which are 2^`shift` times as large as usual."""
        return tuple(max(EXPONENT_MIN, min(EXPONENT_MAX, scaling.exponent + shift)) for scaling in self._scaling)

    def observe(self, completions: Sequence[Completion], shift: int = 0) -> list[int]:
        """Take in the arrived sums of gradients that are 2^`shift` times as large as usual.

        Returns:
            The numbers of the tensors whose sums may be used.

        Raises:
            TrainingError: a tensor's sums were unusable too often in a row.
        """
        return [
            number
            for number, (scaling, completion) in enumerate(zip(self._scaling, completions, strict=True))
            if scaling.observe(math.ldexp(completion.max_abs, -shift), bool(completion.flags & Flag.SAT))
        ]

    def notes(self) -> list[Any]:
        """All there is to know, for JSON."""
        return [scaling.notes() for scaling in self._scaling]


def largest_notes(layer: LayerSpec, options: ScalingOptions) -> list[Any]:
    """The longest `LayerExponents.notes` of a layer that there may be."""
    longest = [EXPONENT_MIN, MANY, MANY, [EXPONENT_MIN] * min(options.history, _LONGEST)]
    return [longest for _ in layer.tensors]
