"""Which process may attach, what is said when not, and that either side may die."""

from __future__ import annotations

import os
import resource
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from raw_end import Layout, memory, welcome

from catchment.checkout import ROOT
from catchment.softswitch.process import DEFAULT_EXECUTABLE, SwitchProcessError
from catchment.softswitch.shm import DetachedError, Port, ShmError

if TYPE_CHECKING:
    from shm_switch import Launch

pytest_plugins = ["shm_switch"]

FRAME = bytes(range(60))
PEER = """
import sys
from catchment.softswitch.shm import Port
port = Port.attach(sys.argv[1])
print("attached", flush=True)
while True:
    port.send(bytes(60), timeout=None)
"""


def crosses(one: Port, two: Port) -> bool:
    """A frame gets from one to two; others may be under way."""
    one.send(FRAME, timeout=60.0)
    deadline = time.monotonic() + 60.0
    while time.monotonic() < deadline:
        if FRAME in two.receive(timeout=1.0):
            return True
    return False


def test_a_port_has_one_peer_at_a_time(launch: Launch, folder: Path) -> None:
    launch()
    with Port.attach(folder / "1", timeout=60.0) as first:
        with pytest.raises(ShmError, match=rf"port 1 belongs to process {os.getpid()} of user"):
            Port.attach(folder / "1", timeout=0)  # one try, until the switch has answered
        epoch = first.info.epoch
    with Port.attach(folder / "1", timeout=60.0) as second, Port.attach(folder / "2", timeout=60.0) as two:
        assert second.info.epoch > epoch
        assert crosses(second, two)


def test_a_killed_peer_frees_its_port(launch: Launch, folder: Path) -> None:
    switch = launch()
    with Port.attach(folder / "2", timeout=60.0) as two:
        for _ in range(3):
            with subprocess.Popen(
                [sys.executable, "-c", PEER, str(folder / "1")], stdout=subprocess.PIPE, text=True
            ) as peer:
                assert peer.stdout is not None
                assert peer.stdout.readline() == "attached\n"
                assert two.receive(timeout=60.0)  # in the middle of its sending
                peer.kill()
        with Port.attach(folder / "1", timeout=60.0) as one:
            assert crosses(one, two)
    switch.stop()
    assert "is gone" in switch.output


def test_a_killed_switch_is_attached_to_again(launch: Launch, folder: Path) -> None:
    switch = launch()
    with Port.attach(folder / "1", timeout=60.0) as one, Port.attach(folder / "2", timeout=60.0) as two:
        for round_ in range(1, 4):
            assert crosses(one, two)
            epoch = two.info.epoch
            switch.kill()
            with pytest.raises(DetachedError, match="no switch to attach to"):
                two.receive(timeout=0.3)
            with pytest.raises(DetachedError):
                one.wait_attached(timeout=0.1)
            with pytest.raises(DetachedError):
                one.send(FRAME, timeout=60.0)
            assert not one.info.attached
            switch = launch()  # takes over the sockets that were left lying
            one.wait_attached(timeout=60.0)
            two.wait_attached(timeout=60.0)
            assert two.info.epoch > epoch
            assert two.info.attachments == round_ + 1
            assert two.info.switch_pid == switch.pid
        assert crosses(one, two)


def test_an_orderly_end_removes_the_sockets(launch: Launch, folder: Path) -> None:
    switch = launch()
    assert {path.name for path in folder.iterdir()} == {"1", "2", "3", "4"}
    assert (folder / "1").stat().st_mode & 0o777 == 0o600
    assert switch.stop(grace=60) == 0
    assert list(folder.iterdir()) == []


def test_the_sockets_mode_is_the_operators(launch: Launch, folder: Path) -> None:
    launch(",mode=660")
    assert (folder / "1").stat().st_mode & 0o777 == 0o660


