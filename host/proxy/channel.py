"""Messages between clients and proxies: a header of 20 bytes and an array, on a stream socket."""

from __future__ import annotations

import enum
import json
import os
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, answer_challenge, deliver_challenge
from pathlib import Path
from typing import Any

from catchment.host.proxy.errors import ProxyError
from catchment.wire.host_port import host_and_port

_HEADER = struct.Struct("!BBxxIIII")
_MOST_FACTS = 16 << 20
_MOST_KEEPALIVE = 32767
"""Seconds: what Linux takes for TCP_KEEPIDLE and TCP_KEEPINTVL."""
_MOST_USER_TIMEOUT = (1 << 31) - 1
"""Milliseconds: what Linux takes for TCP_USER_TIMEOUT."""


class Kind(enum.IntEnum):
    """What a message is."""

    HELLO = 1
    """Who has connected; the payload is JSON."""
    WELCOME = 2
    """A proxy to a client: all clients are there and agree; `step` is the next one."""
    PART = 3
    """A client to a proxy: its shard of a step."""
    VALUE = 4
    """A proxy to a client: the sum of a shard of a step, or the parameters that it makes."""
    READY = 5
    """A proxy to a leader: all parts of a shard that its clients push to it have come."""
    GO = 6
    """A leader to a proxy: all are ready; `number` is the group's own count."""
    SEGMENT = 7
    """A proxy to the next one in a ring."""
    FAILED = 8
    """The payload says why; nothing follows."""
    BYE = 9
    """A client has all that it wants; `step` is the first one in which it takes no part. Or a proxy has served."""
    PARAMETERS = 10
    """A shard's parameters before the first step: client 0 brings them, or a proxy gives them."""
    ASK = 11
    """A client to a proxy: who does the sum of tensor `number` of a step wait for?"""
    AWAITED = 12
    """The answer, with the question's `number` and `step`; the payload is JSON."""


class Flag(enum.IntFlag):
    """What PART, READY, GO and VALUE say of a shard, and WELCOME of a proxy."""

    NOT_FINITE = 1
    """Some client's part has NaN or an infinity: so has the whole sum."""
    EMPTY = 2
    """The proxy has no parameters yet: client 0 has to bring them."""


@dataclass(frozen=True, slots=True)
class Message:
    """A header; `size` bytes follow it."""

    kind: Kind
    shard: int = 0
    step: int = 0
    number: int = 0
    flags: int = 0
    size: int = 0


