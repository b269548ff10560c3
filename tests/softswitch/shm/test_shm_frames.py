"""Frames through shared-memory ports: each one whole, in order, once."""

from __future__ import annotations

import random
import select
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from raw_end import FROM_SWITCH, RawPeer

from catchment.softswitch.shm import Port, ShmError

if TYPE_CHECKING:
    from shm_switch import Launch

pytest_plugins = ["shm_switch"]


def frame(rng: random.Random, most: int) -> bytes:
    """An Ethernet frame that wires.p4 sends across."""
    return rng.randbytes(12) + b"\x08\x00" + rng.randbytes(rng.randrange(0, most - 13))


def take(port: Port, count: int) -> list[bytes]:
    """So many frames, or what comes until none does for a minute."""
    frames: list[bytes] = []
    while len(frames) < count and (more := port.receive(timeout=60.0)):
        frames += more
    return frames


@pytest.mark.parametrize("options", ["", ",cells=2,bytes=2112", ",cells=64,bytes=9792"])
def test_every_frame_arrives_whole_and_in_order(options: str, launch: Launch, folder: Path, rng: random.Random) -> None:
    launch(options)
    with Port.attach(folder / "1", timeout=60.0) as one, Port.attach(folder / "2", timeout=60.0) as two:
        longest = min(one.info.frame_bytes, 9728)
        there = [frame(rng, rng.choice((64, 400, longest))) for _ in range(3000)]
        back = [frame(rng, rng.choice((64, 400, longest))) for _ in range(3000)]
        there[0], back[0] = frame(random.Random(1), 15), there[1].ljust(longest, b"x")
        # The switch holds about a thousand frames for a port beside its ring; what does not fit it drops.
        for start in range(0, len(there), 500):
            for here, away, frames in ((one, two, there), (two, one, back)):
                some = frames[start : start + 500]
                here.send(some, timeout=60.0)
                assert take(away, len(some)) == some
        assert one.info.sent == len(there)
        assert two.info.received == len(there)


def test_a_port_can_be_slept_on_with_select(launch: Launch, folder: Path, rng: random.Random) -> None:
    launch()
    with Port.attach(folder / "3", timeout=60.0) as three, Port.attach(folder / "4", timeout=60.0) as four:
        for _ in range(50):
            sent = frame(rng, 200)
            assert four.receive() == []
            assert four.arm()
            three.send(sent, timeout=60.0)
            assert select.select([four], [], [], 60.0)[0] == [four]
            assert four.receive(timeout=60.0) == [sent]


def test_frames_that_cannot_be_sent_are_refused(launch: Launch, folder: Path) -> None:
    launch(",bytes=2112")
    with Port.attach(folder / "1", timeout=60.0) as one, Port.attach(folder / "2", timeout=60.0) as two:
        for wrong in (b"", b"x" * 2113):
            with pytest.raises(ShmError, match=rf"a frame of {len(wrong)} bytes: 1 to 2112 fit"):
                one.send(wrong)
        assert one.send(b"x" * 2112, timeout=60.0) == 1
        assert two.receive(timeout=60.0) == [b"x" * 2112]
    with pytest.raises(ShmError, match="is closed"):
        one.send(b"x")


def test_a_peer_that_does_not_read_fills_its_own_ring_only(launch: Launch, folder: Path, rng: random.Random) -> None:
    launch(",cells=16,bytes=2112")
    with (
        RawPeer(folder / "2") as deaf,
        Port.attach(folder / "1", timeout=60.0) as one,
        Port.attach(folder / "3", timeout=60.0) as three,
        Port.attach(folder / "4", timeout=60.0) as four,
    ):
        one.send([frame(rng, 100) for _ in range(3000)], timeout=60.0)
        sent = [frame(rng, 300) for _ in range(100)]
        three.send(sent, timeout=60.0)
        assert take(four, len(sent)) == sent
        assert deaf.index(FROM_SWITCH) == 16
