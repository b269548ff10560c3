"""A port of datagrams: frames of the program on one side, a UDP socket of anybody's on the other."""

from __future__ import annotations

import random
import socket
import struct
import subprocess
from collections.abc import Callable, Iterator
from ipaddress import IPv4Address
from pathlib import Path

import pytest
from server_programs import Program, compiled

from catchment.softswitch.process import DEFAULT_EXECUTABLE, SwitchProcess
from catchment.softswitch.shm import Port

SWITCH, PEER, SHOWN = "127.8.0.1", "127.8.0.2", IPv4Address("192.0.2.7")
SHOWN_PORT = 4791


@pytest.fixture(scope="session")
def wires(tmp_path_factory: pytest.TempPathFactory) -> Program:
    """wires.p4: port 1 to 2 and back."""
    return compiled("wires", tmp_path_factory.mktemp("wires"))


@pytest.fixture
def peer() -> Iterator[socket.socket]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
        peer.bind((PEER, 0))
        peer.settimeout(60.0)
        yield peer


def frame(payload: bytes, *, to: tuple[str, int], protocol: int = 17) -> bytes:
    """Ethernet, IPv4 and UDP without a checksum."""
    udp = struct.pack("!4H", 51836, to[1], 8 + len(payload), 0) + payload
    addresses = bytes([10, 0, 0, 1]) + IPv4Address(to[0]).packed
    ip = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(udp), 0, 0, 64, protocol, 0) + addresses
    return bytes(12) + b"\x08\x00" + ip + udp


def test_datagrams_are_frames_of_the_program(
    start: Callable[..., SwitchProcess], wires: Program, tmp_path_factory: pytest.TempPathFactory,
    peer: socket.socket, rng: random.Random,
) -> None:  # fmt: skip
    folder = tmp_path_factory.mktemp("p")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind((SWITCH, 0))
        own = free.getsockname()
    there = peer.getsockname()
    start(
        ports={
            1: f"shm:{folder}/1",
            2: f"udp:{own[0]}:{own[1]},{there[0]}:{there[1]},as={SHOWN}:{SHOWN_PORT}",
        },
        program=wires.shared_object,
        p4info=wires.p4info_file,
    )
    with Port.attach(folder / "1", timeout=60.0) as inside:
        payloads = [rng.randbytes(rng.randrange(1, 1400)) for _ in range(100)]
        nobody = [
            frame(b"x", to=(PEER, there[1] ^ 1)),
            frame(b"x", to=("127.8.0.3", there[1])),
            frame(b"x", to=there, protocol=6),
            rng.randbytes(60),
        ]
        sent = [frame(payload, to=there) for payload in payloads]
        for other in nobody:
            sent.insert(rng.randrange(len(sent)), other)
        inside.send(sent, timeout=60.0)
        assert [peer.recvfrom(2000) for _ in payloads] == [(payload, own) for payload in payloads]

        for payload in payloads:
            peer.sendto(payload, own)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            stranger.bind((PEER, 0))
            stranger.sendto(b"from somebody else", own)
        peer.sendto(b"the last", own)
        got: list[bytes] = []
        while len(got) < len(payloads) + 1:
            got += inside.receive(timeout=60.0)
    for payload, received in zip([*payloads, b"the last"], got, strict=True):
        assert received[42:] == payload
        assert received[12:15] == b"\x08\x00\x45" and received[23] == 17
        assert (received[26:30], received[30:34]) == (IPv4Address(PEER).packed, SHOWN.packed)
        assert struct.unpack("!3H", received[34:40]) == (there[1], SHOWN_PORT, 8 + len(payload))
        words = sum(struct.unpack("!10H", received[14:34]))
        assert (words & 0xFFFF) + (words >> 16) == 0xFFFF, "the checksum of the IP header"


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("udp:", "is not udp:LOCAL,PEER"),
        ("udp:127.0.0.1:7", "is not udp:LOCAL,PEER"),
        ("udp:127.0.0.1:7,127.0.0.1:8,mode=3", "is not udp:LOCAL,PEER"),
        ("udp:127.0.0.1:7,127.0.0.1", "'127.0.0.1' is not IP:PORT"),
        ("udp:127.0.0.1:0,127.0.0.1:8", "'127.0.0.1:0' is not IP:PORT"),
        ("udp:here:7,127.0.0.1:8", "'here:7' is not IP:PORT"),
        ("udp:127.0.0.1:7,127.0.0.1:65536", "'127.0.0.1:65536' is not IP:PORT"),
        ("udp:192.0.2.1:7,127.0.0.1:8", "Cannot assign requested address"),
    ],
)
def test_a_wrong_port_of_datagrams_is_refused(spec: str, says: str, tmp_path: Path) -> None:
    run = subprocess.run(
        [DEFAULT_EXECUTABLE, f"--grpc=unix:{tmp_path}/grpc", f"--port=1={spec}"],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert run.returncode in (1, 2)
    assert says in run.stderr
