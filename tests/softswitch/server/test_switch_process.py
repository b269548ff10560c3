"""catchment-switch as a process: start, readiness, bad command lines, end."""

from __future__ import annotations

import ctypes
import json
import os
import resource
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest
from raw_client import Names, RawClient
from server_programs import EXECUTABLE, Program

from catchment.softswitch.process import SwitchProcess, SwitchProcessError


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(EXECUTABLE), *arguments], capture_output=True, text=True, timeout=120, check=False)


def test_the_ready_line_says_where_it_listens(kinds: Program) -> None:
    process = subprocess.Popen(
        [
            str(EXECUTABLE), "--grpc=127.0.0.1:0", "--device-id=77", "--port=3=lo",
            f"--program={kinds.shared_object}", f"--p4info={kinds.p4info_file}",
        ],
        stdout=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        ready = json.loads(process.stdout.readline())
        assert ready["event"] == "ready"
        assert ready["device_id"] == 77
        assert ready["pid"] == process.pid
        assert ready["ports"] == {"3": "lo"}
        assert ready["program"] == str(kinds.shared_object)
        with RawClient(ready["grpc"], device_id=77) as client:
            assert client.arbitrate() == 0
    finally:
        process.terminate()
        assert process.wait(120) == 0
        process.stdout.close()


def test_it_ends_in_time_with_clients_connected(start: Callable[..., SwitchProcess]) -> None:
    switch = start()
    clients = [RawClient(switch.address) for _ in range(5)]
    for number, client in enumerate(clients):
        client.arbitrate((0, number))
    assert switch.stop(grace=60) == 0, "it had to be killed"
    for client in clients:
        with pytest.raises(grpc.RpcError):
            deque(iter(client.receive, None))
        client.close()


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--port", "1=no_such_if"], 1, ["port 1", "no_such_if"]),
        (["--grpc", "192.0.2.1:9559", "--allow-plaintext"], 1, ["192.0.2.1:9559"]),
        (["--grpc", "192.0.2.1:9559"], 2, ["192.0.2.1:9559", "--tls-client-ca"]),
        (["--grpc", f"unix:/tmp/{'x' * 120}"], 1, ["longer than"]),
        (["--grpc", "unix:/proc/catchment.sock"], 1, ["/proc/catchment.sock"]),
        (["--program", "missing.so", "--p4info", "missing.txt"], 1, ["missing"]),
        (["--tls-cert", "missing.pem", "--tls-key", "missing.key"], 1, ["missing"]),
        (["--program", "x.so"], 2, ["--p4info"]),
        (["--port", "1"], 2, ["--port", "NUMBER=INTERFACE"]),
        (["--port", "512=lo"], 2, ["512"]),
        (["--port", "1=lo", "--port", "1=eth0"], 2, ["twice"]),
        (["--port", "510=lo"], 2, ["CPU port"]),
        (["--device-id", "0"], 2, ["--device-id"]),
        (["--device-id", "x"], 2, ["--device-id", "x"]),
        (["--log-level", "loud"], 2, ["loud"]),
        (["--owner", "0"], 2, ["--owner"]),
        (["--grpc"], 2, ["--grpc", "value"]),
        (["--frobnicate", "1"], 2, ["--frobnicate"]),
        (["stray"], 2, ["stray"]),
    ],
)
def test_what_keeps_it_from_starting_is_said(arguments: list[str], code: int, words: list[str]) -> None:
    if "--grpc" not in arguments:
        arguments = ["--grpc", "127.0.0.1:0", *arguments]
    result = run(*arguments)
    assert result.returncode == code
    assert result.stdout == ""
    assert [word for word in words if word not in result.stderr] == [], result.stderr


def test_a_busy_port_is_an_error() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        address = f"127.0.0.1:{other.getsockname()[1]}"
        result = run("--grpc", address)
    assert result.returncode == 1
    assert address in result.stderr


