"""Brings a group together: every proxy is connected with all others, with its neighbours' rings and all clients."""

from __future__ import annotations

import logging
import socket
import threading
import time
from dataclasses import dataclass, field
from typing import Any

from catchment.host.given_numbers import is_whole
from catchment.host.proxy.channel import Channel, accept, admit, connect, listen
from catchment.host.proxy.errors import ProxyError
from catchment.host.proxy.group import ProxyGroup
from catchment.host.proxy.tensors import TensorTable

_log = logging.getLogger(__name__)
_LINGER = 2.0
"""Seconds in which clients that come too late still hear why there is no group."""


@dataclass(slots=True)
class Assembled:
    """Channels by the numbers of clients, proxies and groups; and what the clients agree on.

    Attributes:
        routes: by client: the proxy of each shard.
    """

    clients: dict[int, Channel] = field(default_factory=dict)
    peers: dict[int, Channel] = field(default_factory=dict)
    onward: dict[int, Channel] = field(default_factory=dict)
    before: dict[int, Channel] = field(default_factory=dict)
    table: TensorTable | None = None
    routes: dict[int, tuple[int, ...]] = field(default_factory=dict)

    def channels(self) -> list[Channel]:
        """All of them."""
        return [c for each in (self.clients, self.peers, self.onward, self.before) for c in each.values()]


