"""Who connects to a proxy and says nothing, or what cannot be: refused by name, and nobody waits for it."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from proxy_group import LIMIT, group_of

from catchment.host.proxy import Proxy, ProxyError
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
        channel = connect(group.addresses[0], "the proxy", SECRET, hello, LIMIT, lambda: None)
        with pytest.raises(ProxyError, match=said):
            runs.result(LIMIT)
        with pytest.raises(ProxyError, match=said):
            channel.receive()
        channel.close()
