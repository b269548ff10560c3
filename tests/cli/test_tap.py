"""Taps see their own interface's frames, all that are to be kept, whatever else passes; captures come to an end."""

from __future__ import annotations

import os
import random
import select
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from command_lab import Run
from scapy.utils import RawPcapNgReader

from catchment import cli
from catchment.checkout import ROOT
from catchment.cli import capture
from catchment.cli.tap import CaptureError, Listener, Tap
from catchment.cli.target import Place
from catchment.controlplane.diagnosis.pcapng import INBOUND, OUTBOUND
from catchment.controlplane.networks.state import NetworkState
from catchment.controlplane.topology.build import star

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="packet sockets need root")


class Line:
    """Two sockets on the loopback interface, where each frame goes out and comes in again."""

    def __init__(self) -> None:
        self._sender, self._receiver = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
        self._receiver.bind(("127.0.0.1", 0))

    def pass_on(self, payload: bytes) -> None:
        """Send a datagram and wait until it has come."""
        self._sender.sendto(payload, self._receiver.getsockname())
        assert self._receiver.recv(2000) == payload

    def close(self) -> None:
        self._sender.close()
        self._receiver.close()


@pytest.fixture
def line() -> Iterator[Line]:
    made = Line()
    yield made
    made.close()


@pytest.fixture
def payloads(rng: random.Random) -> list[bytes]:
    return [rng.randbytes(64) for _ in range(3)]


@contextmanager
def cable() -> Iterator[str]:
    """An interface on which nothing of the loopback's passes."""
    ends = [f"tap{os.getpid()}{end}" for end in "ab"]
    subprocess.run(["ip", "link", "add", ends[0], "type", "veth", "peer", "name", ends[1]], check=True)
    try:
        subprocess.run(["ip", "link", "set", ends[0], "up"], check=True)
        yield ends[0]
    finally:
        subprocess.run(["ip", "link", "del", ends[0]], check=True)


def seen(listener: Listener, payloads: list[bytes]) -> list[tuple[bytes, int]]:
    """Which of these payloads a listener has, in order, and the way each went."""
    return [
        (payload, frame.direction)
        for frame in listener.waiting()
        for payload in payloads
        if frame.data.endswith(payload)
    ]


@pytest.mark.parametrize("outgoing", [None, OUTBOUND])
def test_frames_that_are_not_kept_hide_none_that_wait_behind_them(
    line: Line, payloads: list[bytes], outgoing: int | None
) -> None:
    ways = [INBOUND] if outgoing is None else [outgoing, INBOUND]
    with Listener(Tap("lo", None, 0, INBOUND, outgoing)) as listener:
        for payload in payloads:
            line.pass_on(payload)
        assert seen(listener, payloads) == [(payload, way) for payload in payloads for way in ways]


def test_an_interface_that_is_never_still_keeps_nobody_from_going_on(line: Line, payloads: list[bytes]) -> None:
    """What comes while others are taken is left to the next time; others may use the interface, too."""
    first, second, _ = payloads
    with Listener(Tap("lo", None, 0, INBOUND, OUTBOUND)) as listener:
        line.pass_on(first)
        taken = []
        for frame in islice(listener.waiting(), 10_000):
            line.pass_on(second)
            taken.append(frame.data[-len(first) :])
        assert (taken.count(first), taken.count(second)) == (2, 0)
        assert (second, OUTBOUND) in seen(listener, payloads)


def test_a_tap_has_no_frame_of_another_interface(
    line: Line, payloads: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Frames pass on the loopback interface while the tap's socket is there and has no interface yet."""

    class Late(socket.socket):
        def bind(self, address: object) -> None:
            for payload in payloads:
                line.pass_on(payload)
            super().bind(address)  # type: ignore[arg-type]

    with cable() as interface:
        monkeypatch.setattr(socket, "socket", Late)
        with Listener(Tap(interface, None, 0, INBOUND, OUTBOUND)) as listener:
            assert seen(listener, payloads) == []


@pytest.mark.parametrize(("ending", "frames"), [(("-c", "3"), 3), (("-s", "0"), 2), (("-s", "0", "-c", "1"), 1)])
def test_a_capture_ends_while_frames_come(
    line: Line, ending: tuple[str, ...], frames: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It has its count of frames, or its time; a datagram comes whenever it looks for one."""
    path, look, looks = tmp_path / "run.pcapng", select.select, iter(range(9))

    def never_in_vain(*what: Any) -> Any:
        line.pass_on(b"again %d" % next(looks))
        return look(*what)

    monkeypatch.setattr(sys, "argv", ["catchment", "capture", "iface=lo", "-o", str(path), *ending])
    monkeypatch.setattr(select, "select", never_in_vain)
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert not end.value.code
    with RawPcapNgReader(str(path)) as reader:
        # Others may use the interface, too.
        assert len([data for data, _ in reader if "-c" in ending or b"again" in data]) == frames


def test_the_command_that_shows_a_capture_can_be_pasted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "run 1's.pcapng"
    monkeypatch.setattr(sys, "argv", ["catchment", "capture", "iface=lo", "-o", str(path), "-s", "0"])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert not end.value.code
    shown = shlex.split(capsys.readouterr().err.splitlines()[-1])
    assert shown == ["wireshark", "-X", f"lua_script:{capture.DISSECTOR}", str(path)]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_a_capture_in_order(number: signal.Signals, tmp_path: Path) -> None:
    path = tmp_path / "run.pcapng"
    command = [sys.executable, "-m", "catchment.cli", "capture", "iface=lo", "-o", str(path)]
    usual = ["env", "--default-signal=HUP", *command]
    with subprocess.Popen(usual, stderr=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stderr is not None
        assert "capturing at" in process.stderr.readline()
        process.send_signal(number)
        assert f"frames in {path}" in process.stderr.read()
        assert process.wait(60) == 0


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["iface=\udcff"], 1, r"'\udcff' is no name of an interface; `ip link` lists them"),
        (["iface="], 1, "'' is no name of an interface"),
        (["iface=lo", "--snap", str(2**32)], 2, "less than or equal to"),
    ],
)
def test_what_cannot_be_captured_is_one_message(
    call: Run, tmp_path: Path, words: list[str], code: int, said: str
) -> None:
    assert said in call("capture", *words, "-s", "0", "-o", str(tmp_path / "run.pcapng"), code=code)


def test_ports_that_are_memory_are_left_out_or_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    topology = star(["w0", "w1"], program=tmp_path / "x.p4")
    in_memory = replace(topology.host("w0"), shm=str(tmp_path / "w0"))
    topology = replace(topology, hosts={**topology.hosts, "w0": in_memory})
    network = NetworkState(topology.name, 1, hosts={"w0": 1, "w1": 1})
    monkeypatch.setattr(capture, "find_place", lambda _: Place(topology, {}, network))
    ports = [f"s1:{host.link.port}" for host in topology.hosts.values()]
    for word, seen in (("s1", ports[1:]), (ports[1], ports[1:]), ("w1", ["w1"])):
        assert [name for name, _ in capture._taps(word, None, 0)] == seen
    for word in (ports[0], "w0"):
        with pytest.raises(CaptureError, match=f"{word} has no interface: frames pass shared memory"):
            capture._taps(word, None, 0)
