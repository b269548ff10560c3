"""Ports on network interfaces: frames, links, statistics, faults, and the operator's door to them."""

from __future__ import annotations

import contextlib
import os
import random
import socket
import stat
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from frame_ports import PROBE_TYPE, FramePorts, ip
from server_programs import EXECUTABLE, Program, compiled
from waiting import wait_for

from catchment.softswitch.admin import SwitchAdmin, SwitchAdminError
from catchment.softswitch.process import SwitchProcess

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")


@pytest.fixture(scope="session")
def wires(tmp_path_factory: pytest.TempPathFactory) -> Program:
    """wires.p4: port 1 to 2 and back, 3 to 4 and back."""
    return compiled("wires", tmp_path_factory.mktemp("wires"))


@pytest.fixture
def launch(
    ports: FramePorts, start: Callable[..., SwitchProcess], wires: Program, tmp_path: Path
) -> Callable[..., SwitchProcess]:
    """Starts the switch on the four interfaces, with a door at tmp_path/admin."""

    def launch_it(*extra: str) -> SwitchProcess:
        return start(
            grpc=f"unix:{tmp_path}/switch.sock",
            ports=ports.interfaces,
            prefix=ports.prefix,
            program=wires.shared_object,
            p4info=wires.p4info_file,
            extra=("--admin", f"{tmp_path}/admin", *extra),
        )

    return launch_it


@pytest.fixture
def admin(launch: Callable[..., SwitchProcess], tmp_path: Path) -> Iterator[SwitchAdmin]:
    """The door of a switch that runs wires.p4."""
    launch()
    with SwitchAdmin(tmp_path / "admin") as one:
        yield one


def frame(number: int, size: int = 64) -> bytes:
    head = bytes.fromhex("020000000001020000000002") + PROBE_TYPE + number.to_bytes(4, "big")
    return head + bytes(size - len(head))


def number_of(data: bytes) -> int:
    return int.from_bytes(data[14:18], "big")


def test_a_burst_passes_whole_and_in_order(admin: SwitchAdmin, ports: FramePorts, rng: random.Random) -> None:
    sizes = [rng.randrange(18, 1500) for _ in range(3000)]
    got: list[bytes] = []
    for number, size in enumerate(sizes):
        ports.send(1, frame(number, size))
        if number % 500 == 499:  # no more than the receiving socket holds
            got += [ports.receive(2) for _ in range(500)]
    assert got == [frame(number, size) for number, size in enumerate(sizes)]
    one, two = admin.port(1), admin.port(2)
    assert (one["rx_packets"], one["rx_bytes"]) == (3000, sum(sizes))
    wait_for(lambda: admin.port(2)["tx_packets"] == 3000, "3000 frames counted as sent")
    assert admin.port(2)["tx_bytes"] == sum(sizes)
    assert (one["name"], one["up"], two["up"]) == ("s1", True, True)
    assert sum(one["drops"].values()) + one["missed"] == 0


def test_a_vlan_tag_that_the_kernel_takes_out_is_put_back(admin: SwitchAdmin, ports: FramePorts) -> None:
    del admin
    plain = frame(7)
    ports.sockets[2].setsockopt(263, 8, 1)  # SOL_PACKET, PACKET_AUXDATA: our own side's tag, too
    ports.send(1, plain[:12] + bytes.fromhex("8100a123") + plain[12:])
    data, auxiliary, *_ = ports.sockets[2].recvmsg(2048, 256)
    assert data == plain
    vlan = int.from_bytes(auxiliary[0][2][16:18], "little")
    assert vlan == 0xA123


def test_frames_for_a_port_that_is_not_there_are_counted(admin: SwitchAdmin, ports: FramePorts) -> None:
    admin_port = admin.port
    ports.send(3, frame(1))
    assert number_of(ports.receive(4)) == 1
    ports.set_link(4, up=False)
    wait_for(lambda: not admin_port(4)["up"], "port 4 down")
    ports.send(3, frame(2))
    wait_for(lambda: admin_port(4)["drops"]["no such port"] == 1, "the frame counted as dropped")
    assert admin_port(4)["tx_packets"] == 1


