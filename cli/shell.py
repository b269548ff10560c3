"""`catchment shell`: p4runtime-shell on a switch, by name."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from catchment.cli.target import DeviceOption, TopologyOption, find_place, patience
from catchment.controlplane.client import SwitchClient
from catchment.controlplane.shell import run


def shell(
    switch: Annotated[str, typer.Argument(help="Switch name, or its address.")],
    topology: TopologyOption = None,
    device_id: DeviceOption = 1,
) -> None:
    """An interactive p4runtime-shell; commands can also be piped in: the exit code is 1 if one of them fails."""
    if ":" in switch:
        address = switch
    else:
        place = find_place(topology)
        address, device_id = place.address(switch), place.topology.switch(switch).device_id
    # The shell exits without a word when nothing answers; ask first.
    name = switch if ":" not in switch else None
    SwitchClient.connect(address, device_id, name=name, timeout=patience(), read_only=True).close()
    sys.exit(run(address, device_id))
