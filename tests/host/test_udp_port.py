"""The endpoint's UDP port: frames of one size travel merged, and arrive as what they were."""

from __future__ import annotations

import random
import socket
import time
from collections.abc import Callable, Iterator

import pytest

from catchment.host import _machines

LONGEST = 4132
SOL_UDP, UDP_SEGMENT = 17, 103


@pytest.fixture
def peer() -> Iterator[socket.socket]:
    """The port's peer, an ordinary socket."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        one.bind(("127.0.0.1", 0))
        one.settimeout(60.0)
        yield one


@pytest.fixture
def port(peer: socket.socket) -> _machines.UdpPort:
    return _machines.UdpPort(peer.getsockname()[1], LONGEST)


def any_frames(rng: random.Random) -> list[bytes]:
    """Runs of one size and strays between them, no more than a socket's buffer holds."""
    sizes: list[int] = []
    while len(sizes) < 20:
        size = rng.choice([32, LONGEST, rng.randrange(1, LONGEST + 1)])
        sizes += [size] * rng.choice([1, 2, 3, 15, 16, 17]) + [rng.randrange(1, size + 1)] * rng.randrange(2)
    return [rng.randbytes(size) for size in sizes]


def collect(receive: Callable[[], list[bytes]], count: int) -> list[bytes]:
    frames: list[bytes] = []
    deadline = time.monotonic() + 60
    while len(frames) < count:
        assert time.monotonic() < deadline, f"{len(frames)} of {count} frames"
        frames += receive()
    return frames


def test_a_peer_that_knows_nothing_of_it_gets_single_frames(
    port: _machines.UdpPort, peer: socket.socket, rng: random.Random
) -> None:
    for _ in range(30):
        frames = any_frames(rng)
        port.send(frames)
        assert [peer.recv(65536) for _ in frames] == frames
    assert port.errors == 0


def test_frames_leave_from_where_they_lie(port: _machines.UdpPort, peer: socket.socket, rng: random.Random) -> None:
    """Some of them; others are copied, and all keep their order."""
    for _ in range(30):
        frames = any_frames(rng)
        port.send(frames, [rng.random() < 0.5 for _ in frames])
        assert [peer.recv(65536) for _ in frames] == frames


def test_what_is_dropped_before_it_leaves_never_comes(
    port: _machines.UdpPort, peer: socket.socket, rng: random.Random
) -> None:
    for frame in any_frames(rng)[:20]:
        port.discard(rng.randbytes(LONGEST))
        port.send([frame])
        assert peer.recv(65536) == frame


def test_merged_frames_are_taken_apart(port: _machines.UdpPort, peer: socket.socket, rng: random.Random) -> None:
    peer.connect(("127.0.0.1", port.local))
    for _ in range(100):
        size = rng.randrange(1, LONGEST + 1)
        payload = rng.randbytes(rng.randrange(1, min(64 * size, 65000) + 1))
        peer.setsockopt(SOL_UDP, UDP_SEGMENT, size)
        peer.send(payload)
        frames = [payload[at : at + size] for at in range(0, len(payload), size)]
        assert collect(port.receive, len(frames)) == frames
