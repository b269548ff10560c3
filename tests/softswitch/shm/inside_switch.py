"""A switch as in shm_switch.py that runs in its callers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from shm_ports import PORTS

from catchment.softswitch.process import SwitchProcess

if TYPE_CHECKING:
    from shm_switch import Launch as LaunchOne

Launch = Callable[..., SwitchProcess]


@pytest.fixture
def launch_inside(launch: LaunchOne, folder: Path) -> Launch:
    """Starts switches on the sockets `folder`/NAME1 to 4, whose operator's socket is `folder`/NAMEadmin."""

    def launch_one(
        name: str = "", *, options: str = "", in_callers: bool = True, prefix: tuple[str, ...] = ()
    ) -> SwitchProcess:
        return launch(
            ports={port: f"shm:{folder}/{name}{port}{options}" for port in PORTS},
            extra=("--admin", f"{folder}/{name}admin", *(["--in-callers"] if in_callers else [])),
            prefix=prefix,
        )

    return launch_one