def test_a_link_that_goes_down_comes_back(admin: SwitchAdmin, ports: FramePorts) -> None:
    for number in (1, 2):
        ports.set_link(number, up=False)
        wait_for(lambda: not admin.port(number)["up"], "down")  # noqa: B023
        ports.set_link(number, up=True)
        wait_for(lambda: admin.port(number)["up"], "up again")  # noqa: B023
        ports.send(1, frame(number))
        assert number_of(ports.receive(2)) == number


def test_an_interface_that_is_made_anew_is_served_again(
    launch: Callable[..., SwitchProcess], ports: FramePorts, tmp_path: Path
) -> None:
    switch = launch()
    with SwitchAdmin(tmp_path / "admin") as admin:
        ip("-n", ports.namespace, "link", "del", "s2")
        wait_for(lambda: not admin.port(2)["up"], "gone")
        ports.send(1, frame(1))
        wait_for(lambda: admin.port(2)["drops"]["no such port"] == 1, "the frame counted as dropped")
        ip("-n", ports.namespace, "link", "add", "s2", "type", "veth", "peer", "name", "h2")
        for side in ("s2", "h2"):
            ip("-n", ports.namespace, "link", "set", side, "up")
        wait_for(lambda: admin.port(2)["up"], "back")
        ports.sockets[2].close()
        ports.sockets[2] = ports._open("h2")
        ports.send(1, frame(2))
        assert number_of(ports.receive(2)) == 2
    wait_for(lambda: "port 2 (s2): the interface is back" in switch.output, "the message about it")
    assert "port 2 (s2): the interface is gone" in switch.output


def test_faults_come_and_go_while_it_runs(admin: SwitchAdmin, ports: FramePorts) -> None:
    admin.set_faults(1, "in.loss=1,seed=3")
    for number in range(20):
        ports.send(1, frame(number))
    wait_for(lambda: admin.port(1)["faults_in"]["lost"] == 20, "20 frames lost")
    assert ports.is_silent(2)
    assert admin.port(1)["rx_packets"] == 0, "faults are below the program"
    admin.set_faults(1, "off")
    admin.set_faults(2, "out.dup=1,seed=3")
    ports.send(1, frame(99))
    assert [number_of(ports.receive(2)) for _ in range(2)] == [99, 99]
    assert admin.port(2)["faults_out"]["duplicated"] == 1
    assert admin.port(2)["faults"] == "out.dup=1,seed=3"
    assert admin.port(1)["faults"] == "off"


def test_a_delayed_frame_comes_later(launch: Callable[..., SwitchProcess], ports: FramePorts) -> None:
    switch = launch("--fault", "1:in.delay=60ms,seed=5", "--fault", "2:out.delay=40ms")
    start = time.monotonic()
    ports.send(1, frame(1))
    assert number_of(ports.receive(2)) == 1
    assert time.monotonic() - start >= 0.1
    ports.send(2, frame(2))  # the other way nothing waits but on port 2's way out
    assert number_of(ports.receive(1)) == 2
    assert "port 1 (s1): faults in.delay=60000us,seed=5" in switch.output
    assert "port 2 (s2): faults out.delay=40000us,seed=" in switch.output, "the seed that was chosen"


def test_lost_frames_are_as_many_as_counted(admin: SwitchAdmin, ports: FramePorts, seed: int) -> None:
    admin.set_faults(1, f"in.loss=0.3,seed={seed}")
    admin.set_faults(2, f"out.loss=0.3,seed={seed}")
    sent = 2000
    for number in range(sent):
        ports.send(1, frame(number))
    wait_for(lambda: admin.port(1)["faults_in"]["seen"] == sent, "all frames seen")
    lost = admin.port(1)["faults_in"]["lost"]
    wait_for(lambda: admin.port(2)["faults_out"]["seen"] == sent - lost, "all others on their way out")
    lost += admin.port(2)["faults_out"]["lost"]
    got = [number_of(ports.receive(2)) for _ in range(sent - lost)]
    assert got == sorted(set(got)), "each once, in order"
    assert ports.is_silent(2)
    assert 0.4 * sent < lost < 0.6 * sent