class Channel:
    """A connection to one client or proxy. Any thread may send; one thread receives."""

    def __init__(self, connection: Connection[Any, Any], peer: str) -> None:
        """`peer`: what errors call the other end."""
        self._connection = connection
        self._lock = threading.Lock()
        self._kept: Message | None = None
        self._sending_since: float | None = None
        self.peer = peer

    def send(self, message: Message, payload: Any = None) -> None:
        """Send the message, and the bytes of a contiguous array.

        Raises:
            ProxyError: the other end is gone.
        """
        data = memoryview(payload).cast("B") if payload is not None else memoryview(b"")
        header = _HEADER.pack(
            message.kind, message.flags, message.shard, message.step, message.number, len(data)
        )  # fmt: skip
        try:
            with self._lock, self._noted():
                self._connection.send_bytes(header)
                if data:
                    self._connection.send_bytes(data)
        except OSError as error:
            raise ProxyError(f"{self.peer} is gone") from error

    @contextmanager
    def _noted(self) -> Iterator[None]:
        self._sending_since = time.monotonic()
        try:
            yield
        finally:
            self._sending_since = None

    def held_up(self, seconds: float) -> bool:
        """Whether a message has been on its way for so long: the other end does not take it."""
        since = self._sending_since
        return since is not None and time.monotonic() - since >= seconds

    def say(self, kind: Kind, facts: Mapping[str, Any], *, number: int = 0, step: int = 0) -> None:
        """Send JSON."""
        payload = json.dumps(facts).encode()
        self.send(Message(kind, step=step, number=number, size=len(payload)), payload)

    def look(self) -> None:
        """Whether the other end has failed by now; nothing is lost for `receive`.

        Raises:
            ProxyError: as `receive`.
        """
        if self._kept is None and self._connection.poll(0):
            self._kept = self.receive()

    def receive(self) -> Message:
        """The next header. Its payload, if it has one, is received by `into` or `facts`.

        Raises:
            ProxyError: the other end is gone, or sends something else; or it sends FAILED, whose text this is.
        """
        if self._kept is not None:
            message, self._kept = self._kept, None
            return message
        try:
            kind, flags, shard, step, number, size = _HEADER.unpack(self._connection.recv_bytes(_HEADER.size))
            message = Message(Kind(kind), shard, step, number, flags, size)
        except (EOFError, ConnectionError) as error:
            raise ProxyError(f"{self.peer} is gone") from error
        except (OSError, ValueError, struct.error) as error:
            raise ProxyError(f"{self.peer} sends what is no message: run the same release everywhere") from error
        if message.kind is Kind.FAILED:
            raise ProxyError(str(self.facts().get("why", f"{self.peer} failed")))
        return message

    def into(self, array: Any) -> None:
        """Receive a payload of exactly the array's bytes."""
        view = memoryview(array).cast("B")
        try:
            size = self._connection.recv_bytes_into(view)
        except (EOFError, OSError) as error:
            raise ProxyError(f"{self.peer} is gone") from error
        if size != len(view):
            raise ProxyError(f"{self.peer} sent {size} bytes where {len(view)} belong")

    def facts(self) -> dict[str, Any]:
        """Receive a payload of JSON."""
        try:
            facts = json.loads(self._connection.recv_bytes(_MOST_FACTS))
        except (EOFError, OSError) as error:
            raise ProxyError(f"{self.peer} is gone") from error
        except (ValueError, RecursionError) as error:
            raise ProxyError(f"{self.peer} sends what is no JSON: run the same release everywhere") from error
        if not isinstance(facts, dict):
            raise ProxyError(f"{self.peer} sends no facts: run the same release everywhere")
        return facts

    def fail(self, why: str, within: float) -> None:
        """Say why nothing follows, if anybody listens still; who takes nothing for `within` seconds is shut out."""
        try:
            with self.ended_after(within):  # the other end may stand still, and another thread send to it
                self.say(Kind.FAILED, {"why": why})
        except ProxyError:
            return
        self._shut(socket.SHUT_WR)

    def bid_farewell(self, within: float, steps: int = 0) -> None:
        """Send BYE, if anybody listens still, as `fail` does; `steps`: of a client, so many it has had."""
        try:
            with self.ended_after(within):
                self.send(Message(Kind.BYE, step=steps))
        except ProxyError:
            return

    @contextmanager
    def ended_after(self, seconds: float) -> Iterator[None]:
        """Shut the channel if the block takes longer: whoever waits in it for the other end sees that end."""
        timer = threading.Timer(seconds, self.shut)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def shut(self) -> None:
        """End both directions: a thread that receives notices."""
        self._shut(socket.SHUT_RDWR)

    def drain(self) -> None:
        """Receive and forget until the other end closes, so that it can read what was sent to it last."""
        try:
            while True:
                self._connection.recv_bytes()
        except (EOFError, OSError):
            return

    def _shut(self, how: int) -> None:
        try:
            with socket.socket(fileno=os.dup(self._connection.fileno())) as duplicate:
                duplicate.shutdown(how)
        except OSError:
            return  # it ended by itself

    def close(self) -> None:
        """Give the descriptor back; nobody may use the channel any more."""
        self._connection.close()


def listen(address: str) -> socket.socket:
    """A socket that takes connections at HOST:PORT, or at a path (a Unix socket).

    Raises:
        ProxyError: the address cannot be had.
    """
    try:
        if "/" in address:
            return _listen_at(address)
        return socket.create_server(_host(address), backlog=128)
    except OSError as error:
        raise ProxyError(f"a proxy cannot listen at {address}: {error.strerror}") from error


