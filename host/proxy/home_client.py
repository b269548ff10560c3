"""A client of sum homes: each holds some of the shards, and a switch adds (COARSE's proxies, several in a training)."""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, final

import numpy as np

from catchment.host.errors import EndpointError
from catchment.host.given_several import in_order
from catchment.host.proxy import home_vectors as vectors
from catchment.host.proxy.channel import Flag
from catchment.host.proxy.errors import ProxyError
from catchment.host.proxy.sums import SumClient, checked_routes
from catchment.host.proxy.tensors import TensorTable

if TYPE_CHECKING:  # that package brings torch with it, which takes seconds
    from catchment.host.layers import Completion, TransferPort


class _Line:
    """The vectors between a client and one home, in their order."""

    def __init__(self, port: TransferPort, name: str, order: Sequence[int]) -> None:
        self.port, self.name, self.order = port, name, order
        self.waiting: dict[int, Flag] = {}  # shards that were pushed before their turn
        self.next = 0  # in `order`
        self.over = False  # nothing can be said here any more
        self.awaited = 0  # sums that have not come
        self.pushed: deque[tuple[Completion, vectors.Words]] = deque()
        self.pulled: queue.Queue[tuple[int, Completion, vectors.Words] | None] = queue.Queue()

    def push(self, lanes: vectors.Words) -> Completion:
        """The lanes may have to be sent again, so they are kept until they have arrived."""
        while self.pushed and self.pushed[0][0].done():
            self.pushed.popleft()
        self.pushed.append((self.port.push(lanes), lanes))
        return self.pushed[-1][0]


