"""What is wrong with a world that a caller asked for."""

from __future__ import annotations


class WorldError(ValueError):
    """A rate, a probability or a time that no line can have."""
