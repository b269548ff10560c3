"""The bench of rails: what is ideal, who is compared with whom, and links that keep to a rate."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import ExitStack

import pytest

from bench.rail_gains import Row, Setting, beside, settings
from bench.slow_links import Pace, SlowLink, slow_down


def test_the_rows_have_the_ideal_gains_of_the_design() -> None:
    rows = settings(4)
    assert {name: round(row.ideal, 2) for name, row in rows.items()} == {
        "equal": 2.0, "uneven": 1.25, "three": 1.75, "ring": 1.67,
    }  # fmt: skip
    assert rows["three"].rates == {"a": 100_000_000, "b": 50_000_000, "c": 25_000_000}
    assert [row.goal < row.ideal for row in rows.values()] == [True] * 4
    assert Setting("ring", {"a": 3, "t": 3}, 1.0, "t").carries("t") == 2.0


def test_a_ratio_is_that_of_the_turn_in_the_middle_without_the_first() -> None:
    ours = iter([1.0, 1.0, 1.0, 4.0])
    theirs = iter([9.0, 2.0, 3.0, 4.0])
    figure = beside(Row("a row", "them", 0.97), 3, lambda: next(ours), lambda: next(theirs))
    assert figure.ratio == pytest.approx(2.0), "of 2, 3 and 1"
    assert figure.met is True and figure.reference_name == "them"


def test_a_pace_is_shared_by_all_connections_of_a_link() -> None:
    pace, began = Pace(8_000_000), time.monotonic()
    threads = [threading.Thread(target=pace.take, args=(50_000,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert time.monotonic() - began >= 0.15, "200,000 bytes take 0.2 s, of which a thread may make up for 0.02"


def test_a_slow_link_passes_what_it_gets_both_ways() -> None:
    with ExitStack() as exits:
        behind = exits.enter_context(socket.create_server(("127.0.0.1", 0)))
        told = {
            "w0": {
                "parts": {
                    "t": {"rail": "t", "next": list(behind.getsockname())},
                    "a": {"rail": "a", "next": ["127.0.0.1", 1]},
                }
            }
        }
        slow_down(exits, told, "t", 80_000_000)
        assert told["w0"]["parts"]["a"]["next"] == ["127.0.0.1", 1]
        near = exits.enter_context(socket.create_connection(tuple(told["w0"]["parts"]["t"]["next"]), 60.0))
        far, _ = behind.accept()
        exits.enter_context(far)
        near.sendall(b"there")
        assert far.recv(5, socket.MSG_WAITALL) == b"there"
        far.sendall(b"back")
        assert near.recv(4, socket.MSG_WAITALL) == b"back"
        far.shutdown(socket.SHUT_RDWR)
        assert near.recv(1) == b"", "an end passes, too"


def test_a_link_without_anybody_behind_ends_connections() -> None:
    with ExitStack() as exits:
        with socket.create_server(("127.0.0.1", 0)) as gone:
            address = gone.getsockname()
        link = SlowLink(exits, address, Pace(1e9))
        near = exits.enter_context(socket.create_connection(link.address, 60.0))
        assert near.recv(1) == b""
