"""The whole machine in one simulation: Verilated NICs around the compiled P4 switch (docs/explanation/cosim.md)."""

from catchment.sim.cosim.errors import CosimError
from catchment.sim.cosim.machine import Kind, Machine
from catchment.sim.cosim.models import HostModel, LinkModel, StackModel, SwitchModel
from catchment.sim.world import Faults

__all__ = ["CosimError", "Faults", "HostModel", "Kind", "LinkModel", "Machine", "StackModel", "SwitchModel"]
