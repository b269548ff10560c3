"""A client of proxies that synchronize among themselves (COARSE, III-D)."""

from __future__ import annotations

import queue
import threading
from collections.abc import Sequence
from typing import final

from catchment.host.proxy.channel import Channel, Flag, Kind, Message, connect
from catchment.host.proxy.errors import ProxyError
from catchment.host.proxy.group import ProxyGroup
from catchment.host.proxy.sums import SumClient
from catchment.host.proxy.tensors import TensorTable


@final
class Client(SumClient):
    """One of a group's clients.

    Args:
        group: what all are told.
        number: of this client.
        table: the same at all clients.
        routes: the proxy of each shard (default: every client has one proxy, `number` modulo their count).

    Raises:
        ProxyError: a proxy is not there, or clients differ.
    """

    def __init__(self, group: ProxyGroup, number: int, table: TensorTable, routes: Sequence[int] | None = None) -> None:
        super().__init__(number, group.clients, table, group.timeout)
        count = len(group.addresses)
        self._routes = tuple(routes) if routes is not None else (number % count,) * len(table.shards)
        self._outbox: queue.Queue[tuple[int, int, Flag] | None] = queue.Queue()
        hello = {"role": "client", "number": number, "table": table.facts(), "routes": self._routes}
        self._channels: list[Channel] = []
        try:
            for proxy, address in enumerate(group.addresses):
                name = group.name(proxy)
                self._channels.append(connect(address, name, group.secret, hello, group.timeout, self._look))
            for channel in self._channels:
                message = channel.receive()
                if message.kind is not Kind.WELCOME:
                    raise ProxyError(f"{channel.peer} says {message.kind.name} before WELCOME")
        except ProxyError:
            for channel in self._channels:
                channel.shut()
            raise
        for channel in self._channels:
            threading.Thread(target=self._receive, args=(channel,), daemon=True).start()
        self._sender = threading.Thread(target=self._send, daemon=True)
        self._sender.start()

    def _submit(self, shard: int, flags: Flag) -> None:
        self._outbox.put((shard, self._step, flags))

    def _leave(self, *, midway: bool, steps: int) -> None:
        self._outbox.put(None)
        self._sender.join()
        for channel in self._channels:
            if midway:
                channel.fail(f"client {self._number} left in the midst of step {self._step}")
            else:
                channel.bid_farewell(steps)
            channel.shut()

    def _tell_others(self, error: ProxyError) -> None:
        for channel in self._channels:
            channel.fail(str(error))

    def _look(self) -> None:
        for channel in self._channels:
            channel.look()

    def _send(self) -> None:
        while (waiting := self._outbox.get()) is not None:
            shard, step, flags = waiting
            part = self._part(self._tensors[self._table.shards[shard].tensor].pushed, shard)
            try:
                self._channels[self._routes[shard]].send(
                    Message(Kind.PART, shard, step, flags=flags, size=part.nbytes), part
                )
            except ProxyError as error:
                self._fail(error)

    def _receive(self, channel: Channel) -> None:
        try:
            while True:
                message = channel.receive()
                if message.kind is not Kind.VALUE or message.shard >= len(self._table.shards):
                    raise ProxyError(f"{channel.peer} sends {message.kind.name} where a sum belongs")
                number = self._table.shards[message.shard].tensor
                tensor = self._tensors[number]
                if message.step != tensor.step:
                    raise ProxyError(f"{channel.peer} sends a sum of step {message.step} in step {tensor.step}")
                channel.into(self._part(tensor.total, message.shard))
                self._arrived(message.shard, message.flags)
        except ProxyError as error:
            self._fail(error)
