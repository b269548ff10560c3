"""A switch as in shm_switch.py that runs in its callers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from shm_ports import PORTS
from shm_switch import EXECUTABLE

from catchment.softswitch.process import SwitchProcess

Launch = Callable[..., SwitchProcess]


@pytest.fixture
def launch_inside(folder: Path, wires: tuple[Path, Path]) -> Iterator[Launch]:
    """Starts switches on the sockets `folder`/NAME1 to 4, whose operator's socket is `folder`/NAMEadmin."""
    started: list[SwitchProcess] = []

    def launch_one(name: str = "", *, options: str = "", in_callers: bool = True) -> SwitchProcess:
        switch = SwitchProcess(
            ports={port: f"shm:{folder}/{name}{port}{options}" for port in PORTS},
            program=wires[0],
            p4info=wires[1],
            executable=EXECUTABLE,
            extra=("--admin", f"{folder}/{name}admin", *(["--in-callers"] if in_callers else [])),
        )
        started.append(switch)
        return switch

    yield launch_one
    for switch in started:
        switch.stop()