def test_two_switches_do_not_share_an_address(start: Callable[..., SwitchProcess]) -> None:
    assert run("--grpc", start().address).returncode == 1


def test_it_ends_with_its_owner() -> None:
    """A program that is killed leaves no switch behind, whichever thread of it started one."""
    owner = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    command = [str(EXECUTABLE), "--grpc", "127.0.0.1:0", "--owner", str(owner.pid)]
    with owner, subprocess.Popen(command, stdout=subprocess.PIPE) as switch:
        try:
            assert switch.stdout is not None
            assert switch.stdout.readline(), "it does not start"
            assert switch.poll() is None
            owner.kill()
            assert switch.wait(60) == 0
        finally:
            switch.kill()
            owner.kill()
    assert run("--grpc", "127.0.0.1:0", "--owner", str(owner.pid)).returncode == 0, "the owner had ended before"


def test_help_names_every_option() -> None:
    result = run("--help")
    assert result.returncode == 0
    for option in (
        "--grpc",
        "--device-id",
        "--port",
        "--program",
        "--p4info",
        "--program-dir",
        "--cpu-port",
        "--owner",
    ):
        assert option in result.stdout


def test_the_starter_quotes_what_the_switch_said(kinds: Program) -> None:
    with pytest.raises(SwitchProcessError, match="no_such_if"):
        SwitchProcess(ports={1: "no_such_if"}, executable=EXECUTABLE)
    with pytest.raises(SwitchProcessError, match="make native"):
        SwitchProcess(executable=Path("/nonexistent/catchment-switch"))
    with pytest.raises(SwitchProcessError, match="is not ready after"):
        SwitchProcess(executable=EXECUTABLE, prefix=("/bin/sh", "-c", "exec sleep 30", "sh"), timeout=0.2)


def test_ctrl_c_is_for_the_owner_and_the_processors_are_shared_with_it(start: Callable[..., SwitchProcess]) -> None:
    """A terminal interrupts a process group; the kernel may share processors out by sessions."""
    pid = start().pid
    assert os.getpgid(pid) == pid != os.getpgid(0)
    assert os.getsid(pid) == os.getsid(0)


def test_the_starter_tells_when_the_switch_ended(start: Callable[..., SwitchProcess]) -> None:
    switch = start()
    assert switch.is_alive()
    switch.check()
    assert switch.stop(grace=60) == 0
    assert not switch.is_alive()
    with pytest.raises(SwitchProcessError, match="code 0"):
        switch.check()


def test_a_restarted_switch_is_empty_and_election_ids_start_over(
    start: Callable[..., SwitchProcess], kinds: Program, names: Names
) -> None:
    first = start(program=kinds.shared_object, p4info=kinds.p4info_file)
    with RawClient(first.address) as client:
        client.arbitrate((0, 50))
        client.insert(names.entry("lpm_t", {}, ("set_lpm", [1])))
    first.stop()
    second = start(grpc=first.address, program=kinds.shared_object, p4info=kinds.p4info_file)
    assert second.address == first.address
    with RawClient(second.address) as client:
        assert client.arbitrate((0, 1)) == 0
        assert client.read(names.entry("lpm_t")) == []
        assert client.get_pipeline().config.p4info == kinds.p4info


def test_unix_sockets(start: Callable[..., SwitchProcess], tmp_path: Path) -> None:
    switch = start(grpc=f"unix:{tmp_path}/switch.sock")
    assert switch.address == f"unix:{tmp_path}/switch.sock"
    with RawClient(switch.address) as client:
        assert client.arbitrate() == 0
    assert run("--grpc", switch.address).returncode == 1, "it took the socket of a switch that lives"
    with RawClient(switch.address) as client:
        assert client.arbitrate((0, 2)) == 0  # the switch may not have seen the end of the first one
    left = tmp_path / "left.sock"
    with socket.socket(socket.AF_UNIX) as dead:  # as a switch that was killed leaves one
        dead.bind(str(left))
    with RawClient(start(grpc=f"unix:{left}").address) as client:
        assert client.arbitrate() == 0


