"""`catchment demo`: train a language model through a P4 switch, and show that nothing was lost on the way."""

from sim.demo.errors import DemoError
from sim.demo.options import DemoOptions
from sim.demo.orchestrate import run

__all__ = ["DemoError", "DemoOptions", "run"]
