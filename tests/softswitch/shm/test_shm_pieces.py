"""Frames that are committed in two pieces arrive as one, whichever way they are copied."""

from __future__ import annotations

import ctypes
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from catchment.softswitch.shm import Port
from catchment.softswitch.shm import library as c

if TYPE_CHECKING:
    from shm_switch import Launch

pytest_plugins = ["shm_switch"]

BYTES = 4160
ROOM, SECOND = 2, 1_000_000

Commit = Callable[..., int]


@pytest.fixture
def commit(launch: Launch, folder: Path) -> Iterator[Commit]:
    """Sends a frame, its head written to the reserved room; the status."""
    launch(f",cells=8,bytes={BYTES}")
    library = c.library()
    library.catchment_shm_reserve.restype = ctypes.c_void_p
    library.catchment_shm_reserve.argtypes = library.catchment_shm_flush.argtypes = [ctypes.c_void_p]
    library.catchment_shm_commit_with.argtypes = [ctypes.c_void_p, ctypes.c_uint32, ctypes.c_char_p, ctypes.c_uint32]
    port = library.catchment_shm_attach(str(folder / "1").encode(), 60_000, None, None, 0)
    assert port is not None

    def send(head: bytes, rest: bytes | None, rest_bytes: int | None = None) -> int:
        while (room := library.catchment_shm_reserve(port)) is None:
            assert library.catchment_shm_wait(port, ROOM, 60 * SECOND) > 0
        ctypes.memmove(room, head, len(head))
        behind = len(rest or b"") if rest_bytes is None else rest_bytes
        status = int(library.catchment_shm_commit_with(port, len(head), rest, behind))
        assert library.catchment_shm_flush(port) == 0
        return status

    yield send
    library.catchment_shm_detach(port)


def test_two_pieces_arrive_as_one_frame(commit: Commit, folder: Path, rng: random.Random) -> None:
    sizes = [(64, 4096), (64, 0), (64, 1), (128, 1000), (14, 4000), (63, 65), (100, 0), (64, 961), (4096, 64)]
    with Port.attach(folder / "2", timeout=60.0) as receiver:
        for turn in range(8):  # long frames are copied one way, then the other
            for head, rest in sizes:
                sent = bytes(12) + rng.randbytes(head + rest - 12)
                assert commit(sent[:head], sent[head:]) == 0
                assert receiver.receive(timeout=60.0) == [sent], f"turn {turn}: {head} and {rest} bytes"


def test_pieces_that_are_too_long_together_are_refused(commit: Commit, folder: Path) -> None:
    with Port.attach(folder / "2", timeout=60.0) as receiver:
        assert commit(bytes(64), bytes(BYTES - 63)) == c.ARGUMENT
        assert commit(b"", bytes(64)) == c.ARGUMENT
        assert commit(bytes(64), bytes(BYTES - 64)) == 0
        assert receiver.receive(timeout=60.0) == [bytes(BYTES)]


def test_a_piece_that_is_nowhere_is_refused(commit: Commit, folder: Path) -> None:
    with Port.attach(folder / "2", timeout=60.0) as receiver:
        assert commit(bytes(64), None, 32) == c.ARGUMENT
        assert commit(bytes(64), None) == 0
        assert receiver.receive(timeout=60.0) == [bytes(64)]
