"""Gradient clipping by the global norm, when gradients come layer by layer and none may wait in memory for the last.

exact    A layer's gradients are written to the store's spare plane as they come, and their squares added up. When the
         last layer's are there the norm is known, and a second sweep, first layer first, reads gradients and states
         and updates. The same as torch.nn.utils.clip_grad_norm_, for 10 more bytes of disk per parameter and step;
         updates no longer overlap the backward, they overlap the next forward instead.
delayed  The factor comes from the norm of the step before, as delayed scaling takes its exponents. Everything streams
         as without clipping, but a spike is clipped one step late, and the first step not at all.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass

from catchment.host.given_numbers import is_real
from catchment.host.layers import TrainingError

_TINY = 1e-6  # as clip_grad_norm_ has it


class Clipping(enum.StrEnum):
    """How the factor is found."""

    EXACT = "exact"
    DELAYED = "delayed"


@dataclass(frozen=True, slots=True)
class Clip:
    """Scale the gradients of a step so that their norm over all tensors is at most `norm`."""

    norm: float
    how: Clipping = Clipping.EXACT

    def __post_init__(self) -> None:
        if not (is_real(self.norm) and self.norm > 0):
            raise TrainingError(f"clipping to a norm of {self.norm!r}: give a positive number")
        if not isinstance(self.how, Clipping):
            raise TrainingError(f"clipping by {self.how!r}: give Clipping.EXACT or Clipping.DELAYED")


class GlobalNorm:
    """The sum of squares of one step's usable gradients, and the factors that follow. Used by one thread."""

    def __init__(self, clip: Clip | None, last: float | None) -> None:
        """`last`: the norm of the step before, None before the first."""
        self._clip = clip
        self._squares = 0.0
        self.last = last

    @property
    def exact(self) -> bool:
        """True when a step's own norm decides."""
        return self._clip is not None and self._clip.how is Clipping.EXACT

    @property
    def wanted(self) -> bool:
        """True when squares are to be added."""
        return self._clip is not None

    @property
    def factor(self) -> float:
        """The factor on the gradients that follows from the norm known last."""
        if self._clip is None or self.last is None:
            return 1.0
        return min(1.0, self._clip.norm / (self.last + _TINY))

    def add(self, squares: float) -> None:
        """One tensor's sum of squares, of the mean gradient."""
        self._squares += squares

    def close(self, overflowed: bool = False) -> None:
        """The step is complete: its norm is known. One that overflowed has none, the one before stands."""
        if not overflowed:
            self.last = math.sqrt(self._squares)
        self._squares = 0.0
