"""A home of sums: the root of a LuWu job that gives every client the sum of what all have pushed of some shards."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from itertools import cycle
from typing import TYPE_CHECKING, final

import numpy as np

from catchment.host.errors import EndpointError
from catchment.host.given_numbers import is_whole
from catchment.host.proxy import home_vectors as vectors
from catchment.host.proxy.errors import ProxyError
from catchment.host.proxy.limits import MOST_CLIENTS
from catchment.host.proxy.tensors import TensorTable

if TYPE_CHECKING:  # that package brings torch with it, which takes seconds
    from catchment.host.layers import Completion, TransferPort

AHEAD = 4
"""Sums that a home has asked for, so that clients have credit while one goes back."""
_GRACE = 2.0
"""Seconds that a home which has ended stays, for a client that has not got, or not acknowledged, the last sum."""


@final
class SumHome:
    """One of several homes. The switch adds, so it has nothing to agree on with the others.

    Args:
        port: `Endpoint.root` of the job of this home and all clients.
        number: of this home.
        homes: how many there are.
        clients: workers of the job.
    """

    def __init__(self, port: TransferPort, number: int, homes: int, clients: int) -> None:
        counts = is_whole(homes, 1) and is_whole(number, 0, homes - 1)
        if not counts or not is_whole(clients, 1, MOST_CLIENTS):
            raise ProxyError(
                f"home {number!r} of {homes!r} for {clients!r} clients: homes count from 0, clients from 1"
            )
        self._port, self._number, self._homes, self._clients = port, int(number), int(homes), int(clients)
        self._sent: deque[tuple[Completion, vectors.Words]] = deque()

    @property
    def number(self) -> int:
        """Number of this home."""
        return self._number

    def run(self) -> None:
        """Serve until all clients have left together.

        Raises:
            ProxyError: clients differ, one left before the others, or does not come (a client is told the same).
        """
        try:
            table, routes = self._welcome()
            order = vectors.order_of(table, routes, self._number)
            if order:
                self._serve(table, order)
        except EndpointError as error:
            raise ProxyError(f"home {self._number}: a client is gone, or does not come: {error}") from error
        finally:
            self._settle()

    def _welcome(self) -> tuple[TensorTable, tuple[int, ...]]:
        facts = self._echo(vectors.FACTS * self._clients)
        shape = vectors.text_lanes(facts, self._clients)
        lanes = self._echo(shape[0] * shape[1])
        return vectors.read_texts(lanes, facts, shape, self._homes)

    def _echo(self, lanes: int) -> vectors.Words:
        total = np.empty(lanes, np.int32)
        self._port.pull(total).wait()
        self._give(total)
        return total

    def _serve(self, table: TensorTable, order: tuple[int, ...]) -> None:
        sizes = [table.shards[shard].stop - table.shards[shard].start for shard in order]
        endless = cycle(sizes)
        asked: deque[tuple[int, Completion, vectors.Words]] = deque(self._ask(endless) for _ in range(AHEAD))
        done = 0
        while True:
            size, pulled, total = asked.popleft()
            pulled.wait()
            self._give(total)
            left = total[size + 1 :]
            if left.any():
                self._check_end(left, *divmod(done, len(order)))
                return
            asked.append(self._ask(endless))
            done += 1

    def _ask(self, sizes: Iterator[int]) -> tuple[int, Completion, vectors.Words]:
        size = next(sizes)
        total = np.empty(size + vectors.control_lanes(self._clients), np.int32)
        return size, self._port.pull(total), total

    def _give(self, total: vectors.Words) -> None:
        while self._sent and self._sent[0][0].done():
            self._sent.popleft()
        self._sent.append((self._port.push(total.view(np.uint8)), total))

    def _settle(self) -> None:
        """See that clients have what was sent; one that has gone cannot say so."""
        until = time.monotonic() + _GRACE
        for sent, _ in self._sent:
            with suppress(EndpointError, TimeoutError):
                sent.wait(max(0.0, until - time.monotonic()))

    @staticmethod
    def _check_end(left: vectors.Words, step: int, shards: int) -> None:
        gone = np.flatnonzero(left)
        if shards:
            raise ProxyError(f"client {gone[0]} left in the midst of step {step}")
        if len(gone) < len(left):
            stays = np.flatnonzero(left == 0)[0]
            raise ProxyError(f"client {gone[0]} ended after {step} steps, but client {stays} pushes in the next one")
