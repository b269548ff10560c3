"""The folder of what runs: sockets of switches that were killed go, all others stay."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from catchment.controlplane.networks.state import admin_socket, remove_dead_sockets
from catchment.softswitch.admin import SwitchAdmin
from catchment.softswitch.process import SwitchProcess


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The run folder; a short path."""
    made = tmp_path_factory.mktemp("r")
    monkeypatch.setenv("CATCHMENT_RUN_DIR", str(made))
    return made


@pytest.fixture
def bound(folder: Path) -> Iterator[socket.socket]:
    """A switch that is about to listen."""
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(folder / "switch-starting.sock"))
        yield one


def test_what_a_killed_switch_left_goes(folder: Path) -> None:
    admin = admin_socket("127.0.0.1:1")
    assert admin is not None
    with SwitchProcess(extra=("--admin", str(admin))) as switch:
        assert remove_dead_sockets() == []
        with SwitchAdmin(admin) as door:
            assert door.ports() == []
        switch.kill()
        assert admin.exists()
        assert remove_dead_sockets() == [admin]
    assert list(folder.iterdir()) == []


def test_who_lives_keeps_his_socket(folder: Path, bound: socket.socket) -> None:
    """A socket is kept before it listens, while it listens, with a full queue, and in another process."""
    for step in (lambda: None, lambda: bound.listen(0)):
        step()
        assert remove_dead_sockets() == []
    waiting = []
    while True:
        waiting.append(socket.socket(socket.AF_UNIX))
        waiting[-1].setblocking(False)
        if waiting[-1].connect_ex(bound.getsockname()) != 0:
            break
    assert remove_dead_sockets() == []
    script = f"import socket; s = socket.socket(1); s.bind('{folder}/bmv2-1.ipc'); print(flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", script], stdin=-1, stdout=-1) as other:
        assert other.stdout is not None
        assert other.stdout.readline()
        assert remove_dead_sockets() == []
        other.kill()
        other.wait()
        assert remove_dead_sockets() == [folder / "bmv2-1.ipc"]
    assert list(folder.iterdir()) == [folder / "switch-starting.sock"]
    for one in waiting:
        one.close()


def test_what_is_no_socket_of_a_switch_stays(folder: Path) -> None:
    (folder / "switch-file.sock").write_text("not a socket")
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(folder / "other.sock"))
    assert remove_dead_sockets() == []
    assert len(list(folder.iterdir())) == 2


def test_a_switch_that_starts_meanwhile_keeps_its_own(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another one comes after the dead one was seen, and before it is removed."""
    path = folder / "switch-a.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    successor = socket.socket(socket.AF_UNIX)
    rename = Path.rename

    def late(old: Path, new: Path) -> Path:
        old.unlink()
        successor.bind(str(old))
        successor.listen()
        return rename(old, new)

    monkeypatch.setattr(Path, "rename", late)
    assert remove_dead_sockets() == []
    assert list(folder.iterdir()) == [path]
    with successor, socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))


def test_no_folder_is_no_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CATCHMENT_RUN_DIR", str(tmp_path / "none"))
    assert remove_dead_sockets() == []
