"""The connections of a rank in a ring: a neighbour's place goes to who greets as the neighbour, and to nobody else."""

from __future__ import annotations

import ctypes
import random
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from test_rail_failures import until

from catchment.host import _machines

MAGIC = 0x72696E67
SLOTS, LANES = 64, 8
SO_ATTACH_FILTER = 26


class Rank:
    """Rank 1 of three, with the listener of rank 2."""

    def __init__(self, exits: ExitStack, gen: int) -> None:
        self.gen = gen
        self._exits = exits
        self.next = exits.enter_context(socket.create_server(("127.0.0.1", 0)))
        self.links = _machines.RingLinks(self.next.getsockname()[1], gen, 1, 3, SLOTS, LANES)

    def greeting(self, **other: int) -> bytes:
        """What a rank says first; rank 0 unless `other` says otherwise."""
        said = {"magic": MAGIC, "gen": self.gen, "rank": 0, "ranks": 3, "slots": SLOTS, "lanes": LANES, **other}
        return struct.pack("!6I", *said.values())

    def connected(self, first_words: bytes) -> socket.socket:
        """A connection to this rank, which has looked at it."""
        connection = self._exits.enter_context(socket.create_connection(("127.0.0.1", self.links.port)))
        connection.sendall(first_words)
        self.links.keep()
        return connection

    def until_joined(self) -> None:
        def joined() -> bool:
            self.links.keep()
            return bool(self.links.joined)

        until(joined, "the rank does not join")

    def hears(self, connection: socket.socket, words: bytes) -> bool:
        """Whether what is said there is what the rank before says."""
        connection.sendall(words)
        heard = b""

        def all_heard() -> bool:
            nonlocal heard
            self.links.keep()
            heard += self.links.read()
            return len(heard) >= len(words)

        until(all_heard, "the rank hears nothing")
        return heard == words


@pytest.fixture
def rank(rng: random.Random) -> Iterator[Rank]:
    with ExitStack() as exits:
        yield Rank(exits, rng.getrandbits(32))


def test_both_neighbours_are_greeted_and_heard(rank: Rank) -> None:
    before = rank.connected(rank.greeting())
    rank.until_joined()
    following, _ = rank.next.accept()
    with following:
        rank.links.flush()
        assert following.recv(24, socket.MSG_WAITALL) == rank.greeting(rank=1)
    assert rank.hears(before, b"a vector")


def test_a_greeting_comes_in_pieces(rank: Rank) -> None:
    before = rank.connected(b"")
    for byte in rank.greeting():
        assert not rank.links.joined
        before.sendall(bytes([byte]))
        rank.links.keep()
    rank.until_joined()
    assert rank.hears(before, b"a vector")


@pytest.mark.parametrize("first_words", [b"", b"\x72", b"GET / HTTP/1.1\r\n\r\n"])
def test_strangers_take_nobodys_place(rank: Rank, first_words: bytes) -> None:
    before = rank.connected(rank.greeting())
    rank.until_joined()
    for number in range(20):  # more than may be silent at once
        rank.connected(first_words)
        assert rank.hears(before, f"vector {number}".encode())
    assert rank.links.joined
    assert rank.links.errors == 0


def test_a_neighbour_comes_through_a_crowd_that_is_silent(rank: Rank) -> None:
    for _ in range(20):
        rank.connected(b"")
    before = rank.connected(rank.greeting())
    rank.until_joined()
    assert rank.hears(before, b"a vector")


@pytest.mark.parametrize("wrong", ["magic", "gen", "rank", "ranks", "slots", "lanes"])
def test_another_ring_is_refused(rank: Rank, wrong: str, rng: random.Random) -> None:
    stranger = rank.connected(rank.greeting(**{wrong: rng.randrange(100, 1 << 31)}))
    stranger.setblocking(False)

    def ended() -> bool:
        rank.links.keep()
        try:
            return stranger.recv(1) == b""
        except BlockingIOError:
            return False
        except ConnectionError:
            return True

    until(ended, "the stranger is not refused")
    assert not rank.links.joined


def test_a_neighbour_that_comes_again_takes_its_own_place(rank: Rank) -> None:
    before = rank.connected(rank.greeting())
    rank.until_joined()
    assert rank.hears(before, b"half of a v")
    again = rank.connected(rank.greeting())

    def ended() -> bool:
        rank.links.keep()
        return bool(rank.links.errors == 1)

    until(ended, "the old connection stays")
    assert rank.links.joined
    assert rank.hears(again, b"a whole vector")


def test_a_neighbour_that_reads_nothing_for_a_while_is_late_and_not_gone(rank: Rank) -> None:
    rank.connected(rank.greeting())
    rank.until_joined()
    following, _ = rank.next.accept()
    with following:

        def stuck() -> bool:
            rank.links.keep()
            rank.links.queue(bytes(1 << 16))
            rank.links.flush()
            return bool(rank.links.backlog > 1 << 20)

        until(stuck, "the connection takes everything")
        ends = time.monotonic() + 3.0  # the kernel gives up after one, where it is told to give up at all
        while time.monotonic() < ends:
            rank.links.keep()
            rank.links.flush()
            time.sleep(0.01)
        assert rank.links.joined
        assert rank.links.errors == 0
        assert following.recv(24, socket.MSG_WAITALL) == rank.greeting(rank=1)


def test_a_neighbour_whose_machine_answers_nothing_is_gone(rank: Rank) -> None:
    rank.connected(rank.greeting())
    rank.until_joined()
    following, _ = rank.next.accept()
    with following:
        rank.links.flush()
        following.recv(24, socket.MSG_WAITALL)
        deafen(following)
        rank.links.queue(b"a vector")

        def gone() -> bool:
            rank.links.keep()
            rank.links.flush()
            return bool(rank.links.errors == 1)

        until(gone, "the rank waits for ever")


def test_a_connection_that_is_made_again_at_once_is_not_lost(rank: Rank) -> None:
    before = rank.connected(rank.greeting())
    rank.until_joined()
    before.close()

    def missed() -> bool:
        rank.links.read()
        return not rank.links.joined

    until(missed, "the end of the connection is not seen")
    rank.connected(rank.greeting())
    rank.until_joined()
    assert not rank.links.lost()


def test_a_connection_that_stays_away_is_lost(rank: Rank) -> None:
    assert not rank.links.lost(), "it was never there"
    rank.connected(rank.greeting()).close()
    rank.until_joined()

    def lost() -> bool:
        rank.links.keep()
        rank.links.read()
        return bool(rank.links.lost())

    until(lost, "a neighbour that has closed is not missed")


def deafen(connection: socket.socket) -> None:
    """Have the kernel drop all that comes for a connection, as if its machine were gone."""
    drop_all = ctypes.create_string_buffer(struct.pack("=HBBI", 6, 0, 0, 0))  # BPF: return 0 bytes
    program = struct.pack("@HP", 1, ctypes.addressof(drop_all))
    connection.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, program)
