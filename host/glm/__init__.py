"""Generalized linear models, trained model-parallel by workers that a switch adds up for (P4SGD; docs/glm.md)."""

from __future__ import annotations

from host.glm.errors import GlmError
from host.glm.numbers import Loss, Numbers, Step
from host.glm.shares import Shares

__all__ = ["GlmError", "Loss", "Numbers", "Shares", "Step"]