class Assembly:
    """One proxy's way into its group; it listens from the beginning, so that others find it."""

    def __init__(self, group: ProxyGroup, number: int) -> None:
        """Listen at the proxy's address.

        Raises:
            ProxyError: there is no such proxy in the group, or its address cannot be had.
        """
        if not is_whole(number, 0, len(group.addresses) - 1):
            raise ProxyError(f"proxy {number!r} of {len(group.addresses)}: they count from 0")
        self._group, self._number = group, int(number)
        self._rings = group.sync == "ring" and len(group.addresses) > 1
        self._server = listen(group.addresses[number])
        self._found = Assembled()
        self._changed = threading.Condition()
        self._failure: ProxyError | None = None
        self._closed = False
        self._told: list[Channel] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def gather(self) -> Assembled:
        """Wait until everybody is there.

        Raises:
            ProxyError: somebody did not come within the group's timeout, or clients differ; all are told.
        """
        group, number, found = self._group, self._number, self._found
        try:
            for other in range(number):
                self._add(found.peers, other, self._reach(other, {"role": "proxy", "number": number}))
            for each in range(group.groups if self._rings else 0):
                onward = group.neighbours(number, each)[1]
                hello = {"role": "ring", "number": number, "group": each}
                self._add(found.onward, each, self._reach(onward, hello))
            self._wait()
        except ProxyError as error:
            for channel in found.channels():
                channel.fail(str(error), group.timeout)
            self._tell_late_ones(error)
            raise
        finally:
            self.close()
        return found

    def close(self) -> None:
        """Take no more connections."""
        self._closed = True
        try:
            self._server.shutdown(socket.SHUT_RDWR)
        except OSError:
            return
        finally:
            self._server.close()

    def _reach(self, proxy: int, hello: dict[str, Any]) -> Channel:
        group = self._group
        return connect(group.addresses[proxy], group.name(proxy), group.secret, hello, group.timeout, self._check)

    def _check(self) -> None:
        """Whether there can still be a group."""
        if self._failure is not None:
            raise self._failure
        for channel in [*self._found.peers.values(), *self._found.onward.values()]:
            channel.look()

    def _wait(self) -> None:
        deadline = time.monotonic() + self._group.timeout
        with self._changed:
            while missing := self._missing():
                if self._failure is not None:
                    raise self._failure
                if not self._changed.wait(deadline - time.monotonic()):
                    raise ProxyError(
                        f"proxy {self._number} has waited {self._group.timeout:g} s for {', '.join(missing)}: start it"
                    )
            if self._failure is not None:
                raise self._failure

    def _tell_late_ones(self, error: ProxyError) -> None:
        """Wait for clients that come yet: they are told of the failure, instead of finding nobody."""
        with self._changed:
            self._failure = self._failure or error
            self._changed.wait_for(lambda: len(self._told) + len(self._found.clients) >= self._group.clients, _LINGER)

    def _missing(self) -> list[str]:
        group, found = self._group, self._found
        return [
            *(f"client {client}" for client in range(group.clients) if client not in found.clients),
            *(group.name(p) for p in range(len(group.addresses)) if p != self._number and p not in found.peers),
            *(f"the ring of group {g}" for g in range(group.groups if self._rings else 0) if g not in found.before),
        ]

    def _accept(self) -> None:
        while True:
            try:
                channel = accept(self._server, self._group.timeout)
            except ProxyError as error:
                _log.warning("proxy %d refused a connection: %s", self._number, error)
                continue
            except OSError as error:
                if not self._closed:
                    self._stop_listening(error)
                return
            threading.Thread(target=self._greet, args=(channel,), daemon=True).start()

    def _stop_listening(self, error: OSError) -> None:
        with self._changed:
            self._failure = self._failure or ProxyError(
                f"{self._group.name(self._number)} takes no more connections: {error.strerror}"
            )
            self._changed.notify_all()

    def _greet(self, channel: Channel) -> None:
        try:
            hello = admit(channel, self._group.secret, self._group.timeout)
        except ProxyError as error:
            _log.warning("proxy %d refused a connection: %s", self._number, error)
            channel.close()
            return
        try:
            if self._failure is not None:
                raise self._failure
            self._take(channel, hello)
        except ProxyError as error:
            channel.fail(str(error), self._group.timeout)
            with self._changed:
                self._failure = self._failure or error
                if hello.get("role") == "client":
                    self._told.append(channel)
                self._changed.notify_all()

    def _take(self, channel: Channel, hello: dict[str, Any]) -> None:
        group, role = self._group, hello.get("role")
        if role not in ("client", "proxy", "ring"):
            raise ProxyError(f"a process says that it is {role!r}: run the same release everywhere")
        number = _number(hello, "number", group.clients if role == "client" else len(group.addresses))
        channel.peer = f"client {number}" if role == "client" else group.name(number)
        if role == "client":
            with self._changed:
                self._compare(number, hello)
            self._add(self._found.clients, number, channel)
        elif role == "proxy":
            self._add(self._found.peers, number, channel)
        else:
            each = _number(hello, "group", group.groups)
            if number != (before := group.neighbours(self._number, each)[2]):
                raise ProxyError(f"{channel.peer} is not before proxy {self._number} in group {each}: {before} is")
            self._add(self._found.before, each, channel)

    def _compare(self, client: int, hello: dict[str, Any]) -> None:
        """Whether a client says what the first one said."""
        table, found = TensorTable.from_facts(hello.get("table")), self._found
        routes = tuple(told) if isinstance(told := hello.get("routes"), list) else ()
        proxies = len(self._group.addresses)
        if len(routes) != len(table.shards) or any(proxy not in range(proxies) for proxy in routes):
            raise ProxyError(
                f"client {client} routes {len(table.shards)} shards to {sorted({*map(str, routes)})}: give each of "
                f"them one of {proxies} proxies"
            )
        if found.table is None:
            found.table = table
        elif difference := table.difference(found.table):
            first = min(found.routes)
            raise ProxyError(
                f"clients {client} and {first} registered different tensors: at client {client} {difference}: give all "
                "clients the same table"
            )
        found.routes[client] = routes

    def _add(self, among: dict[int, Channel], number: int, channel: Channel) -> None:
        with self._changed:
            if number in among:
                raise ProxyError(f"{channel.peer} is there twice: each number is one process's")
            among[number] = channel
            self._changed.notify_all()


def _number(hello: dict[str, Any], key: str, count: int) -> int:
    number = hello.get(key)
    if type(number) is not int or not 0 <= number < count:
        raise ProxyError(f"{hello['role']} with {key} {number!r} of {count}: they count from 0")
    return number
