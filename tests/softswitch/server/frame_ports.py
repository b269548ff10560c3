"""Network interfaces of a switch under test, in a network namespace of their own."""

from __future__ import annotations

import os
import select
import socket
import subprocess
import time
from pathlib import Path

from namespace_sockets import packet_socket

ETH_P_ALL = 3
PROBE_TYPE = b"\x88\xb5"


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


class FramePorts:
    """Pairs of interfaces s1-h1, s2-h2, ... in a namespace; frames are sent and taken at the h side."""

    def __init__(self, count: int) -> None:
        self.namespace = f"catchment-test-{os.getpid()}"
        ip("netns", "add", self.namespace)
        try:
            ip("-n", self.namespace, "link", "set", "lo", "up")
            for number in range(1, count + 1):
                ip("-n", self.namespace, "link", "add", f"s{number}", "type", "veth", "peer", "name", f"h{number}")
                for side in "sh":
                    # No frames of the kernel's own.
                    path = f"/proc/sys/net/ipv6/conf/{side}{number}/disable_ipv6"
                    command = f"echo 1 > {path}"
                    if Path("/proc/sys/net/ipv6").exists():
                        ip("netns", "exec", self.namespace, "sh", "-c", command)
                    ip("-n", self.namespace, "link", "set", f"{side}{number}", "up")
            self.sockets = {number: self._open(f"h{number}") for number in range(1, count + 1)}
        except BaseException:
            ip("netns", "del", self.namespace)
            raise

    @property
    def interfaces(self) -> dict[int, str]:
        """What the switch gets as its ports."""
        return {number: f"s{number}" for number in self.sockets}

    @property
    def prefix(self) -> tuple[str, ...]:
        """Command that puts the switch into the namespace."""
        return ("ip", "netns", "exec", self.namespace)

    def close(self) -> None:
        for one in self.sockets.values():
            one.close()
        ip("netns", "del", self.namespace)

    def set_link(self, port: int, *, up: bool) -> None:
        """Takes the switch's side of a port up or down."""
        ip("-n", self.namespace, "link", "set", f"s{port}", "up" if up else "down")

    def send(self, port: int, frame: bytes) -> None:
        self.sockets[port].send(frame)

    def receive(self, port: int, timeout: float = 60.0) -> bytes:
        """The next frame of ours at a port; raises TimeoutError."""
        deadline = time.monotonic() + timeout
        while True:
            ready, _, _ = select.select([self.sockets[port]], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise TimeoutError(f"no frame at port {port} within {timeout} s")
            frame, address = self.sockets[port].recvfrom(65536)
            if address[2] != socket.PACKET_OUTGOING and frame[12:14] == PROBE_TYPE:
                return frame

    def is_silent(self, port: int) -> bool:
        """Whether no frame of ours waits at a port."""
        try:
            self.receive(port, 0.0)
        except TimeoutError:
            return True
        return False

    def _open(self, interface: str) -> socket.socket:
        opened = packet_socket(Path(f"/run/netns/{self.namespace}"), interface, ETH_P_ALL)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        return opened


def probe(dst: int, *, address: int = 0, kind: int = 0, number: int = 0, wide: int = 0, tail: bytes = b"") -> bytes:
    """A frame of kinds.p4: Ethernet, the probe header with its results zero, payload."""
    return (
        dst.to_bytes(6, "big")
        + bytes.fromhex("02aabbccddee")
        + PROBE_TYPE
        + address.to_bytes(4, "big")
        + kind.to_bytes(2, "big")
        + number.to_bytes(2, "big")
        + wide.to_bytes(16, "big")
        + bytes(12)
        + tail
    )


def extras_probe(src: int, flow: int, frame_type: bytes = PROBE_TYPE) -> bytes:
    """A frame of extras.p4."""
    return bytes.fromhex("02ffeeddccbb") + src.to_bytes(6, "big") + frame_type + flow.to_bytes(2, "big") + bytes(8)


def results(frame: bytes) -> dict[str, int]:
    """What the tables wrote into a probe."""
    fields = ("lpm", "ternary", "range", "optional", "wide", "default")
    start = 14 + 24
    return {field: int.from_bytes(frame[start + 2 * k : start + 2 * k + 2], "big") for k, field in enumerate(fields)}
