"""`catchment demo`: train a language model through a P4 switch, and show that nothing was lost on the way."""

from catchment.demo.orchestrate import run
from catchment.sim.lab.errors import LabError
from catchment.sim.training.options import TrainingOptions

__all__ = ["LabError", "TrainingOptions", "run"]
