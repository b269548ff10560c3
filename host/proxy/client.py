"""A client of parameter proxies: pushes gradients by name, pulls their sums over all clients (COARSE, III-D)."""

from __future__ import annotations

import queue
import threading
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self, final

import numpy as np

from catchment.host.proxy.channel import Channel, Flag, Kind, Message, connect
from catchment.host.proxy.errors import ProxyError
from catchment.host.proxy.group import ProxyGroup
from catchment.host.proxy.numbers import dequantized, elements, quantized
from catchment.host.proxy.ring import Lanes
from catchment.host.proxy.tensors import TensorTable


class _Tensor:
    """One tensor's present step at this client: what was pushed, and what has come back of the sum."""

    __slots__ = ("flags", "left", "pushed", "step", "total")

    def __init__(self, numel: int, dtype: type) -> None:
        self.step = -1
        self.left = 0
        self.flags = 0
        self.pushed: Lanes = np.empty(0, dtype)
        self.total: Lanes = np.empty(numel, dtype)


@final
class Handle:
    """A push or a pull under way."""

    def __init__(self, client: Client, number: int, out: Any = None) -> None:
        """`number`: of the tensor, in the client's present step of it; `out`: where a pull's sum goes."""
        self._client, self._number, self._out = client, number, out

    def done(self) -> bool:
        """Whether `wait` would return at once."""
        return self._client.arrived(self._number)

    def wait(self, timeout: float | None = None) -> None:
        """Block until the sum is there; of a pull, until it is in place.

        Args:
            timeout: seconds; by default the group's.

        Raises:
            ProxyError: a proxy or a client is gone, or the sum is not there after that time.
        """
        self._client.await_sum(self._number, timeout)
        if self._out is not None:
            self._client.deliver(self._number, self._out)


