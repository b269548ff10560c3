"""Connections to a metrics endpoint that ask for nothing, or for half a thing: they end, and others are answered."""

from __future__ import annotations

import contextlib
import socket
import urllib.request
from collections.abc import Callable, Iterable, Iterator

import pytest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from catchment.controlplane.metrics.exporter import serve
from catchment.controlplane.metrics.scrape_server import MOST_CONNECTIONS

TIMEOUT = 60.0
HALF = b"GET /metrics HTTP/1.1\r\nHost: "


class One(Collector):
    """A single metric."""

    def collect(self) -> Iterable[GaugeMetricFamily]:
        yield GaugeMetricFamily("one", "Of one.", value=1)


Endpoint = Callable[..., int]


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    """Serves a metric; the port."""
    with contextlib.ExitStack() as ends:

        def serve_one(**options: float) -> int:
            serving = serve(One(), "127.0.0.1", 0, **options)
            ends.callback(serving.end)
            return serving.port

        yield serve_one


def connected(port: int, said: bytes = HALF) -> socket.socket:
    made = socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT)
    made.sendall(said)
    return made


def ended(connection: socket.socket) -> bool:
    """Whether the other side ends it; waits for that."""
    with contextlib.suppress(ConnectionError):
        return connection.recv(1) == b""
    return True


def scrape(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=TIMEOUT) as reply:
        return str(reply.read().decode())


def test_of_too_many_connections_the_oldest_ends(endpoint: Endpoint) -> None:
    port = endpoint(seconds=3600.0)
    with contextlib.ExitStack() as stack:
        oldest, second, *others = [stack.enter_context(connected(port)) for _ in range(MOST_CONNECTIONS + 1)]
        assert ended(oldest)
        assert "one 1.0" in scrape(port)
        assert ended(second)
        others[-1].sendall(b"me\r\n\r\n")
        assert others[-1].recv(8) == b"HTTP/1.0"


@pytest.mark.parametrize("said", [b"", HALF])
def test_a_connection_without_a_request_ends(endpoint: Endpoint, said: bytes) -> None:
    with connected(endpoint(seconds=0.0), said) as connection:
        assert ended(connection)


def test_an_address_in_use_is_an_error(endpoint: Endpoint) -> None:
    with pytest.raises(OSError, match="in use"):
        serve(One(), "127.0.0.1", endpoint())
