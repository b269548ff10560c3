"""A parameter proxy: takes its clients' parts, sums them with all other proxies, and gives the sums back (COARSE)."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Self

import numpy as np

from catchment.host.errors import EndpointError
from catchment.host.proxy.assembly import Assembled, Assembly
from catchment.host.proxy.channel import Channel, Flag, Kind, Message
from catchment.host.proxy.ending import Ending
from catchment.host.proxy.errors import ProxyError
from catchment.host.proxy.group import ProxyGroup
from catchment.host.proxy.leader import Go, Leader
from catchment.host.proxy.parameters import Parameters
from catchment.host.proxy.parts import Parts
from catchment.host.proxy.ring import Lanes
from catchment.host.proxy.rule import rule_of
from catchment.host.proxy.synchronize import Alone, Finish, RingSynchronizer, SwitchSynchronizer, Synchronizer
from catchment.host.proxy.tensors import TensorTable
from catchment.host.proxy.turns import Turns

if TYPE_CHECKING:  # that package brings torch with it, which takes seconds
    from catchment.host.layers import TransferPort

WINDOW = 4
"""Shards of a group that may be under way: one is summed while those before it go back to the clients."""
_DRAIN = 5.0
_HELD_UP = 1.0
"""Seconds for which a message has been on its way when a client is told of it."""
_Begun = tuple[Go, Lanes, Finish]


class Proxy:
    """One proxy of a group; it listens as soon as it is made, and `run` serves until all clients are done.

    Threads: one receives from each client and each other proxy; for each group one begins sums and one finishes them.
    """

    def __init__(self, group: ProxyGroup, number: int, ports: Sequence[TransferPort] = ()) -> None:
        """Listen.

        Args:
            group: what all are told.
            number: of this proxy.
            ports: with sync="switch": for each group of sync cores a peer of a job of its own, of all proxies.

        Raises:
            ProxyError: the address cannot be had, the rule is none, or there are not as many ports as groups.
        """
        if not isinstance(group, ProxyGroup):
            raise ProxyError(f"a proxy of the group {group!r:.80}: give a ProxyGroup")
        if group.sync == "switch" and len(group.addresses) > 1 and len(ports) != group.groups:
            raise ProxyError(f"{len(ports)} jobs for {group.groups} groups of sync cores: give a peer of one for each")
        if group.rule is not None:
            rule_of(group.rule)  # nobody need come to hear that it is none
        self._assembly = Assembly(group, number)
        self._group, self._number, self._ports = group, int(number), ports
        self._lock = threading.Lock()
        self._ending = Ending(group.clients, len(group.addresses) - 1)
        self._found = Assembled()
        self._turns: list[Turns] = []
        self._parameters: Parameters | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._assembly.close()
        for turns in self._turns:
            turns.end()
        for channel in self._found.channels():
            channel.shut()
        if self._parameters is not None:
            self._parameters.close()

    def run(self) -> None:
        """Serve until every client has said that it is done, and every proxy has finished and saved what they had.

        Raises:
            ProxyError: a client or a proxy is gone, did not come, or says what cannot be; all others are told the same.
                Or a snapshot cannot be saved.
        """
        found = self._found = self._assembly.gather()
        assert found.table is not None, "clients have brought it"
        try:
            self._set_up(found.table)
            self._welcome(found.table)
        except Exception as error:  # everybody waits
            self._ending.fail(self._failure_of(error))
        if self._ending.failure is None:
            threads = self._begin(found)
            self._serve_out()
        else:
            threads = [self._begun(channel.drain) for channel in found.clients.values()]
        if self._ending.failure is None:
            return
        for channel in found.channels():
            channel.fail(str(self._ending.failure), _DRAIN)
        for thread in threads:
            thread.join(_DRAIN / len(threads))
        raise self._ending.failure

    def _serve_out(self) -> None:
        """Wait for the end, in the order that `Ending` describes."""
        self._ending.await_service(self._first, len(self._clients))
        if self._parameters is not None:
            self._parameters.close()
        if self._ending.failure is None:
            for channel in self._found.peers.values():
                channel.bid_farewell(self._group.timeout)
            self._ending.await_proxies(self._group.timeout)

    def _begin(self, found: Assembled) -> list[threading.Thread]:
        """Begin to sum; gives the threads that receive."""
        threads = [
            *(self._begun(self._serve, client, channel) for client, channel in found.clients.items()),
            *(self._begun(self._hear, channel) for channel in found.peers.values()),
        ]
        for group in range(self._group.groups):
            begun: queue.Queue[_Begun | None] = queue.Queue(WINDOW)
            self._begun(self._begin_sums, group, begun)
            self._begun(self._finish_sums, group, begun)
        for shard, clients in enumerate(self._clients):
            if not clients:
                self._ready_if_complete(shard)
        return threads

    def _set_up(self, table: TensorTable) -> None:
        found, count = self._found, len(self._group.addresses)
        shards = range(len(table.shards))
        self._shards_of = table.shards_of
        self._clients = [
            frozenset(client for client, routes in found.routes.items() if routes[shard] == self._number)
            for shard in shards
        ]
        dtypes: list[type] = [
            np.float32 if table.tensors[shard.tensor].exponent is None else np.int32 for shard in table.shards
        ]
        if self._group.rule is not None:
            self._parameters = Parameters(self._group, self._number, table, self._ending.fail)
        self._first = (self._parameters and self._parameters.first) or 0
        self._parts = Parts(self._clients, [shard.stop - shard.start for shard in table.shards], dtypes, self._first)
        self._group_of = [table.group(shard, self._group.groups) for shard in shards]
        self._leaders = {
            group: Leader(count, WINDOW)
            for group in range(self._group.groups)
            if self._leader_of(group) == self._number
        }
        self._turns = [Turns() for _ in range(self._group.groups)]
        self._synchronizers = [self._synchronizer(group) for group in range(self._group.groups)]

    def _welcome(self, table: TensorTable) -> None:
        """Let clients begin; with parameters they get those that the proxies have, or that client 0 brings."""
        clients, parameters = self._found.clients, self._parameters
        first = parameters.first if parameters is not None else None
        flags = Flag.EMPTY if parameters is not None and first is None else Flag(0)
        for channel in clients.values():
            channel.send(Message(Kind.WELCOME, step=first or 0, flags=flags))
        if parameters is None:
            return
        if flags:
            with clients[0].ended_after(self._group.timeout):
                for number, shard in enumerate(table.shards):
                    if clients[0].receive().kind is not Kind.PARAMETERS:
                        raise ProxyError(f"{clients[0].peer} brings no parameters, which the proxies do not have yet")
                    values = np.empty(shard.stop - shard.start, np.float32)
                    clients[0].into(values)
                    parameters.begin(number, values)
        for number in range(len(table.shards)):
            weights = parameters.weights(number)
            for client in self._clients[number]:
                clients[client].send(Message(Kind.PARAMETERS, number, first or 0, size=weights.nbytes), weights)

    def _leader_of(self, group: int) -> int:
        return group % len(self._group.addresses)

    def _synchronizer(self, group: int) -> Synchronizer:
        count = len(self._group.addresses)
        if count == 1:
            return Alone()
        if self._group.sync == "switch":
            return SwitchSynchronizer(self._ports[group])
        position = self._group.neighbours(self._number, group)[0]
        return RingSynchronizer(position, count, self._found.onward[group], self._found.before[group])

    def _begun(self, work: Callable[..., None], *arguments: object) -> threading.Thread:
        def guarded() -> None:
            try:
                work(*arguments)
            except Exception as error:  # `run` waits
                self._ending.fail(self._failure_of(error))

        thread = threading.Thread(target=guarded, daemon=True)
        thread.start()
        return thread

    def _failure_of(self, error: Exception) -> ProxyError:
        """What everybody is told of an error."""
        if isinstance(error, ProxyError):
            return error
        if isinstance(error, EndpointError):
            failure = ProxyError(f"proxy {self._number} cannot sum through the switch: {error}")
        else:
            failure = ProxyError(f"proxy {self._number} failed: {error!r}")
        failure.__cause__ = error
        return failure

    def _tell(self, channel: Channel, message: Message, payload: Lanes | None = None) -> None:
        with suppress(ProxyError):  # the thread that receives from the other end knows whether it said BYE before
            channel.send(message, payload)

    def _serve(self, client: int, channel: Channel) -> None:
        try:
            while (message := channel.receive()).kind in (Kind.PART, Kind.ASK):
                if message.kind is Kind.ASK:
                    self._say_who_is_awaited(channel, message.number, message.step)
                    continue
                with self._lock:
                    part = self._parts.check(message.shard, message.step, client, message.size)
                channel.into(part)
                with self._lock:
                    complete = self._parts.add(message.shard, message.step, client, part, message.flags)
                if complete:
                    self._ready_if_complete(message.shard)
            if message.kind is not Kind.BYE:
                raise ProxyError(f"{channel.peer} sends {message.kind.name} where a part belongs")
            with self._lock:
                self._parts.end(client, message.step)
        except Exception as error:  # the client reads why while it is drained
            self._ending.fail(self._failure_of(error))
            channel.drain()
            return
        self._ending.client_left(client, message.step)

    def _say_who_is_awaited(self, channel: Channel, tensor: int, step: int) -> None:
        """Answer a client that has waited for a sum for long."""
        if tensor >= len(self._shards_of):
            raise ProxyError(f"{channel.peer} asks for tensor {tensor} of a table that has {len(self._shards_of)}")
        with self._lock:
            missing = {client for shard in self._shards_of[tensor] for client in self._parts.awaited(shard, step)}
        own = self._group.name(self._number)
        awaited = [f"client {client} has not pushed it" for client in sorted(missing)]
        awaited += [
            f"{other.peer} does not take what {own} sends"
            for other in self._found.channels()
            if other.held_up(_HELD_UP)
        ]
        with suppress(ProxyError):  # as in `_tell`
            channel.say(Kind.AWAITED, {"awaited": awaited}, number=tensor, step=step)

    def _hear(self, channel: Channel) -> None:
        """What another proxy says."""
        peer = next(number for number, each in self._found.peers.items() if each is channel)
        while (message := channel.receive()).kind is not Kind.BYE:
            if message.kind in (Kind.READY, Kind.GO):
                self._check_leader(channel, message, self._number if message.kind is Kind.READY else peer)
            if message.kind is Kind.READY:
                self._is_ready(peer, message.shard, message.step, message.flags)
            elif message.kind is Kind.GO:
                go = Go(message.number, message.shard, message.step, message.flags)
                self._turns[self._group_of[go.shard]].put(go)
            else:
                raise ProxyError(f"{channel.peer} sends {message.kind.name}, which proxies do not say to each other")
        self._ending.proxy_left()

    def _check_leader(self, channel: Channel, message: Message, leader: int) -> None:
        """Whether `leader` leads the group of the shard that the message is about.

        Raises:
            ProxyError: it does not, or there is no such shard: the other end reckons otherwise.
        """
        said, shard = f"{channel.peer} says {message.kind.name} for shard {message.shard}", message.shard
        if shard >= len(self._group_of):
            raise ProxyError(f"{said} of a table that has {len(self._group_of)}: run the same release everywhere")
        group = self._group_of[shard]
        if self._leader_of(group) != leader:
            raise ProxyError(
                f"{said} of group {group}, which {self._group.name(self._leader_of(group))} leads, not "
                f"{self._group.name(leader)}: run the same release everywhere"
            )

    def _ready_if_complete(self, shard: int) -> None:
        with self._lock:
            if not self._parts.complete(shard):
                return
            step, flags = self._parts.step(shard), self._parts.flags(shard)
        leader = self._leader_of(self._group_of[shard])
        if leader == self._number:
            self._is_ready(self._number, shard, step, flags)
        else:
            self._tell(self._found.peers[leader], Message(Kind.READY, shard, step, flags=flags))

    def _is_ready(self, proxy: int, shard: int, step: int, flags: int) -> None:
        group = self._group_of[shard]
        with self._lock:
            said = self._leaders[group].ready(proxy, shard, step, flags)
        self._say(group, said)

    def _say(self, group: int, said: Sequence[Go]) -> None:
        for go in said:
            for channel in self._found.peers.values():
                self._tell(channel, Message(Kind.GO, go.shard, go.step, go.number, go.flags))
            self._turns[group].put(go)

    def _begin_sums(self, group: int, begun: queue.Queue[_Begun | None]) -> None:
        while (go := self._turns[group].take()) is not None:
            with self._lock:
                step, total = self._parts.take(go.shard)
            if step != go.step:
                raise ProxyError(f"{self._group.name(self._leader_of(group))} says step {go.step}, {step} is next")
            begun.put((go, total, self._synchronizers[group].begin(total)))
            if not self._clients[go.shard]:
                self._ready_if_complete(go.shard)
        begun.put(None)

    def _finish_sums(self, group: int, begun: queue.Queue[_Begun | None]) -> None:
        while (sums := begun.get()) is not None:
            go, total, finish = sums
            finish()
            flags = go.flags
            if self._parameters is not None:
                total, flags = self._parameters.update(go.shard, go.step, total, flags), 0
            for client in self._clients[go.shard]:
                self._tell(
                    self._found.clients[client],
                    Message(Kind.VALUE, go.shard, go.step, flags=flags, size=total.nbytes),
                    total,
                )
            self._ending.sum_finished()
            if group in self._leaders:
                with self._lock:
                    said = self._leaders[group].done()
                self._say(group, said)