@final
class HomeClient(SumClient):
    """One of the clients of `SumHome`s; a worker of each home's LuWu job.

    Shards go to a home in one order. One that is pushed before its turn waits here, so clients may push in any order.

    Args:
        ports: an endpoint to each home, by the homes' numbers.
        number: of this client, as the jobs' worker index.
        clients: how many there are.
        table: the same at all clients; every tensor has an exponent.
        routes: the home of each shard, the same at all clients (default: about as many bytes to each).
        names: of the homes, for errors.
        timeout: seconds for which it waits for a sum.

    Raises:
        ProxyError: a home is not there, or clients differ.
    """

    def __init__(  # noqa: PLR0917
        self,
        ports: Sequence[TransferPort],
        number: int,
        clients: int,
        table: TensorTable,
        routes: Sequence[int] | None = None,
        names: Sequence[str] = (),
        timeout: float = 60.0,
    ) -> None:
        endpoints, named = in_order(ports), in_order(names)
        if not endpoints:
            had = "0 homes" if endpoints == [] else f"the endpoints {ports!r:.80}"
            raise ProxyError(f"client {number!r} of {clients!r} with {had}: give an endpoint to each, one at least")
        if named is None or len(named) not in {0, len(endpoints)}:
            raise ProxyError(f"{len(endpoints)} homes with the names {names!r:.80}: give each a name, or none")
        super().__init__(number, clients, table, timeout)
        for tensor in table.tensors:
            if tensor.exponent is None:
                raise ProxyError(f"tensor {tensor.name}: a switch adds integers: give the tensor an exponent")
        homes = len(endpoints)
        self._routes = (
            vectors.default_routes(table, homes) if routes is None else checked_routes(routes, len(table.shards))
        )
        self._lines = [
            _Line(port, named[home] if named else f"home {home}", vectors.order_of(table, self._routes, home))
            for home, port in enumerate(endpoints)
        ]
        told = [self._greet(line) for line in self._lines]  # all of them, before an error: a home waits for everybody
        for lanes, facts, shape in told:
            vectors.read_texts(lanes, facts, shape, homes)
        self._threads = [threading.Thread(target=self._receive, args=(line,), daemon=True) for line in self._lines]
        for thread in self._threads:
            thread.start()

    def _greet(self, line: _Line) -> tuple[vectors.Words, vectors.Words, tuple[int, int]]:
        text = vectors.greeting_text(self._table, self._routes)
        try:
            facts = self._exchange(line, vectors.greeting(self._number, self._clients, text))
            shape = vectors.text_lanes(facts, self._clients)
            lanes = self._exchange(line, vectors.text_vector(self._number, text, shape))
        except EndpointError as error:
            raise _gone(line, error) from error
        return lanes, facts, shape

    @staticmethod
    def _exchange(line: _Line, lanes: vectors.Words) -> vectors.Words:
        total = np.empty_like(lanes)
        pulled = line.port.pull(total.view(np.uint8))
        line.push(lanes)
        pulled.wait()
        return total

    def _submit(self, shard: int, flags: Flag) -> None:
        line = self._lines[self._routes[shard]]
        line.waiting[shard] = flags
        try:
            while line.order[line.next] in line.waiting:
                self._send(line, line.order[line.next])
                line.next = (line.next + 1) % len(line.order)
        except EndpointError as error:
            line.over = True
            self._fail(_gone(line, error))

    def _send(self, line: _Line, shard: int) -> None:
        flags, part = line.waiting.pop(shard), self._part(self._tensors[self._table.shards[shard].tensor].pushed, shard)
        control = np.zeros(vectors.control_lanes(self._clients), np.int32)
        control[0] = bool(flags & Flag.NOT_FINITE)
        lanes = np.concatenate([part, control])
        total = np.empty_like(lanes)
        with self._changed:
            line.awaited += 1
        line.pulled.put((shard, line.port.pull(total.view(np.uint8)), total))
        line.push(lanes)

    def _receive(self, line: _Line) -> None:
        while (waiting := line.pulled.get()) is not None:
            shard, pulled, total = waiting
            try:
                pulled.wait()
                size = self._table.shards[shard].stop - self._table.shards[shard].start
                left = np.flatnonzero(total[size + 1 :])
                if len(left):
                    raise ProxyError(f"client {left[0]} ended, but client {self._number} pushes in step {self._step}")
            except (EndpointError, ProxyError) as error:
                line.over = True
                self._fail(error if isinstance(error, ProxyError) else _gone(line, error))
                return
            self._part(self._tensors[self._table.shards[shard].tensor].total, shard)[:] = total[:size]
            with self._changed:
                line.awaited -= 1
            self._arrived(shard, Flag.NOT_FINITE if total[size] else Flag(0))

    def _leave(self, *, midway: bool, steps: int, why: str) -> None:
        """The next vector of each home says it, in the place of the shard whose turn it is."""
        del midway, steps, why  # a home sees at which vector everybody leaves; vectors have no room for words
        said: list[Completion] = []
        idle = [line.awaited == 0 for line in self._lines]
        for line in self._lines:
            line.pulled.put(None)
        # A sum that has not come yet may say that the home has ended: then nobody would answer there.
        for at in sorted(range(len(self._lines)), key=lambda at: not idle[at]):
            line = self._lines[at]
            if not idle[at]:
                self._threads[at].join(self._timeout)
            if line.over or not line.order:
                continue
            found = self._table.shards[line.order[line.next]]
            size = found.stop - found.start
            lanes = np.zeros(size + vectors.control_lanes(self._clients), np.int32)
            lanes[size + 1 + self._number] = 1
            with suppress(EndpointError):  # whoever is there was told, or is gone
                said += [line.port.pull(np.empty_like(lanes).view(np.uint8)), line.push(lanes)]
        for completion in said:
            with suppress(EndpointError, TimeoutError):
                completion.wait(self._timeout)
        for thread in self._threads:
            thread.join(self._timeout)

    def _tell_others(self, error: ProxyError) -> None:
        """Others hear of it when this client leaves: each home's next vector says so."""


def _gone(line: _Line, error: EndpointError) -> ProxyError:
    return ProxyError(f"{line.name} is gone, or another client does not come: {error}")
