"""Delayed scaling: the exponent of the next push from the history of the largest magnitude, tensor by tensor.

The root sees sums only. With W workers, A = max|sum| / W is a lower bound of the largest single gradient, so
E = exponent(max of the last `history` A) + headroom, and a push saturates only if one worker's gradient exceeds
2^headroom times the largest mean of the window. A headroom bit costs one of the 30 - ceil(log2 W) bits of a value.
"""

from __future__ import annotations

import math
import sys
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from catchment.host.given_numbers import is_whole
from catchment.host.layers import TrainingError
from catchment.host.layers.message import EXPONENT_MAX, EXPONENT_MIN


@dataclass(frozen=True, slots=True)
class ScalingOptions:
    """Tuning of delayed scaling; exponents are of base 2."""

    initial: int = 0
    headroom: int = 3
    history: int = 16
    backoff: int = 4
    patience: int = 8

    def __post_init__(self) -> None:
        if not is_whole(self.initial, EXPONENT_MIN, EXPONENT_MAX):
            raise TrainingError(f"initial exponent {self.initial!r} is outside {EXPONENT_MIN}..{EXPONENT_MAX}")
        counts = all(is_whole(count, 1, sys.maxsize) for count in (self.history, self.backoff, self.patience))
        if not counts or not is_whole(self.headroom, 0):
            raise TrainingError(f"{self}: headroom >= 0, history, backoff and patience >= 1")


class DelayedScaling:
    """The exponent of one tensor. `observe` each sum; `exponent` is what the next push is to use."""

    def __init__(self, name: str, workers: int, options: ScalingOptions) -> None:
        """Start at `options.initial`, before anything was seen."""
        self._name = name
        self._workers = workers
        self._options = options
        self._history: deque[int] = deque(maxlen=options.history)
        self._refused = 0
        self.exponent = self._calm = options.initial

    def observe(self, largest: float, saturated: bool) -> bool:
        """Take in max|sum| of one step; True when the sum may be used, False when it is to be skipped.

        Policy for a saturated sum (a value beyond 2^E, NaN or infinity on some worker): the tensor's update is
        skipped, as loss scaling skips, and E rises by `backoff`. Other tensors are updated: some already are.

        Raises:
            TrainingError: `patience` skips in a row: raising E did not help, so the gradients are not finite.
        """
        if saturated or not math.isfinite(largest):
            self._refused += 1
            if self._refused >= self._options.patience:
                raise TrainingError(
                    f"gradients of {self._name} saturated {self._refused} times in a row, up to exponent "
                    f"{self.exponent}: they are not finite, or grow without bound; lower the learning rate"
                )
            self.exponent = min(EXPONENT_MAX, self.exponent + self._options.backoff)
            self._history.clear()
            return False
        self._refused = 0
        if largest > 0:
            self._history.append(math.frexp(largest / self._workers)[1])
        elif not self._history:  # raised so far that everything was rounded to 0: back to where it was before
            self.exponent = max(self._calm, self.exponent - self._options.backoff)
        if self._history:
            wanted = max(self._history) + self._options.headroom
            self.exponent = self._calm = max(EXPONENT_MIN, min(EXPONENT_MAX, wanted))
        return True

    def notes(self) -> list[int | list[int]]:
        """What it knows, for JSON."""
        return [self.exponent, self._refused, self._calm, list(self._history)]

    def restore(self, notes: Sequence[Any]) -> None:
        """Go on from what `notes` gave."""
        self.exponent, self._refused, self._calm = (int(note) for note in notes[:3])
        self._history.extend(int(exponent) for exponent in notes[3])
