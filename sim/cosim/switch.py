"""The embedded target in this process, filled from the control plane's plans."""

from __future__ import annotations

from catchment.controlplane.client import TableEntry
from catchment.controlplane.client.values import to_int
from catchment.controlplane.state.desired import SwitchConfig
from catchment.controlplane.topology import Switch as PlannedSwitch
from catchment.softswitch.build import build
from catchment.softswitch.inprocess import Switch

_WIDEST = 64


def build_switch(switch: PlannedSwitch, seed: int) -> Switch:
    """The program of a switch, compiled for its lanes and slots, with tags if it has them."""
    defines = {"LANES": str(switch.lanes), "SLOTS": str(switch.slots), **({"TAGS": "1"} if switch.tags else {})}
    return Switch(build(switch.program, defines=defines), seed=seed)


def write_config(config: SwitchConfig, switch: Switch) -> None:
    """Write a part that is not on the switch yet."""
    for group, ports in config.groups.items():
        switch.multicast(group, ports)
    for entry in config.entries:
        _write(entry, switch)


def take_off(config: SwitchConfig, switch: Switch) -> None:
    """Delete a part's entries; its groups stay."""
    for entry in config.entries:
        if not entry.is_default:
            switch.remove(entry.table, _numbers(entry.match))


def _write(entry: TableEntry, switch: Switch) -> None:
    if entry.is_default:
        switch.set_default(entry.table, entry.action, **_numbers(entry.params))
    else:
        switch.insert(entry.table, _numbers(entry.match), entry.action, **_numbers(entry.params))


def _numbers(values: object) -> dict[str, int]:
    assert isinstance(values, dict)
    return {name: to_int(value, _WIDEST, name) for name, value in values.items()}
