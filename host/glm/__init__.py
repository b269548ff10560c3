"""Generalized linear models, trained model-parallel by workers that a switch adds up for (P4SGD; docs/glm.md)."""

from __future__ import annotations

from host.glm.errors import GlmError
from host.glm.local import LocalRunner
from host.glm.model import Model
from host.glm.numbers import Loss, Numbers, Step
from host.glm.reader import read_samples
from host.glm.samples import Samples
from host.glm.shares import Shares
from host.glm.training import Epoch, Parallel, Prepared, Report, Runner, Training, prepare, train

__all__ = [
    "Epoch",
    "GlmError",
    "LocalRunner",
    "Loss",
    "Model",
    "Numbers",
    "Parallel",
    "Prepared",
    "Report",
    "Runner",
    "Samples",
    "Shares",
    "Step",
    "Training",
    "prepare",
    "read_samples",
    "train",
]
