"""The loss scale: what workers multiply their loss by, so that small gradients survive a short floating-point type.

Fixed, or dynamic: it doubles after `growth` good steps in a row. A step in which a value overflowed on some worker is
skipped as a whole (no weight, moment or step count changes), and the scale is halved. A dynamic scale is a power of
two, so that it changes no bit of what is divided by it again. The PARAM messages tell the workers the scale.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from catchment.host.given_numbers import is_real, is_whole
from catchment.host.layers import TrainingError


@dataclass(frozen=True, slots=True)
class DynamicLossScale:
    """How a dynamic scale moves.

    Attributes:
        initial: the first scale. least, most: its bounds. All three are powers of two.
        growth: good steps in a row after which it doubles.
        patience: overflows in a row at the least scale after which the training ends.
    """

    initial: float = 2.0**16
    growth: int = 2000
    least: float = 1.0
    most: float = 2.0**24
    patience: int = 8

    def __post_init__(self) -> None:
        if not all(
            is_real(scale) and scale > 0 and math.frexp(scale)[0] == 0.5
            for scale in (self.least, self.initial, self.most)
        ):
            raise TrainingError(f"{self}: least, initial and most must be powers of two")
        if (
            not self.least <= self.initial <= self.most
            or not is_whole(self.growth, 1)
            or not is_whole(self.patience, 1)
        ):
            raise TrainingError(f"{self}: least <= initial <= most; growth and patience from 1 on")


class LossScale:
    """The scale of the present pass. `notes`: what `notes()` once gave, to go on from there."""

    def __init__(self, chosen: float | DynamicLossScale, notes: Sequence[float] | None = None) -> None:
        self._options = chosen if isinstance(chosen, DynamicLossScale) else None
        self.current = chosen.initial if isinstance(chosen, DynamicLossScale) else chosen
        self._good = self._overflows = 0
        if self._options is not None and notes is not None:
            self.current = min(max(float(notes[0]), self._options.least), self._options.most)
            self._good, self._overflows = int(notes[1]), int(notes[2])

    @property
    def dynamic(self) -> bool:
        """Whether overflows skip steps and move it."""
        return self._options is not None

    @property
    def shift(self) -> int:
        """What a dynamic scale adds to the exponents of unscaled gradients; 0 for a fixed one, which they contain."""
        return math.frexp(self.current)[1] - 1 if self.dynamic else 0

    def step(self, overflowed: bool) -> None:
        """A step is over.

        Raises:
            TrainingError: it cannot become smaller, and that did not help `patience` times in a row.
        """
        options = self._options
        if options is None:
            return
        if not overflowed:
            self._good, self._overflows = self._good + 1, 0
            if self._good >= options.growth:
                self.current, self._good = min(2 * self.current, options.most), 0
            return
        self._good = 0
        self._overflows = self._overflows + 1 if self.current == options.least else 0
        if self._overflows >= options.patience:
            raise TrainingError(
                f"gradients overflowed {self._overflows} times in a row at the least loss scale, {options.least:g}: "
                "they are not finite; lower the learning rate, or look for a division by zero in the model"
            )
        self.current = max(self.current / 2, options.least)

    def notes(self) -> list[float] | None:
        """All there is to know, for JSON; None when it is fixed."""
        return [self.current, self._good, self._overflows] if self.dynamic else None
