"""Generalized linear models, trained model-parallel by workers around a switch (P4SGD; docs/explanation/glm.md)."""

from __future__ import annotations

from catchment.host.glm.errors import GlmError
from catchment.host.glm.local import LocalRunner
from catchment.host.glm.model import Model
from catchment.host.glm.numbers import Loss, Numbers, Step
from catchment.host.glm.reader import read_samples
from catchment.host.glm.samples import Samples
from catchment.host.glm.shares import Shares
from catchment.host.glm.training import Epoch, Parallel, Prepared, Report, Runner, Training, prepare, train

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
