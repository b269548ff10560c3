"""Who connects to a proxy and says nothing, or what cannot be: refused by name, and nobody waits for it."""

from __future__ import annotations

import errno
import os
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest
from proxy_group import LIMIT, group_of

from catchment.host.proxy import Proxy, ProxyError, assembly, channel
from catchment.host.proxy.channel import accept, admit, connect, listen

SECRET = b"known to this test"


def test_neither_end_waits_for_one_that_says_nothing() -> None:
    with group_of(1, 1) as group, listen(group.addresses[0]) as server, ThreadPoolExecutor(1) as threads:
        with socket.socket(socket.AF_UNIX) as mute:
            mute.connect(group.addresses[0])
            asked = threads.submit(admit, accept(server, LIMIT), SECRET, 0.2)
            with pytest.raises(ProxyError, match="or says nothing"):
                asked.result(LIMIT)
        reached = threads.submit(connect, group.addresses[0], "a proxy", SECRET, {}, 0.2, lambda: None)
        with pytest.raises(ProxyError, match=r"a proxy at .* says nothing"):
            reached.result(LIMIT)


@pytest.mark.parametrize("timeout", [0.5, 64.0, 3e5, 1e8])
def test_every_timeout_of_a_group_can_be_had_over_tcp(timeout: float) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as threads:
        reaching = threads.submit(
            connect, f"127.0.0.1:{server.getsockname()[1]}", "a proxy", SECRET, {}, timeout, lambda: None
        )
        server.settimeout(LIMIT)
        here = accept(server, timeout)
        admit(here, SECRET, LIMIT)
        there = reaching.result(LIMIT)
    for end in (here, there):
        with socket.socket(fileno=os.dup(end._connection.fileno())) as raw:
            options = (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_USER_TIMEOUT)
            idle, interval, unacknowledged = (raw.getsockopt(socket.IPPROTO_TCP, option) for option in options)
        assert idle == min(max(1, int(timeout / 2)), 32767)
        assert interval == min(max(1, int(timeout / 8)), 32767)
        assert unacknowledged == min(1000 * timeout, 2**31 - 1)
        end.close()


def test_a_connection_that_cannot_be_prepared_is_said_and_the_next_one_is_taken(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    prepared, refused = channel._prepared, threading.Event()

    def preparing(raw: socket.socket, timeout: float) -> Any:
        if refused.is_set():
            return prepared(raw, timeout)
        refused.set()
        raw.close()
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(channel, "_prepared", preparing)
    with group_of(1, 1) as group:
        with listen(group.addresses[0]), pytest.raises(ProxyError, match=r"a connection to a proxy at .* Invalid arg"):
            connect(group.addresses[0], "a proxy", SECRET, {}, LIMIT, lambda: None)
        refused.clear()
        with Proxy(group, 0), socket.socket(socket.AF_UNIX) as visitor:
            visitor.settimeout(20.0)
            visitor.connect(group.addresses[0])
            assert visitor.recv(1) == b""
            with socket.socket(socket.AF_UNIX) as another:
                another.settimeout(20.0)
                another.connect(group.addresses[0])
                assert another.recv(1) != b"", "the proxy asks for the secret"
            assert "proxy 0 refused a connection: a connection cannot be prepared: Invalid argument" in caplog.text


def test_json_that_is_nested_too_deeply_is_no_json() -> None:
    ours, theirs = socket.socketpair()
    here, there = (channel.Channel(Connection(end.detach()), "the visitor") for end in (ours, theirs))
    there.send(channel.Message(channel.Kind.HELLO), b"[" * 100_000)
    assert here.receive().kind is channel.Kind.HELLO
    with pytest.raises(ProxyError, match="the visitor sends what is no JSON"):
        here.facts()
    here.close()
    there.close()


def test_a_proxy_that_can_take_no_connection_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def accepting(server: socket.socket, timeout: float) -> Any:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(assembly, "accept", accepting)
    with (
        group_of(1, 1, timeout=20.0) as group,
        Proxy(group, 0) as proxy,
        pytest.raises(ProxyError, match=r"proxy 0 at .* takes no more connections: Too many open files"),
    ):
        proxy.run()


@pytest.mark.parametrize("address", ["127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1:", ":5", "localhost", ""])
def test_an_address_that_is_none_is_refused_at_both_ends(address: str) -> None:
    with pytest.raises(ProxyError, match=r"HOST:PORT, or a path with a / in it"):
        listen(address)
    with pytest.raises(ProxyError, match=r"HOST:PORT, or a path with a / in it"):
        connect(address, "a proxy", SECRET, {}, 0.2, lambda: None)


def test_a_socket_that_a_killed_proxy_has_left_gives_way(tmp_path: Path) -> None:
    path = tmp_path / "proxy.sock"
    listen(str(path)).close()  # as a process that is killed leaves it
    with listen(str(path)) as server:
        with pytest.raises(ProxyError, match="Address already in use"):
            listen(str(path))
        server.settimeout(0.1)
        with pytest.raises(TimeoutError):
            server.accept()  # who tried to listen has not connected
    other = tmp_path / "letter"
    other.write_text("not a socket", "utf-8")
    with pytest.raises(ProxyError, match="Address already in use"):
        listen(str(other))
    assert other.read_text("utf-8") == "not a socket"


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("hello", "said"),
    [
        ({"role": "client", "number": 1}, "client with number 1 of 1"),
        ({"role": "client", "number": True}, "client with number True of 1"),
        ({"role": "client"}, "client with number None of 1"),
        ({"role": "client", "number": 0, "table": 3}, "a table that is none"),
        ({"role": "client", "number": 0, "table": {"tensors": [["w", 9, None]], "shard_bytes": 64}, "routes": 1},
         "client 0 routes 1 shards to"),
        ({"role": "proxy", "number": 3}, "proxy with number 3 of 3"),
        ({"role": "proxy", "number": -1}, "proxy with number -1 of 3"),
        ({"role": "ring", "number": 2, "group": "first"}, "ring with group 'first' of 1"),
        ({"role": "ring", "number": 1, "group": 0}, "proxy 1 at .* is not before proxy 0 in group 0: 2 is"),
        ({"role": "root", "number": 0}, "says that it is 'root'"),
        ({"role": ["client"], "number": 0}, "says that it is"),
    ],
)  # fmt: skip
def test_who_says_what_cannot_be_is_named(hello: dict[str, Any], said: str) -> None:
    with group_of(3, 1) as group, Proxy(group, 0) as proxy, ThreadPoolExecutor(1) as threads:
        runs = threads.submit(proxy.run)
        visitor = connect(group.addresses[0], "the proxy", SECRET, hello, LIMIT, lambda: None)
        with pytest.raises(ProxyError, match=said):
            runs.result(LIMIT)
        with pytest.raises(ProxyError, match=said):
            visitor.receive()
        visitor.close()