@pytest.mark.parametrize(
    ("request_line", "part"),
    [
        ("fault 1:loss=2", "probability"),
        ("fault 9:loss=0.1", "no port 9"),
        ("fault loss=0.1", "PORT:SPEC"),
        ("fault x:loss=0.1", "PORT:SPEC"),
        ("fault 1", "PORT:SPEC"),
        ("faults", "not `ports`"),
        ("", "not `ports`"),
        ('"\\', "not `ports`"),
        ("\x01\x7f", "not `ports`"),
    ],
)
def test_a_wrong_request_is_refused_and_the_door_stays_open(admin: SwitchAdmin, request_line: str, part: str) -> None:
    with pytest.raises(SwitchAdminError, match=part):
        admin._ask(request_line)
    assert len(admin.ports()) == 4


def test_endless_lines_and_vanishing_clients_do_no_harm(admin: SwitchAdmin, tmp_path: Path) -> None:
    for payload in (b"x" * 100_000, b"ports\n" * 50, b"po"):
        with socket.socket(socket.AF_UNIX) as rude:
            rude.connect(str(tmp_path / "admin"))
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                rude.sendall(payload)
    assert len(admin.ports()) == 4


def test_the_door_is_the_owners_only(admin: SwitchAdmin, tmp_path: Path) -> None:
    del admin
    mode = (tmp_path / "admin").stat().st_mode
    assert stat.S_ISSOCK(mode)
    assert stat.S_IMODE(mode) == 0o600


def test_a_door_in_use_is_refused_and_an_old_one_replaced(
    admin: SwitchAdmin, start: Callable[..., SwitchProcess], tmp_path: Path
) -> None:
    del admin
    result = subprocess.run(
        [str(EXECUTABLE), "--grpc", f"unix:{tmp_path}/other.sock", "--admin", str(tmp_path / "admin")],
        check=False, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert result.returncode == 1
    assert "another process listens there" in result.stderr
    with socket.socket(socket.AF_UNIX) as old:
        old.bind(str(tmp_path / "old"))
    start(grpc=f"unix:{tmp_path}/third.sock", extra=("--admin", str(tmp_path / "old")))
    with SwitchAdmin(tmp_path / "old") as again:
        assert again.ports() == []
    with pytest.raises(SwitchAdminError, match="no switch listens"):
        SwitchAdmin(tmp_path / "nobody")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--port", "1=a", "--fault", "2:loss=0.1"], ["--fault", "no port 2"]),
        (["--port", "1=a", "--fault", "1:loss=1.1"], ["--fault", "probability"]),
        (["--port", "1=a", "--fault", "1:loss=0.1", "--fault", "1:dup=0.1"], ["port 1", "twice"]),
        (["--port", "1=a", "--fault", "loss=0.1"], ["PORT:SPEC"]),
        (["--port", "1=shm:"], ["shm:PATH"]),
        (["--port", "1=cable:"], ["cable:PATH"]),
        (["--port", "1=eth:"], ["not a network interface"]),
        (["--port", "1=a-name-too-long-for-linux"], ["not a network interface"]),
        (["--port", "1=../a"], ["not a network interface"]),
    ],
)
def test_wrong_ports_and_faults_are_refused_at_the_start(arguments: list[str], words: list[str]) -> None:
    result = subprocess.run([str(EXECUTABLE), *arguments], check=False, capture_output=True, text=True, timeout=120)
    assert result.returncode == 2
    assert [word for word in words if word not in result.stderr] == [], result.stderr
