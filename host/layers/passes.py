"""The kinds of passes that an optimizer node is told to run, and that workers must run alike."""

from __future__ import annotations

import enum


class Pass(enum.IntEnum):
    """One forward, and what follows it. `False` and `True` mean FORWARD and TRAIN."""

    FORWARD = 0
    """Nothing follows: a validation."""
    TRAIN = 1
    """A backward whose gradients are added up, and an update."""
    ACCUMULATE = 2
    """A backward whose gradients stay with the workers, until the next training pass pushes them with its own."""
