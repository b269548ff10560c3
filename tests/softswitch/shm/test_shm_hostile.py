"""An end that writes nonsense into the shared memory costs its own port only."""

from __future__ import annotations

import random
import socket
import struct
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from raw_end import FROM_SWITCH, HEADER, PEER_WAITING, SWITCH_WAITING, TO_SWITCH, RawPeer

from catchment.softswitch.process import SwitchProcess
from catchment.softswitch.shm import Port

if TYPE_CHECKING:
    from shm_switch import Launch

pytest_plugins = ["shm_switch"]

FRAME = bytes(range(60))
READ = 128  # from a ring's `written` to its `read`


def works(switch: SwitchProcess, folder: Path) -> None:
    """The switch lives, and all four ports carry frames."""
    switch.check()
    for here, there in ((1, 2), (2, 1), (3, 4), (4, 3)):
        with (
            Port.attach(folder / str(here), timeout=60.0) as one,
            Port.attach(folder / str(there), timeout=60.0) as two,
        ):
            one.send(FRAME, timeout=60.0)
            assert two.receive(timeout=60.0) == [FRAME]


@pytest.mark.parametrize("length", [0, 2113, 0xFFFF, 0xFFFF_FFFF])
def test_a_length_that_cannot_be(length: int, launch: Launch, folder: Path) -> None:
    switch = launch(",cells=16,bytes=2112")
    with RawPeer(folder / "1") as peer:
        peer.put(FRAME)
        peer.put(FRAME, claim=length)
        assert f"frame 1 claims {length} bytes; 1 to 2112 are possible" in peer.farewell()
    works(switch, folder)
    switch.stop()
    assert "is corrupt: frame 1 claims" in switch.output


@pytest.mark.parametrize("written", [17, 1000, 1 << 32, -1, 1 << 63])
def test_a_write_index_that_cannot_be(written: int, launch: Launch, folder: Path) -> None:
    switch = launch(",cells=16,bytes=2112")
    with RawPeer(folder / "1") as peer:
        peer.set_index(TO_SWITCH, written)
        peer.wake()
        assert f"write index {written % (1 << 64)} is not within 16 cells" in peer.farewell()
    works(switch, folder)


@pytest.mark.parametrize("read", [17, 1 << 40, -1])
def test_a_read_index_that_cannot_be(read: int, launch: Launch, folder: Path) -> None:
    switch = launch(",cells=16,bytes=2112")
    with RawPeer(folder / "2") as peer, Port.attach(folder / "1", timeout=60.0) as one:
        peer.set_index(FROM_SWITCH + READ, read)
        one.send([FRAME] * 17, timeout=60.0)  # one more than fits, so that the index is looked at
        assert f"read index {read % (1 << 64)} goes back, or beyond" in peer.farewell()
    works(switch, folder)


def test_frames_of_wrong_lengths_are_no_fault(launch: Launch, folder: Path) -> None:
    """A cell may be longer than what the switch takes; that frame is dropped and counted, the port goes on."""
    launch(",bytes=16000")
    with RawPeer(folder / "1") as peer, Port.attach(folder / "2", timeout=60.0) as two:
        peer.put(bytes(15999))
        peer.put(FRAME)
        assert two.receive(timeout=60.0) == [FRAME]


def scribble(peer: RawPeer, rng: random.Random) -> None:
    """Something that an honest peer never does."""
    layout = peer.layout
    match rng.randrange(7):
        case 0:
            place = rng.randrange(0, len(peer.memory) - 64)
            peer.memory[place : place + 64] = rng.randbytes(64)
        case 1:
            place = rng.randrange(0, HEADER - 8)
            peer.memory[place : place + 8] = rng.randbytes(8)
        case 2:
            offset = rng.choice((TO_SWITCH, TO_SWITCH + READ, FROM_SWITCH, FROM_SWITCH + READ))
            peer.set_index(offset, peer.index(offset) + rng.choice((-1, 1, layout.cells, layout.cells + 1, 1 << 32)))
        case 3:
            place = HEADER + 4 * rng.randrange(2 * layout.cells)
            struct.pack_into("<I", peer.memory, place, rng.choice((0, 1, layout.cell_bytes + 1, rng.getrandbits(32))))
        case 4:
            peer.put(rng.randbytes(rng.randrange(1, layout.cell_bytes)), claim=rng.choice((None, 1, 0, 1 << 31)))
        case 5:
            struct.pack_into("<I", peer.memory, rng.choice((SWITCH_WAITING, PEER_WAITING)), rng.getrandbits(32))
        case 6:
            peer.socket.send(rng.randbytes(rng.randrange(1, 300)), socket.MSG_DONTWAIT)


def test_random_scribbling(launch: Launch, folder: Path, rng: random.Random) -> None:
    """Peers that write anything anywhere, beside two that exchange frames and notice nothing."""
    switch = launch(",cells=16,bytes=2112")
    with Port.attach(folder / "3", timeout=60.0) as three, Port.attach(folder / "4", timeout=60.0) as four:
        for _ in range(60):
            with RawPeer(folder / rng.choice("12")) as peer:
                peer.socket.settimeout(0.5)
                for _ in range(rng.randrange(1, 200)):
                    try:
                        scribble(peer, rng)
                        peer.wake()
                    except (BrokenPipeError, ConnectionResetError, BlockingIOError, TimeoutError):
                        break  # thrown out, or not listened to
            three.send(FRAME, timeout=60.0)
            assert four.receive(timeout=60.0) == [FRAME]
            switch.check()
    works(switch, folder)
