"""Merged UDP at a switch's ports: the frames that the kernel itself would have made, merged again for who wants it."""

from __future__ import annotations

import contextlib
import os
import random
import select
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from frame_ports import FramePorts, ip
from server_programs import Program, compiled
from udp_packets import NEEDS_CHECKSUM, Flow, any_flow, any_payload, note
from waiting import wait_for

from catchment.softswitch.admin import SwitchAdmin
from catchment.softswitch.process import SwitchProcess

SOL_PACKET, PACKET_VNET_HDR = 263, 15
MTU = 9000
NOTE = 10
SINCE = (6, 2)

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
    pytest.mark.skipif(
        tuple(map(int, os.uname().release.split("-")[0].split(".")[:2])) < SINCE, reason="needs Linux 6.2 or later"
    ),
]


class NotedPorts:
    """h1 and h2 of a switch that passes frames from one to the other, with sockets that have notes."""

    def __init__(self, ports: FramePorts) -> None:
        self._ports = ports
        for number in (1, 2):
            for side in "sh":
                ip("-n", ports.namespace, "link", "set", f"{side}{number}", "mtu", str(MTU))
        self.noted = {number: ports._open(f"h{number}") for number in (1, 2)}
        for one in self.noted.values():
            one.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)

    def segmentation(self, *interfaces: str, on: bool) -> None:
        """Whether the interfaces take merged UDP, or the kernel splits it in front of them."""
        value = "on" if on else "off"
        for interface in interfaces:
            command = ["ethtool", "-K", interface, "tx", value, "sg", value, "tx-udp-segmentation", value]
            subprocess.run([*self._ports.prefix, *command], check=True, capture_output=True)

    def send(self, port: int, said: bytes, packet: bytes) -> None:
        self.noted[port].send(said + packet)

    def receive(self, port: int, kind: bytes, timeout: float = 60.0) -> bytes:
        """The next frame with such an Ethertype that comes to a port, as a socket without notes sees it."""
        return self._receive(self._ports.sockets[port], kind, timeout)

    def receive_noted(self, port: int, kind: bytes, timeout: float = 60.0) -> tuple[bytes, bytes]:
        """The next packet and its note."""
        both = self._receive(self.noted[port], kind, timeout, NOTE)
        return both[:NOTE], both[NOTE:]

    def tcp_segmentation(self, interface: str) -> None:
        """Leave TCP's segmentation to an interface, too."""
        command = [*self._ports.prefix, "ethtool", "-K", interface, "tso", "on"]
        subprocess.run(command, check=True, capture_output=True)

    def waiting(self, port: int) -> list[bytes]:
        """What has come to a port and was not received yet."""
        frames = []
        with contextlib.suppress(BlockingIOError):
            while True:
                data, address = self._ports.sockets[port].recvfrom(1 << 17, socket.MSG_DONTWAIT)
                if address[2] != socket.PACKET_OUTGOING:
                    frames.append(data)
        return frames

    def close(self) -> None:
        for one in self.noted.values():
            one.close()

    @staticmethod
    def _receive(one: socket.socket, kind: bytes, timeout: float, skip: int = 0) -> bytes:
        deadline = time.monotonic() + timeout
        while select.select([one], [], [], max(0.0, deadline - time.monotonic()))[0]:
            data, address = one.recvfrom(1 << 17)
            if address[2] != socket.PACKET_OUTGOING and data[skip + 12 : skip + 14] == kind:
                return data
        raise TimeoutError("nothing came")


@pytest.fixture(scope="session")
def wires(tmp_path_factory: pytest.TempPathFactory) -> Program:
    """wires.p4: port 1 to 2 and back."""
    return compiled("wires", tmp_path_factory.mktemp("wires"))


@pytest.fixture
def noted(ports: FramePorts) -> Iterator[NotedPorts]:
    one = NotedPorts(ports)
    yield one
    one.close()


@pytest.fixture
def admin(
    noted: NotedPorts, ports: FramePorts, start: Callable[..., SwitchProcess], wires: Program, tmp_path: Path
) -> Iterator[SwitchAdmin]:
    del noted  # it sets the MTU first
    start(
        grpc=f"unix:{tmp_path}/switch.sock",
        ports=ports.interfaces,
        prefix=ports.prefix,
        program=wires.shared_object,
        p4info=wires.p4info_file,
        extra=("--admin", f"{tmp_path}/admin"),
    )
    with SwitchAdmin(tmp_path / "admin") as one:
        yield one


def ethertype(flow: Flow) -> bytes:
    return b"\x86\xdd" if flow.v6 else b"\x08\x00"