def test_two_switches_do_not_share_a_path(launch: Launch, folder: Path) -> None:
    switch = launch()
    with pytest.raises(SwitchProcessError, match="another process listens there"):
        launch()
    with Port.attach(folder / "1", timeout=60.0) as one, Port.attach(folder / "2", timeout=60.0) as two:
        assert crosses(one, two)
    switch.check()


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("shm:{0}/" + "x" * 120, "the path of a port has 1 to 107 characters"),
        ("shm:{0}/nowhere/1", "cannot bind: No such file or directory"),
        ("shm:{0}/file", "exists and is not a socket"),
        ("shm:{0}/1,cells=3", "3 cells: a power of two from 2 to 65536 is needed"),
        ("shm:{0}/1,cells=many", "'cells=many' is not an option"),
        ("shm:{0}/1,bytes=0", "cells of 0 bytes"),
        ("shm:{0}/1,bytes=70000", "cells of 70016 bytes"),
        ("shm:{0}/1,mode=999", "'mode=999' is not an option"),
        ("shm:{0}/1,mode=", "'mode=' is not an option"),
        ("shm:{0}/1,colour=red", "'colour=red' is not an option"),
        ("shm:{0}/1,", "'' is not an option"),
        ("shm:", "'shm:' needs a path"),
    ],
)
def test_a_wrong_port_is_refused_at_the_start(spec: str, says: str, folder: Path) -> None:
    (folder / "file").write_text("precious")
    run = subprocess.run(
        [DEFAULT_EXECUTABLE, "--grpc=127.0.0.1:0", f"--port=1={spec.format(folder)}"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode in (1, 2)
    assert says in run.stderr
    assert (folder / "file").read_text() == "precious"


def test_attaching_to_nothing_says_so(folder: Path) -> None:
    with pytest.raises(ShmError, match="No such file or directory; is a switch running"):
        Port.attach(folder / "1", timeout=0)
    with pytest.raises(ShmError, match="107 characters"):
        Port.attach(folder / ("x" * 120), timeout=30)
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(folder / "other"))
        with pytest.raises(ShmError, match="Connection refused"):
            Port.attach(folder / "other", timeout=0.1)


@pytest.mark.parametrize("timeout", [0, 0.3])
def test_a_switch_that_never_answers_is_told_of(folder: Path, timeout: float) -> None:
    with socket.socket(socket.AF_UNIX) as stopped:
        stopped.bind(str(folder / "stopped"))
        stopped.listen(8)
        code = f"from catchment.softswitch.shm import Port; Port.attach({str(folder / 'stopped')!r}, timeout={timeout})"
        run = subprocess.run(
            [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
        )
    assert "stopped: who listens there has not answered; is the switch stopped?" in run.stderr


def test_a_switch_without_descriptors_tells_peers_and_the_operator(launch: Launch, folder: Path) -> None:
    switch = launch()
    room = resource.prlimit(switch.pid, resource.RLIMIT_NOFILE)
    taken = len(list(Path(f"/proc/{switch.pid}/fd").iterdir()))
    resource.prlimit(switch.pid, resource.RLIMIT_NOFILE, (taken, room[1]))
    with pytest.raises(ShmError, match="the switch has no room: Too many open files"):
        Port.attach(folder / "1", timeout=0)
    deadline = time.monotonic() + 60.0
    while "nobody can attach: Too many open files" not in switch.output:
        assert time.monotonic() < deadline, switch.output
        time.sleep(0.01)
    resource.prlimit(switch.pid, resource.RLIMIT_NOFILE, room)
    Port.attach(folder / "1", timeout=60.0).close()


def handed(folder: Path, message: bytes, descriptors: list[int]) -> str:
    """What a peer says of a switch that begins so."""
    path = folder / "fake"
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        # The library tries without blocking, so the answer can be there before the question.
        attempt = subprocess.Popen(
            [
                sys.executable,
                "-c",
                "import sys; from catchment.softswitch.shm import Port; Port.attach(sys.argv[1])",
                str(path),
            ],
            stderr=subprocess.PIPE,
            text=True,
        )
        connection, _ = listener.accept()
        with connection:
            socket.send_fds(connection, [message], descriptors)
            text = attempt.communicate(timeout=120)[1]
    for descriptor in descriptors:
        os.close(descriptor)
    return text.splitlines()[-1]


def test_a_peer_checks_what_the_switch_hands_over(folder: Path) -> None:
    good = Layout(16, 2112)
    header = good.header()
    cases = {
        "is not a port of catchment-switch": (b"HTTP/1.1 200 OK\r\n", []),
        "version 2 of the format": (welcome(version=2), []),
        "handed over no memory": (welcome(), []),
        "its size is not sealed": (welcome(), [memory(good, seals=0)]),
        "it has 100 bytes": (welcome(), [memory(good, size=100)]),
        "does not begin with CATCHSHM": (welcome(), [memory(good, header=b"x" * 40)]),
        "format version 9": (welcome(), [memory(good, header=header[:8] + b"\x09" + header[9:])]),
        "15 cells: a power of two": (welcome(), [memory(good, header=Layout(15, 2112).header())]),
        "cells of 65 bytes": (welcome(), [memory(good, header=Layout(16, 65).header())]),
        "where its rings need": (welcome(), [memory(good, header=Layout(32, 2112).header())]),
    }
    for says, (message, descriptors) in cases.items():
        assert says in handed(folder, message, descriptors)


def test_an_idle_switch_sleeps(launch: Launch, folder: Path) -> None:
    switch = launch()

    def used() -> int:
        fields = Path(f"/proc/{switch.pid}/stat").read_text().rpartition(") ")[2].split()
        return int(fields[11]) + int(fields[12])

    with Port.attach(folder / "1", timeout=60.0) as one, Port.attach(folder / "2", timeout=60.0) as two:
        assert crosses(one, two)
        before = used()
        assert two.receive(timeout=2.0) == []
        # Spinning would be two seconds.
        assert (used() - before) / os.sysconf("SC_CLK_TCK") < 0.5
