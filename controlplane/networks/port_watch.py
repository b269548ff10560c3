"""Ports of a switch that come up and go down, as they do.

P4Runtime does not tell of ports. The embedded switch does over the admin socket that it gives this machine's operators.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from catchment.controlplane.errors import ControlPlaneError
from catchment.controlplane.networks.state import admin_socket
from catchment.softswitch.admin import SwitchAdmin, SwitchAdminError


@dataclass(frozen=True, slots=True)
class PortChange:
    """A port, and whether it is up from now on."""

    port: int
    up: bool


async def watch_ports(address: str, *, interval: float = 0.25) -> AsyncIterator[PortChange]:
    """Each port of a switch as it is, then each change.

    Args:
        address: the gRPC address of an embedded switch on this machine.
        interval: seconds between two looks.

    Raises:
        ControlPlaneError: there is no such switch, or it has ended.
    """
    path = admin_socket(address)
    if path is None:
        raise ControlPlaneError(f"no admin socket can be on this machine for the switch at {address}")
    known: dict[int, bool] = {}
    while True:
        now = await asyncio.to_thread(_ports, path)
        for port, up in now.items():
            if known.get(port) is not up:
                yield PortChange(port, up)
        known = now
        await asyncio.sleep(interval)


def _ports(path: Path) -> dict[int, bool]:
    try:
        with SwitchAdmin(path) as admin:
            return {port["port"]: bool(port["up"]) for port in admin.ports()}
    except SwitchAdminError as error:
        raise ControlPlaneError(str(error)) from None
