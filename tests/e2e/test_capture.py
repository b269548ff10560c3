"""`catchment capture` in a running network: every frame once, both ways, and every field of ours in Wireshark."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from lab import ROOT
from verbs import Catchment

from catchment.cli.capture import DISSECTOR
from catchment.wire.frame import load
from catchment.wire.generated.constants import UDP_PORT, Header, PacketType

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
    pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed"),
]
ECHO = ROOT / "tests" / "sim" / "lab" / "udp_echo.py"
TOPOLOGY = """\
name: {name}
switches:
  s1: {{program: {root}/p4src/luwu.p4, lanes: 8, ip: 10.0.0.254, mac: 02:00:00:00:fe:01}}
hosts:
  w0: {{ip: 10.0.0.1/24, mac: 02:00:00:00:00:01, link: s1:1}}
  w1: {{ip: 10.0.0.2/24, mac: 02:00:00:00:00:02, link: s1:2}}
"""
SENDER = """\
import socket, sys
packets = [bytes.fromhex(line) for line in sys.stdin.read().split()]
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
    out.sendto(packets[0], ("10.0.0.254", {port}))
    out.setsockopt(17, 103, len(packets[1]))  # UDP_SEGMENT: merged, unless somebody captures
    out.sendto(b"".join(packets[1:]), ("10.0.0.254", {port}))
"""


@pytest.fixture
def name() -> str:
    return f"capture-{os.getpid()}"


def dissect(path: Path) -> list[dict[str, Any]]:
    command = [
        "tshark", "-r", str(path), "-X", f"lua_script:{DISSECTOR}", "-T", "json", "--no-duplicate-keys",
    ]  # fmt: skip
    output = subprocess.run(command, capture_output=True, check=True).stdout
    return [packet["_source"]["layers"] for packet in json.loads(output)]


def send(headers: list[Header]) -> None:
    """Send frames from w0 to the switch."""
    sender = [
        sys.executable, "-m", "catchment.cli", "net", "exec", "w0",
        sys.executable, "-c", SENDER.format(port=UDP_PORT),
    ]  # fmt: skip
    packets = "\n".join(header.pack().hex() for header in headers)
    subprocess.run(sender, input=packets, text=True, check=True, cwd=ROOT, timeout=200)


def converse() -> None:
    """A datagram from w0 to w1, and its answer. The kernel may choose a port for it that is one of ours."""
    on = [sys.executable, "-m", "catchment.cli", "net", "exec"]
    command = [*on, "w1", sys.executable, str(ECHO), "serve", "10.0.0.2"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT)
    try:
        assert server.stdout is not None
        assert server.stdout.readline() == b"ready\n"
        command = [*on, "w0", sys.executable, str(ECHO), "ask", "10.0.0.2", "64", str(UDP_PORT + 1)]
        subprocess.run(command, check=True, cwd=ROOT, timeout=200)
    finally:
        server.kill()
        server.wait()


def goes_to_the_switch(layers: dict[str, Any]) -> bool:
    """Whether this is a frame of ours, and not one of another's that Wireshark takes for one because of its port."""
    return "catchment" in layers and layers["udp"]["udp.dstport"] == str(UDP_PORT)


def place(layers: dict[str, Any]) -> tuple[str, str]:
    """Interface and direction."""
    frame = layers["frame"]
    flags = json.dumps(frame)
    direction = next(word for word in ("Inbound", "Outbound", "0x00000001", "0x00000002") if word in flags)
    name = next(
        value["frame.interface_name"] if isinstance(value, dict) else value
        for key, value in frame.items()
        if key in {"frame.interface_id_tree", "frame.interface_name"}
    )
    return name, "in" if direction in {"Inbound", "0x00000001"} else "out"


@pytest.mark.sampled(4)
@pytest.mark.parametrize("late", [False, True])
def test_a_capture_shows_every_frame_and_field(catchment: Catchment, name: str, tmp_path: Path, *, late: bool) -> None:
    """A capture that gets the processor late has every frame that passed before it was told to end."""
    topology = tmp_path / "net.yaml"
    topology.write_text(TOPOLOGY.format(name=name, root=ROOT))
    catchment("net", "up", "-d", str(topology))
    headers = [
        Header(type=kind, gen=1000 + kind, wid=3, seq=1 << 31 | kind, ack=7, credit=99, exp=-5, next_exp=4)
        for kind in PacketType
    ]
    path = tmp_path / "run.pcapng"
    command = [sys.executable, "-m", "catchment.cli", "capture", "s1:1", "s1:2", "w0", "-o", str(path)]
    capture = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        assert capture.stderr is not None
        assert "capturing at s1:1, s1:2, w0" in capture.stderr.readline()
        if late:
            capture.send_signal(signal.SIGSTOP)
        send(headers)
        converse()
    finally:
        capture.terminate()
        capture.send_signal(signal.SIGCONT)
    said = capture.communicate(timeout=200)[1]
    assert capture.returncode == 0, said
    assert f"frames in {path}" in said

    seen = [(place(layers), layers) for layers in dissect(path)]
    for where in (("s1:1", "in"), ("w0", "out")):
        ours = [layers["catchment"] for at, layers in seen if at == where and goes_to_the_switch(layers)]
        assert len(ours) == len(headers)
        for header, tree in zip(headers, ours, strict=True):
            shown = {field.name: int(tree[f"catchment.{field.name}"], 0) for field in load().fields}
            assert shown == {field.name: getattr(header, field.name) for field in load().fields}
    asked = {at for at, layers in seen if layers.get("ip", {}).get("ip.dst") == "10.0.0.2"}
    assert asked == {("s1:1", "in"), ("s1:2", "out"), ("w0", "out")}
    answered = {at for at, layers in seen if layers.get("ip", {}).get("ip.src") == "10.0.0.2"}
    assert answered == {("s1:1", "out"), ("s1:2", "in"), ("w0", "in")}

    assert "no port '9'" in catchment("capture", "s1:9", code=1)
    assert "no switch or host 'w9'" in catchment("capture", "w9", code=1)
    stats = json.loads(catchment("stats", "--json"))
    (one,) = stats
    assert {port["port"]: port["rx_packets"] > 0 for port in one["port_statistics"]} == {1: True, 2: True}
