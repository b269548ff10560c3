"""The TCP addresses of a controller: who connects is counted and named until its first request, and need not stay.

gRPC does not tell a program of handshakes that fail, and keeps a connection that says nothing for two minutes. So
connections come in here and go on, byte by byte, to a socket of this user at which gRPC listens. gRPC sees each under a
name of its own, by which a request is known to be this connection's.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import socket
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from catchment.controlplane.controller.errors import ControllerError
from catchment.wire.host_port import host_and_port

_log = logging.getLogger(__name__)

MOST_SILENT = 128
"""Connections without a request at most; one more, and the oldest ends."""
FIRST_REQUEST_SECONDS = 10.0
"""A connection without a request ends after this time."""
_CHUNK = 1 << 16
_LINES_PER_SECOND = 10
_SCHEME = "unix-abstract:"


class Ended(StrEnum):
    """How a connection ended that had no request."""

    HANDSHAKE = "handshake"
    """gRPC ended it: the TLS handshake failed, or what followed was no HTTP/2."""
    SILENT = "silent"
    FULL = "full"
    LEFT = "left"
    """The client ended it: it may not trust the controller's certificate."""


_WORDS = {
    Ended.HANDSHAKE: "failed the TLS handshake",
    Ended.SILENT: "made no request in {seconds:g} s",
    Ended.FULL: f"was the oldest of {MOST_SILENT} connections without a request",
    Ended.LEFT: "left without a request",
}


@dataclass(slots=True, eq=False)
class _Connection:
    """One that came in: where from, and what it is ended by."""

    peer: str
    spoke: bool = False
    why: Ended | None = None
    task: asyncio.Task[None] | None = None

    def end(self, why: Ended) -> None:
        if self.why is None and self.task is not None:
            self.why = why
            self.task.cancel()


class Door:
    """Takes connections for the gRPC server at `inside`, a path of a Unix socket.

    Attributes:
        ended: connections that had no request, by how they ended.
    """

    def __init__(self, inside: str, first_request: float = FIRST_REQUEST_SECONDS) -> None:
        self.ended: Counter[Ended] = Counter(dict.fromkeys(Ended, 0))
        self._inside = inside
        self._first_request = first_request
        self._name = f"catchment-{secrets.token_hex(8)}-"
        self._count = 0
        self._open: dict[str, _Connection] = {}  # by the name that gRPC sees
        self._silent: dict[_Connection, None] = {}  # the oldest first
        self._servers: list[asyncio.Server] = []
        self._lines, self._second = 0, 0

    async def listen(self, address: str) -> str:
        """Take connections at `address`, host:port; returns it with the port that it got.

        Raises:
            ControllerError: it cannot be listened on.
        """
        found = host_and_port(address)
        if found is None or not found[0]:
            raise ControllerError(f"cannot listen on {address}: give HOST:PORT or unix:PATH, as in 127.0.0.1:9600")
        try:
            server = await asyncio.start_server(self._enter, *found)
        except OSError as error:
            raise ControllerError(f"cannot listen on {address}: {error}; is another controller there?") from None
        self._servers.append(server)
        return f"{address.rpartition(':')[0]}:{server.sockets[0].getsockname()[1]}"

    def peer(self, seen: str) -> str:
        """Tell where a request comes from, of what gRPC says (`context.peer()`); its connection is silent no longer."""
        connection = self._open.get(seen)
        if connection is None:
            return seen
        connection.spoke = True
        self._silent.pop(connection, None)
        return connection.peer

    async def close(self) -> None:
        """End all connections; nobody comes in any more."""
        for server in self._servers:
            server.close()
        tasks = [connection.task for connection in self._open.values() if connection.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _enter(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._count += 1
        name = f"{self._name}{self._count}"
        connection = _Connection(_text(writer.get_extra_info("peername")))
        self._open[_SCHEME + name] = connection
        self._silent[connection] = None
        if len(self._silent) > MOST_SILENT:
            oldest = next(iter(self._silent))
            self._silent.pop(oldest)
            oldest.end(Ended.FULL)
        connection.task = asyncio.get_running_loop().create_task(self._serve(connection, name, reader, writer))

    async def _serve(
        self, connection: _Connection, name: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        late = asyncio.get_running_loop().call_later(self._first_request, self._look, connection)
        try:
            with contextlib.suppress(OSError):
                await self._pass_on(connection, name, reader, writer)
        except asyncio.CancelledError:
            if connection.why is None:
                raise
        finally:
            late.cancel()
            writer.close()
            self._silent.pop(connection, None)
            del self._open[_SCHEME + name]
            self._note(connection)

    def _look(self, connection: _Connection) -> None:
        if not connection.spoke:
            connection.end(Ended.SILENT)

    async def _pass_on(
        self, connection: _Connection, name: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Pass bytes on both ways until one side ends."""
        inside = socket.socket(socket.AF_UNIX)
        inside.setblocking(False)
        inside.bind(f"\0{name}")
        try:
            await asyncio.get_running_loop().sock_connect(inside, self._inside)
        except BaseException:
            inside.close()
            raise
        answers, requests = await asyncio.open_unix_connection(sock=inside)
        upwards = asyncio.create_task(_copy(reader, requests))
        downwards = asyncio.create_task(_copy(answers, writer))
        try:
            done, _ = await asyncio.wait({upwards, downwards}, return_when=asyncio.FIRST_COMPLETED)
            if connection.why is None and not connection.spoke:
                # A write that fails says the same as an end that is read.
                refused = downwards in done or upwards.exception() is not None
                connection.why = Ended.HANDSHAKE if refused else Ended.LEFT
        finally:
            for task in (upwards, downwards):
                task.cancel()
            await asyncio.gather(upwards, downwards, return_exceptions=True)
            requests.close()

    def _note(self, connection: _Connection) -> None:
        """Count a connection that had no request; of a flood a few lines a second say whose they were."""
        if connection.spoke or connection.why is None:
            return
        self.ended[connection.why] += 1
        second = int(asyncio.get_running_loop().time())
        self._lines = self._lines + 1 if second == self._second else 1
        self._second = second
        if self._lines <= _LINES_PER_SECOND:
            _log.warning("refused: %s %s", connection.peer, _WORDS[connection.why].format(seconds=self._first_request))


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(_CHUNK):
        writer.write(data)
        await writer.drain()


def _text(peer: Any) -> str:
    """A socket's address as gRPC writes it."""
    if not isinstance(peer, tuple):
        return "unknown"
    host, port = peer[:2]
    return f"ipv6:[{host}]:{port}" if ":" in host else f"ipv4:{host}:{port}"
