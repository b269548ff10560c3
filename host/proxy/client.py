"""A client of proxies that synchronize among themselves (COARSE, III-D)."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

from catchment.host.proxy.channel import Channel, Flag, Kind, Message, connect
from catchment.host.proxy.errors import ProxyError
from catchment.host.proxy.group import ProxyGroup
from catchment.host.proxy.inquiry import Inquiry
from catchment.host.proxy.numbers import elements
from catchment.host.proxy.sums import SumClient, checked_routes
from catchment.host.proxy.tensors import TensorTable


@final
class Client(SumClient):
    """One of a group's clients.

    Args:
        group: what all are told.
        number: of this client.
        table: the same at all clients.
        routes: the proxy of each shard (default: every client has one proxy, `number` modulo their count).
        parameters: by name, fp32: what proxies with a rule begin with, unless they have a snapshot; of client 0.

    Raises:
        ProxyError: a proxy is not there, clients differ, or proxies are at different steps.
    """

    def __init__(
        self,
        group: ProxyGroup,
        number: int,
        table: TensorTable,
        routes: Sequence[int] | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> None:
        if not isinstance(group, ProxyGroup):
            raise ProxyError(f"a client of the group {group!r:.80}: give a ProxyGroup")
        super().__init__(number, group.clients, table, group.timeout, group.rule is not None)
        count = len(group.addresses)
        shards = len(table.shards)
        self._routes = (number % count,) * shards if routes is None else checked_routes(routes, shards)
        self._outbox: queue.Queue[tuple[int, int, Flag] | None] = queue.Queue()
        hello = {"role": "client", "number": self._number, "table": table.facts(), "routes": self._routes}
        self._channels: list[Channel] = []
        try:
            for proxy, address in enumerate(group.addresses):
                name = group.name(proxy)
                self._channels.append(connect(address, name, group.secret, hello, group.timeout, self._look))
            welcomes = [self._welcomed(channel) for channel in self._channels]
        except ProxyError as error:
            for channel in self._channels:
                channel.fail(str(error), group.timeout)
                channel.shut()
            raise
        try:
            self._begin(welcomes, parameters)
        except ProxyError as error:
            self._tell_others(error)
            raise
        self._inquiry = Inquiry(self._channels)
        for proxy, channel in enumerate(self._channels):
            threading.Thread(target=self._receive, args=(proxy, channel), daemon=True).start()
        self._sender = threading.Thread(target=self._send, daemon=True)
        self._sender.start()
        try:
            for tensor in range(len(table.tensors)):
                self.await_sum(tensor, None)  # proxies with a rule give the first parameters by themselves
        except ProxyError:
            self.close()
            raise

    def _begin(self, welcomes: Sequence[Message], parameters: Mapping[str, Any] | None) -> None:
        """Take the step that the proxies are at; client 0 brings parameters where they have none."""
        said = [(message.step, message.flags) for message in welcomes]
        if len(set(said)) > 1:
            steps = [f"{c.peer} is at step {step}" for c, (step, _) in zip(self._channels, said, strict=True)]
            raise ProxyError(
                f"{', '.join(steps)}: steps do not mix; give all proxies the one folder of their snapshots"
            )
        self._step, flags = said[0]
        if not self._updated:
            return
        for tensor, shards in zip(self._tensors, self._table.shards_of, strict=True):
            tensor.left = len(shards)
        if not flags & Flag.EMPTY or self._number:
            return
        if parameters is None:
            raise ProxyError("the proxies have no parameters yet: client 0 has to bring them")
        for number, shard in enumerate(self._table.shards):
            registered = self._table.tensors[shard.tensor]
            if registered.name not in parameters:
                raise ProxyError(f"client 0 brings no parameters of tensor {registered.name}")
            part = self._part(elements(registered.name, parameters[registered.name], registered.numel), number)
            for channel in self._channels:
                channel.send(Message(Kind.PARAMETERS, number, size=part.nbytes), part)

    @staticmethod
    def _welcomed(channel: Channel) -> Message:
        message = channel.receive()
        if message.kind is not Kind.WELCOME:
            raise ProxyError(f"{channel.peer} says {message.kind.name} before WELCOME")
        return message

    def _submit(self, shard: int, flags: Flag) -> None:
        self._outbox.put((shard, self._step, flags))

    def _leave(self, *, midway: bool, steps: int, why: str) -> None:
        self._outbox.put(None)
        for channel in self._channels:  # the sender may wait for one whose proxy stands still; the others hear why
            if midway:
                channel.fail(f"client {self._number} left in the midst of step {self._step}{why}", self._timeout)
            else:
                channel.bid_farewell(self._timeout, steps)
            channel.shut()
        self._sender.join()

    def _tell_others(self, error: ProxyError) -> None:
        for channel in self._channels:
            channel.fail(str(error), self._timeout)

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

    def _inquire(self, number: int) -> Callable[[float], str]:
        step = self._tensors[number].step
        if step < 0:  # it waits for the first parameters, which proxies bring before they answer
            return super()._inquire(number)
        self._inquiry.begin(number, step)
        return self._inquiry.found

    def _receive(self, proxy: int, channel: Channel) -> None:
        try:
            while True:
                message = channel.receive()
                if message.kind is Kind.AWAITED:
                    self._inquiry.take(proxy, message)
                    continue
                if message.kind not in (Kind.VALUE, Kind.PARAMETERS) or message.shard >= len(self._table.shards):
                    raise ProxyError(f"{channel.peer} sends {message.kind.name} where a sum belongs")
                number = self._table.shards[message.shard].tensor
                tensor = self._tensors[number]
                if message.kind is Kind.VALUE and message.step != tensor.step:
                    raise ProxyError(f"{channel.peer} sends a sum of step {message.step} in step {tensor.step}")
                channel.into(self._part(tensor.total, message.shard))
                self._arrived(message.shard, message.flags)
        except ProxyError as error:
            self._fail(error)