def _listen_at(path: str) -> socket.socket:
    """A Unix socket that takes connections; one that a process has left there, and nobody listens at, gives way."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as visitor:
        try:
            visitor.connect(path)  # a server that lives is of another type, and hears nothing of it
        except ConnectionRefusedError:
            if Path(path).is_socket():
                Path(path).unlink()
        except OSError:
            pass  # nothing is there, or binding says what is wrong
    server = socket.socket(socket.AF_UNIX)
    try:
        server.bind(path)
        server.listen(128)
    except OSError:
        server.close()
        raise
    return server


def accept(server: socket.socket, timeout: float) -> Channel:
    """The next connection; `admit` has to ask it for the secret.

    Raises:
        ProxyError: this connection cannot be had; the next one may be.
        OSError: the server takes no more connections.
    """
    try:
        raw, _ = server.accept()
    except ConnectionAbortedError as error:
        raise ProxyError("a process that said no name is gone") from error
    try:
        return Channel(_prepared(raw, timeout), "a process that said no name")
    except OSError as error:
        raise ProxyError(f"a connection cannot be prepared: {error.strerror}") from error


def admit(channel: Channel, secret: bytes, timeout: float) -> dict[str, Any]:
    """Both ends prove that they know the secret; gives what HELLO says.

    Raises:
        ProxyError: the other end does not know it, or has not said who it is within `timeout` seconds.
    """
    connection = channel._connection
    try:
        with channel.ended_after(timeout):
            deliver_challenge(connection, secret)
            answer_challenge(connection, secret)
            hello = channel.receive()
            facts = channel.facts() if hello.kind is Kind.HELLO else None
    except (AuthenticationError, EOFError, OSError) as error:
        raise ProxyError(f"{channel.peer} does not know the group's secret, or says nothing") from error
    if facts is None:
        raise ProxyError(f"{channel.peer} does not say who it is")
    return facts


def connect(  # noqa: PLR0917
    address: str,
    peer: str,
    secret: bytes,
    hello: Mapping[str, Any],
    timeout: float,
    check: Callable[[], None],
) -> Channel:
    """Reach a proxy that is there, or will be within `timeout` seconds, and say HELLO.

    Raises:
        ProxyError: it is not there, or knows another secret; or what `check` raises, who is asked meanwhile.
    """
    deadline = time.monotonic() + timeout
    while True:
        raw = socket.socket(socket.AF_UNIX if "/" in address else socket.AF_INET)
        raw.settimeout(max(deadline - time.monotonic(), 0.01))
        try:
            raw.connect(address if "/" in address else _host(address))
            break
        except OSError as error:
            raw.close()
            if time.monotonic() >= deadline:
                raise ProxyError(f"{peer} cannot be reached at {address} within {timeout:g} s: {error}") from error
            check()
            time.sleep(0.02)  # it has yet to begin
    try:
        connection = _prepared(raw, timeout)
    except OSError as error:
        raise ProxyError(f"a connection to {peer} at {address} cannot be prepared: {error.strerror}") from error
    channel = Channel(connection, peer)
    try:
        with channel.ended_after(timeout):
            answer_challenge(connection, secret)
            deliver_challenge(connection, secret)
    except (AuthenticationError, EOFError, OSError) as error:
        channel.close()
        check()
        raise ProxyError(f"{peer} at {address} knows another secret, says nothing, or is gone") from error
    channel.say(Kind.HELLO, hello)
    return channel


def _host(address: str) -> tuple[str, int]:
    found = host_and_port(address)
    if found is None or not found[0]:
        raise ProxyError(f"address {address!r}: HOST:PORT, or a path with a / in it")
    return found


def _prepared(raw: socket.socket, timeout: float) -> Connection[Any, Any]:
    """A socket without delays, whose other end is noticed to be gone after `timeout` seconds.

    Over TCP that is after 24 days at most, as Linux counts no longer.

    Raises:
        OSError: the system refuses it; the socket is closed.
    """
    try:
        raw.settimeout(None)
        if raw.family != socket.AF_UNIX:
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, min(max(1, int(timeout / 2)), _MOST_KEEPALIVE))
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, min(max(1, int(timeout / 8)), _MOST_KEEPALIVE))
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 4)
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, min(int(1000 * timeout), _MOST_USER_TIMEOUT))
    except OSError:
        raw.close()
        raise
    return Connection(raw.detach())