def test_nobody_else_gets_in_by_default(kinds: Program, tmp_path: Path) -> None:
    """Started without an address, a switch listens at a socket of its user alone, and at no port."""
    command = [str(EXECUTABLE), f"--program={kinds.shared_object}", f"--p4info={kinds.p4info_file}"]
    surroundings = {**os.environ, "CATCHMENT_RUN_DIR": str(tmp_path / "run")}
    # With a umask as many a daemon has it.
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=surroundings, umask=0) as process:
        try:
            assert process.stdout is not None
            address = json.loads(process.stdout.readline())["grpc"]
            path = Path(address.removeprefix("unix:"))
            assert path == tmp_path / "run" / "p4runtime-1.sock"
            assert path.stat().st_mode & 0o777 == 0o600
            assert path.parent.stat().st_mode & 0o777 == 0o755
            connections = subprocess.run(["ss", "-Hltnp"], capture_output=True, text=True, check=True).stdout
            assert f"pid={process.pid}," not in connections
            with RawClient(address) as client:
                assert client.arbitrate() == 0
        finally:
            process.terminate()
            assert process.wait(120) == 0
    assert not path.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: it has a /run of its own")
def test_an_empty_variable_names_no_folder(kinds: Program) -> None:
    switch = f"exec {EXECUTABLE} --program={kinds.shared_object} --p4info={kinds.p4info_file}"
    command = ["unshare", "--mount", "sh", "-c", f"mount -t tmpfs none /run && {switch}"]
    surroundings = {**os.environ, "CATCHMENT_RUN_DIR": ""}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=surroundings) as process:
        try:
            assert process.stdout is not None
            assert json.loads(process.stdout.readline())["grpc"] == "unix:/run/catchment/p4runtime-1.sock"
        finally:
            process.terminate()


def connect_as(user: int, path: Path) -> type[OSError] | None:
    """What another user meets at a socket; for files each thread has a user of its own."""

    def attempt() -> type[OSError] | None:
        ctypes.CDLL(None).setfsuid(user)
        with socket.socket(socket.AF_UNIX) as one:
            try:
                one.connect(str(path))
            except OSError as error:
                return type(error)
        return None

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(attempt).result()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become somebody else")
def test_as_nobody_nothing_is_possible(start: Callable[..., SwitchProcess], kinds: Program) -> None:
    switch = start(program=kinds.shared_object, p4info=kinds.p4info_file)
    path = Path(switch.address.removeprefix("unix:"))
    for folder in path.parents[:1]:
        folder.chmod(0o755)  # the socket itself keeps others out
    for user, error in ((0, None), (65534, PermissionError)):
        assert connect_as(user, path) is error


def test_a_switch_that_may_open_no_more_files_waits_and_answers_later(
    start: Callable[..., SwitchProcess], tmp_path: Path
) -> None:
    """Whoever asks its admin socket meanwhile is no reason to take all of a processor."""
    switch = start(grpc=f"unix:{tmp_path}/switch.sock", extra=("--admin", f"{tmp_path}/admin"))
    limits = resource.prlimit(switch.pid, resource.RLIMIT_NOFILE)
    open_now = len(list(Path(f"/proc/{switch.pid}/fd").iterdir()))
    resource.prlimit(switch.pid, resource.RLIMIT_NOFILE, (open_now, limits[1]))
    with socket.socket(socket.AF_UNIX) as waiting:
        waiting.connect(f"{tmp_path}/admin")
        waiting.sendall(b"ports\n")
        before = ticks(switch.pid)
        time.sleep(1.0)
        taken = ticks(switch.pid) - before
        resource.prlimit(switch.pid, resource.RLIMIT_NOFILE, limits)
        assert b'"ok": true' in waiting.recv(4096)
    assert taken < os.sysconf("SC_CLK_TCK") / 2, "it spun"


def ticks(pid: int) -> int:
    """The processor time that a process has taken, in clock ticks."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])