class Client:
    """One of a group's clients. All of them push each tensor of the table once in a step, in any order.

    Not for use by two threads at once.

    Args:
        group: what all are told.
        number: of this client.
        table: the same at all clients.
        routes: the proxy of each shard (default: every client has one proxy, `number` modulo their count).

    Raises:
        ProxyError: a proxy is not there, or clients differ.
    """

    def __init__(self, group: ProxyGroup, number: int, table: TensorTable, routes: Sequence[int] | None = None) -> None:
        count = len(group.addresses)
        self._group, self._number, self._table = group, number, table
        self._routes = tuple(routes) if routes is not None else (number % count,) * len(table.shards)
        self._tensors = [_Tensor(t.numel, np.float32 if t.exponent is None else np.int32) for t in table.tensors]
        self._step = 0
        self._changed = threading.Condition()
        self._failure: ProxyError | None = None
        self._closing = False
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

    @property
    def table(self) -> TensorTable:
        """The tensors that it pushes."""
        return self._table

    @property
    def clients(self) -> int:
        """How many clients' gradients a sum has."""
        return self._group.clients

    @property
    def step(self) -> int:
        """The step that is under way, from 0."""
        return self._step

    def push(self, name: str, gradient: Any) -> Handle:
        """Begin to sum this client's fp32 gradient of a tensor over all clients; several may be under way.

        Values that the tensor's exponent does not hold are cut to the largest that it does. NaN and infinities make
        the shards they are in NaN at all clients. The gradient may be written to again when this returns.

        Raises:
            ProxyError: the tensor is not registered, has another size, or was pushed in this step already.
        """
        number = self._table.number(name)
        tensor, registered = self._tensors[number], self._table.tensors[number]
        source = elements(name, gradient, registered.numel)
        self._check()
        if tensor.step == self._step:
            raise ProxyError(f"tensor {name} was pushed in step {self._step} already: call end_step first")
        shards = self._table.shards_of[number]
        flags = [Flag(0)] * len(shards)
        if registered.exponent is None:
            tensor.pushed = source.copy()
        else:
            tensor.pushed = quantized(source, registered.exponent, self._group.clients)
            flags = [Flag(0) if np.isfinite(self._part(source, shard)).all() else Flag.NOT_FINITE for shard in shards]
        with self._changed:
            tensor.step, tensor.left, tensor.flags = self._step, len(shards), 0
        for shard, flag in zip(shards, flags, strict=True):
            self._outbox.put((shard, self._step, flag))
        return Handle(self, number)

    def pull(self, name: str, out: Any) -> Handle:
        """The sum of the tensor's gradients of this step, which goes to `out` (fp32, C-contiguous) in `wait`.

        Raises:
            ProxyError: the tensor is not registered, has another size, or was not pushed in this step.
        """
        number = self._table.number(name)
        elements(name, out, self._table.tensors[number].numel)
        if self._tensors[number].step != self._step:
            raise ProxyError(f"tensor {name} was not pushed in step {self._step}: push it first")
        return Handle(self, number, out)

    def end_step(self) -> None:
        """Wait until all sums of this step are there; the next step begins.

        Raises:
            ProxyError: a tensor was not pushed, whose sum others would wait for; or as `Handle.wait`.
        """
        missing = [t.name for t, own in zip(self._table.tensors, self._tensors, strict=True) if own.step != self._step]
        if missing:
            raise ProxyError(
                f"step {self._step} ends without {', '.join(missing[:3])}{' and others' * (len(missing) > 3)}: all "
                "clients wait for every tensor; push zeros for one without a gradient"
            )
        for number in range(len(self._tensors)):
            self.await_sum(number, None)
        self._step += 1

    def close(self) -> None:
        """Say that nothing follows. In the midst of a step the others are told that this client is gone."""
        self._closing = True
        self._outbox.put(None)
        self._sender.join()
        pushed = [tensor.step == self._step for tensor in self._tensors]
        midway = any(tensor.left for tensor in self._tensors) or any(pushed) != all(pushed)
        for channel in self._channels:
            if midway:
                channel.fail(f"client {self._number} left in the midst of step {self._step}")
            else:
                channel.bid_farewell(self._step + all(pushed))
            channel.shut()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def arrived(self, number: int) -> bool:
        """Whether all of a tensor's sum is there (or something failed)."""
        return self._tensors[number].left == 0 or self._failure is not None

    def await_sum(self, number: int, timeout: float | None) -> None:
        """See `Handle.wait`."""
        limit = self._group.timeout if timeout is None else timeout
        with self._changed:
            if not self._changed.wait_for(lambda: self.arrived(number), limit):
                raise ProxyError(
                    f"the sum of {self._table.tensors[number].name} of step {self._step} is not there after {limit:g} "
                    "s: another client has not pushed it"
                )
        if self._tensors[number].left:
            self._check()

    def deliver(self, number: int, out: Any) -> None:
        """Write a sum that has arrived, as fp32."""
        tensor, registered = self._tensors[number], self._table.tensors[number]
        target = elements(registered.name, out, registered.numel)
        if registered.exponent is None:
            target[:] = tensor.total
        else:
            dequantized(tensor.total, registered.exponent, self._group.clients, target)
        if tensor.flags:
            for shard in self._table.shards_of[number]:
                if tensor.flags >> (shard - self._table.shards_of[number].start) & 1:
                    target[self._table.shards[shard].start : self._table.shards[shard].stop] = np.nan

    def _look(self) -> None:
        for channel in self._channels:
            channel.look()

    def _check(self) -> None:
        if self._failure is not None:
            raise ProxyError(str(self._failure))

    def _fail(self, error: ProxyError) -> None:
        with self._changed:
            if self._failure is not None or self._closing:
                return
            self._failure = error
            self._changed.notify_all()
        for channel in self._channels:
            channel.fail(str(error))

    def _part(self, lanes: Lanes, shard: int) -> Lanes:
        found = self._table.shards[shard]
        return lanes[found.start : found.stop]

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
                with self._changed:
                    if message.flags & Flag.NOT_FINITE:
                        tensor.flags |= 1 << (message.shard - self._table.shards_of[number].start)
                    tensor.left -= 1
                    self._changed.notify_all()
        except ProxyError as error:
            self._fail(error)
