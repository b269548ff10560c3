"""A switch with four shared-memory ports: 1 to 2 and back, 3 to 4 and back."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from google.protobuf import text_format
from shm_ports import PORTS

from catchment.softswitch.build import build
from catchment.softswitch.process import DEFAULT_EXECUTABLE, SwitchProcess

EXECUTABLE = Path(os.environ.get("CATCHMENT_SWITCH", DEFAULT_EXECUTABLE))
Launch = Callable[..., SwitchProcess]


@pytest.fixture(scope="session")
def wires(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """wires.p4, compiled: the program and its P4Info."""
    folder = tmp_path_factory.mktemp("wires")
    built = build(Path(__file__).parents[1] / "server" / "wires.p4")
    shutil.copy(built.shared_object, folder / "wires.so")
    (folder / "wires.txt").write_text(text_format.MessageToString(built.p4info))
    return folder / "wires.so", folder / "wires.txt"


@pytest.fixture
def folder() -> Iterator[Path]:
    """The folder of the ports' sockets: a short path, open to other users, as pytest's own are not."""
    with tempfile.TemporaryDirectory(prefix="p") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture
def launch(folder: Path, wires: tuple[Path, Path]) -> Iterator[Launch]:
    """Starts switches, behind `prefix`, on `folder`/1 to 4, with `options` after each path and `extra` arguments."""
    started: list[SwitchProcess] = []

    def launch_one(
        options: str = "",
        ports: dict[int, str] | None = None,
        extra: tuple[str, ...] = (),
        prefix: tuple[str, ...] = (),
    ) -> SwitchProcess:
        switch = SwitchProcess(
            ports=ports or {port: f"shm:{folder}/{port}{options}" for port in PORTS},
            program=wires[0],
            p4info=wires[1],
            executable=EXECUTABLE,
            extra=extra,
            prefix=prefix,
        )
        started.append(switch)
        return switch

    yield launch_one
    for switch in started:
        switch.stop()
