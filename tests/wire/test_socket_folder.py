"""Folders for sockets have room for a socket's path, wherever temporary files go."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from subprocess import PIPE

import pytest

from catchment.wire.socket_folder import LONGEST_SOCKET_PATH, place_for_sockets, socket_folder


def test_the_longest_path_is_what_the_kernel_takes() -> None:
    with socket_folder() as folder, socket.socket(socket.AF_UNIX) as longest, socket.socket(socket.AF_UNIX) as longer:
        name = "s" * (LONGEST_SOCKET_PATH - len(folder) - 1)
        longest.bind(f"{folder}/{name}")
        with pytest.raises(OSError, match="too long"):
            longer.bind(f"{folder}/{name}s")


@pytest.mark.parametrize("length", range(10, 110, 9))
def test_a_socket_fits_wherever_temporary_files_go(
    length: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/" + "t" * length)
    place = place_for_sockets("catchment-switch-")
    assert len(str(place / "catchment-switch-12345678" / "p4runtime.sock")) <= LONGEST_SOCKET_PATH
    assert place in (Path(tempfile.gettempdir()), Path("/tmp"))


def test_temporary_files_go_where_they_should_if_a_socket_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/var/tmp")
    with socket_folder() as folder:
        assert Path(folder).parent == Path("/var/tmp")


_OLD = 3600.0  # seconds


def _abandoned(place: Path, name: str, *, age: float = _OLD, file: str = "") -> Path:
    """A folder with a socket that nobody listens at, and a file of this name."""
    folder = place / name
    folder.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "grpc"))
    if file:
        (folder / file).touch()
    then = time.time() - age
    os.utime(folder, (then, then))
    return folder


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Folder to which temporary files go, and nobody else's; its path is short."""
    with tempfile.TemporaryDirectory(prefix="p", dir="/tmp") as folder:
        monkeypatch.setattr(tempfile, "tempdir", folder)
        yield Path(folder)


def test_a_folder_that_a_killed_process_has_left_is_removed_by_the_next_one(place: Path) -> None:
    script = (
        "from catchment.wire.socket_folder import socket_folder\n"
        "with socket_folder() as folder:\n"
        "    print(folder, flush=True)\n"
        "    input()\n"
    )
    environment = {**os.environ, "TMPDIR": str(place)}
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, stdin=PIPE, stdout=PIPE, text=True, env=environment) as owner:
        assert owner.stdout is not None
        left = Path(owner.stdout.readline().strip())
        assert left.parent == place
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(left / "grpc"))
        os.utime(left, (1, 1))
        with socket_folder() as folder:
            assert set(place.iterdir()) == {left, Path(folder)}  # its owner is alive
            assert list(left.iterdir())
        owner.kill()
    with socket_folder() as folder:
        assert set(place.iterdir()) == {Path(folder)}
    assert not list(place.iterdir())


@pytest.mark.parametrize(
    ("name", "age", "file"),
    [
        ("catchment-run-", _OLD, ""),
        ("catchment-run-12345678x", _OLD, ""),
        ("catchment-run-RESULTS1", _OLD, ""),
        ("catchment-12345678", _OLD, ""),
        ("catchment-run-12345678", 1.0, ""),  # is being made, perhaps
        ("catchment-run-12345678", _OLD, "weights.pt"),
    ],
)
def test_what_may_be_anybody_elses_stays(place: Path, name: str, age: float, file: str) -> None:
    folder = _abandoned(place, name, age=age, file=file)
    with socket_folder():
        pass
    assert folder.is_dir()
    assert (folder / "grpc").exists()
    assert not file or (folder / file).is_file()


def test_a_link_is_not_followed(place: Path) -> None:
    elsewhere = _abandoned(place, "elsewhere")
    (place / "catchment-run-12345678").symlink_to(elsewhere)
    with socket_folder():
        pass
    assert (elsewhere / "grpc").exists()


def test_a_folder_of_another_user_stays(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = _abandoned(place, "catchment-run-12345678")
    with monkeypatch.context() as changed:
        changed.setattr(os, "geteuid", lambda: os.getuid() + 1)
        with socket_folder():
            pass
    assert folder.is_dir()
    with socket_folder():
        pass
    assert not folder.exists()
