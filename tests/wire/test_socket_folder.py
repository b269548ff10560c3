"""Folders for sockets have room for a socket's path, wherever temporary files go."""

from __future__ import annotations

import socket
import tempfile
from pathlib import Path

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
