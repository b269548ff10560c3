"""The HTTP server that Prometheus asks: whoever connects and asks nothing keeps nobody else waiting, nor for ever."""

from __future__ import annotations

import contextlib
import socket
import socketserver
import threading
import time
from collections.abc import Callable
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

MOST_CONNECTIONS = 32
"""Connections at most; one more, and the oldest ends."""
CONNECTION_SECONDS = 30.0
"""A connection ends after this time, whether its request was answered or has not come."""


class ScrapeServer(socketserver.ThreadingMixIn, WSGIServer):
    """One thread for each connection, of which there are a bounded number for a bounded time.

    Args:
        address: to listen at; a name or a number.
        port: 0 takes a free one.
        application: WSGI application that answers.
        seconds: after which a connection ends.

    Raises:
        OSError: the address is in use, or not one of this machine.
    """

    daemon_threads = True

    def __init__(
        self, address: str, port: int, application: Callable[..., Any], *, seconds: float = CONNECTION_SECONDS
    ) -> None:
        found = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        self.address_family, _, _, _, where = found[0]
        self._seconds = seconds
        self._guard = threading.Lock()
        self._since: dict[socket.socket, float] = {}  # the oldest first
        super().__init__((str(where[0]), port), _Handler)
        self.set_app(application)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Begin a thread for a connection."""
        with self._guard:
            self._since[request] = time.monotonic()
            for _ in range(len(self._since) - MOST_CONNECTIONS):
                self._end(next(iter(self._since)))
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """End a connection, by its own thread."""
        with self._guard:
            self._since.pop(request, None)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """End those that are too old; called every half second."""
        with self._guard:
            until = time.monotonic() - self._seconds
            for request in [request for request, since in self._since.items() if since <= until]:
                self._end(request)

    def _end(self, request: socket.socket) -> None:
        """Have a connection's thread find that it is over."""
        del self._since[request]
        with contextlib.suppress(OSError):  # the client was first
            request.shutdown(socket.SHUT_RDWR)


class _Handler(WSGIRequestHandler):
    def handle(self) -> None:
        with contextlib.suppress(OSError):  # the connection ended
            super().handle()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  its name in the base class
        """Nothing: a request every few seconds is no news."""
