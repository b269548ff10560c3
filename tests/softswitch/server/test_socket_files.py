"""Files at the paths of a switch's sockets when it starts: those that nobody has any more make room."""

from __future__ import annotations

import socket
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from catchment.softswitch.process import SwitchProcess, SwitchProcessError

Launch = Callable[..., SwitchProcess]


@pytest.fixture
def path() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="p") as folder:
        yield Path(folder) / "socket"


def launch_on(start: Launch, path: Path, use: str) -> SwitchProcess:
    match use:
        case "grpc":
            return start(grpc=f"unix:{path}")
        case "admin":
            return start(extra=("--admin", str(path)))
        case _:
            return start(ports={1: f"shm:{path}"})


@pytest.mark.parametrize("use", ["grpc", "admin", "port"])
class TestSocketFile:
    def test_a_socket_that_nobody_has_is_replaced(self, start: Launch, path: Path, use: str) -> None:
        with socket.socket(socket.AF_UNIX) as left:
            left.bind(str(path))
        assert launch_on(start, path, use).is_alive()

    def test_a_listener_with_a_full_queue_is_left_alone(self, start: Launch, path: Path, use: str) -> None:
        """Who connects to it would wait."""
        with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as queued:
            listener.bind(str(path))
            listener.listen(0)
            queued.connect(str(path))
            with pytest.raises(SwitchProcessError, match="another process listens there"):
                launch_on(start, path, use)
            assert path.is_socket()

    def test_a_socket_of_another_kind_is_left_alone(self, start: Launch, path: Path, use: str) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as living:
            living.bind(str(path))
            with pytest.raises(SwitchProcessError, match="another process listens there"):
                launch_on(start, path, use)
            assert path.is_socket()

    def test_a_file_is_left_alone(self, start: Launch, path: Path, use: str) -> None:
        path.write_text("kept")
        with pytest.raises(SwitchProcessError, match="exists and is not a socket"):
            launch_on(start, path, use)
        assert path.read_text() == "kept"
