"""P4Runtime client: names and readable values on any target (see docs/control-plane.md)."""

from catchment.controlplane.client.entries import TableEntry
from catchment.controlplane.client.errors import SwitchError, UpdateFailure
from catchment.controlplane.client.p4info import P4Info
from catchment.controlplane.client.switch import CounterValue, SwitchClient

__all__ = ["CounterValue", "P4Info", "SwitchClient", "SwitchError", "TableEntry", "UpdateFailure"]
