"""Frames looked at where they lie: they stay there, cost the ring its cells, and outlive the switch."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from catchment.softswitch.shm import Port
from catchment.softswitch.shm import library as c

if TYPE_CHECKING:
    from shm_switch import Launch

pytest_plugins = ["shm_switch"]

BATCH = 64
SECOND = 1_000_000


class Looker:
    """A port of the C library whose frames are not copied."""

    def __init__(self, path: Path) -> None:
        self._library = c.library()
        self._library.catchment_shm_peek.argtypes = self._library.catchment_shm_receive.argtypes
        self.handle = self._library.catchment_shm_attach(str(path).encode(), 60_000, None, None, 0)
        assert self.handle is not None
        self.frames = (c.Frame * BATCH)()

    def peek(self) -> int:
        return int(self._library.catchment_shm_peek(self.handle, self.frames, BATCH))

    def wait(self, timeout: int = 60 * SECOND) -> int:
        return int(self._library.catchment_shm_wait(self.handle, 1, timeout))

    def read(self, count: int) -> list[bytes]:
        return [ctypes.string_at(frame.data, frame.length) for frame in self.frames[:count]]

    def detach(self) -> None:
        self._library.catchment_shm_detach(self.handle)


@pytest.fixture
def looker(launch: Launch, folder: Path) -> Iterator[Looker]:
    launch(",cells=8,bytes=128")
    made = Looker(folder / "2")
    yield made
    made.detach()


def frame(number: int) -> bytes:
    return bytes(12) + number.to_bytes(4, "big") * 12


def test_frames_come_in_order_from_where_they_lie(looker: Looker, folder: Path) -> None:
    seen: list[bytes] = []
    with Port.attach(folder / "1", timeout=60.0) as sender:
        for first in range(0, 400, 4):  # the ring of 8 cells goes round many times
            sender.send([frame(n) for n in range(first, first + 4)], timeout=60.0)
            while len(seen) < first + 4:
                assert looker.wait() > 0
                count = looker.peek()
                assert count >= 0
                seen += looker.read(count)
    assert seen == [frame(n) for n in range(400)]


def test_what_was_peeked_at_stays_until_the_next_look(looker: Looker, folder: Path) -> None:
    with Port.attach(folder / "1", timeout=60.0) as sender:
        sender.send([frame(n) for n in range(8)], timeout=60.0)
        seen = 0
        while seen < 8:
            assert looker.wait() > 0
            count = looker.peek()
            last = looker.read(count)
            seen += count
        # The cells are not given back yet: as many of these frames wait in the switch.
        sender.send([frame(n) for n in range(100, 108)], timeout=60.0)
        assert looker.read(count) == last
        later: list[bytes] = []
        while len(later) < 8:
            count = looker.peek()  # first: a sleep would wait for room that is lent
            assert count > 0 or looker.wait() > 0
            later += looker.read(count)
        assert later == [frame(n) for n in range(100, 108)]


def test_the_memory_outlives_its_switch(launch: Launch, folder: Path) -> None:
    switch = launch()
    looker = Looker(folder / "2")
    with Port.attach(folder / "1", timeout=60.0) as sender:
        sender.send(frame(7), timeout=60.0)
        assert looker.wait() > 0
        assert looker.peek() == 1
    switch.kill()
    switch.stop()
    library = c.library()
    while library.catchment_shm_check(looker.handle) == 0:  # notices, and lets go of the switch
        pass
    before = time.thread_time()
    assert looker.wait(SECOND) < 0
    assert time.thread_time() - before < 0.2  # it sleeps until there is a switch again
    assert looker.read(1) == [frame(7)]
    assert looker.peek() < 0
    looker.detach()


def test_the_memory_outlives_the_next_switch_too(launch: Launch, folder: Path) -> None:
    """Whose memory nobody has looked at."""
    switch = launch()
    looker = Looker(folder / "2")
    check = c.library().catchment_shm_check
    with Port.attach(folder / "1", timeout=60.0) as sender:
        sender.send(frame(7), timeout=60.0)
        assert looker.wait() > 0
        assert looker.peek() == 1
    for again in (True, False):
        switch.kill()
        switch.stop()
        while check(looker.handle) == 0:
            pass
        if again:
            switch = launch()
            while check(looker.handle) != 0:
                time.sleep(0.001)
    assert looker.read(1) == [frame(7)]
    looker.detach()