def test_segments_are_those_of_the_kernel_byte_for_byte(
    admin: SwitchAdmin, noted: NotedPorts, rng: random.Random
) -> None:
    """The reference: the same packet through the same link, segmented by the kernel in front of it."""
    packets = []
    for _ in range(60):
        flow = any_flow(rng)
        flow = Flow(flow.v6, b"", flow.options, flow.identification, flow.fragment, flow.ports, flow.ttl)
        payload, segment = any_payload(rng, longest=MTU - flow.payload)
        if len(payload) > segment:  # else there is nothing to segment, and the kernel says so
            packets.append((flow, *flow.merged(payload, segment), -(-len(payload) // segment)))
    got: list[list[bytes]] = []
    for by_switch in (True, False):
        noted.segmentation("h1", on=by_switch)
        before = admin.port(1)["rx_packets"]
        got.append([])
        for flow, said, packet, count in packets:
            noted.send(1, said, packet)
            got[-1] += [noted.receive(2, ethertype(flow)) for _ in range(count)]
        assert admin.port(1)["rx_packets"] - before == len(got[-1]) == sum(count for *_, count in packets)
    assert got[0] == got[1]
    assert sum(admin.port(1)["drops"].values()) + admin.port(1)["missed"] == 0


def test_a_tag_that_the_kernel_took_out_is_in_every_segment(admin: SwitchAdmin, noted: NotedPorts) -> None:
    flow, payload = Flow(tags=bytes.fromhex("8100a123")), bytes(range(250)) * 10
    noted.segmentation("h1", on=True)
    noted.send(1, *flow.merged(payload, 1000))
    lengths = [len(noted.receive(2, ethertype(flow))) for _ in range(3)]
    # Taken out once more before the socket at the other end sees them.
    assert lengths == [len(frame) - 4 for frame in flow.segments(payload, 1000)]
    assert admin.port(2)["tx_bytes"] == sum(lengths) + 3 * 4


def test_unfinished_checksums_are_finished(admin: SwitchAdmin, noted: NotedPorts) -> None:
    del admin
    flow = Flow()
    noted.segmentation("h1", on=True)
    noted.send(
        1, note(flags=NEEDS_CHECKSUM, start=flow.transport, offset=6), flow.frame(b"x" * 77, udp_checksum="left")
    )
    assert noted.receive(2, ethertype(flow)) == flow.frame(b"x" * 77)


def test_who_sends_merged_udp_gets_it(admin: SwitchAdmin, noted: NotedPorts) -> None:
    flow, back = Flow(), Flow(ports=(7, 8))
    payload = os.urandom(700 * 13 + 5)
    noted.segmentation("h1", "h2", "s1", "s2", on=True)
    deadline = time.monotonic() + 60
    seen = 0
    while True:  # the wish lasts for a second, which may be short on a busy machine
        assert time.monotonic() < deadline, "never merged"
        noted.send(2, *back.merged(bytes(300), 100))
        seen += 3
        wait_for(lambda: admin.port(2)["rx_packets"] == seen, "h2's segments seen")  # noqa: B023
        noted.send(1, *flow.merged(payload, 700))
        said, packet = noted.receive_noted(2, ethertype(flow))
        if said != bytes(NOTE):
            break
        for _ in range(13):
            noted.receive_noted(2, ethertype(flow))
    assert (said, packet) == flow.merged(payload, 700)


def test_faults_meet_single_frames(admin: SwitchAdmin, noted: NotedPorts, seed: int) -> None:
    flow, payload = Flow(), bytes(100) * 50
    noted.segmentation("h1", on=True)
    admin.set_faults(1, f"in.loss=0.5,seed={seed}")
    for _ in range(10):
        noted.send(1, *flow.merged(payload, 100))
    wait_for(lambda: admin.port(1)["faults_in"]["seen"] == 500, "all segments seen")
    lost = admin.port(1)["faults_in"]["lost"]
    assert 100 < lost < 400
    wait_for(lambda: admin.port(2)["tx_packets"] == 500 - lost, "the others passed")


def test_packets_that_nobody_should_believe_do_no_harm(
    admin: SwitchAdmin, noted: NotedPorts, rng: random.Random
) -> None:
    """What a hostile host can make its kernel send: counted, split or refused, and the switch goes on."""
    noted.segmentation("h1", on=True)
    noted.tcp_segmentation("h1")
    sent = 0
    for _ in range(1000):
        flow, (payload, segment) = any_flow(rng), any_payload(rng, longest=rng.choice([100, 60000]))
        said, packet = (bytearray(part) for part in flow.merged(payload, segment))
        if rng.random() < 0.5:
            said[1] = rng.choice([0, 1, 3, 4, 5, 0x81, 0x84])
        for part in (said, packet[:90]):
            if rng.random() < 0.3:
                part[rng.randrange(len(part))] = rng.choice([0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)])
        with contextlib.suppress(OSError):  # the kernel refuses much of it
            noted.send(1, bytes(said), bytes(packet))
            sent += 1
    assert sent > 100
    flow = Flow(ports=(1234, 4321))
    payload = b"after" * 1000
    expected = flow.segments(payload, 1234)
    deadline = time.monotonic() + 60
    while noted.waiting(2)[-len(expected) :] != expected:  # more than its socket holds may have come before
        assert time.monotonic() < deadline, "the switch does not go on"
        noted.send(1, *flow.merged(payload, 1234))
        time.sleep(0.01)
    assert admin.port(1)["drops"]["frame too long"] > 0, "what cannot be split"
