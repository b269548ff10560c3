"""The parts of shards that a proxy has: by shard, step and client, so that no order of arrival can fill a queue.

There is room for one part of each client and shard: a client pushes the next step's when it has this step's sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from catchment.host.proxy.channel import Flag
from catchment.host.proxy.errors import ProxyError
from catchment.host.proxy.ring import Lanes


@dataclass(slots=True)
class _Pending:
    """The state of one shard: the step whose parts are awaited, what has come, and what was said of it."""

    step: int = 0
    came: dict[int, Lanes] = field(default_factory=dict)
    flags: int = 0


class Parts:
    """Not for use by two threads at once."""

    def __init__(
        self, clients: Sequence[frozenset[int]], lengths: Sequence[int], dtypes: Sequence[type], first: int = 0
    ) -> None:
        """Expect parts from step `first` on. By shard: the clients that push it here, its elements, their type."""
        self._clients = clients
        self._lengths = lengths
        self._dtypes = dtypes
        self._pending = [_Pending(first) for _ in clients]
        self._first = first
        self._next: dict[tuple[int, int], int] = {}
        self._ended: dict[int, int] = {}

    def check(self, shard: int, step: int, client: int, size: int) -> Lanes:
        """Memory for a part that is about to come.

        Raises:
            ProxyError: nobody expects it; says why.
        """
        who = f"client {client}"
        if not 0 <= shard < len(self._clients):
            raise ProxyError(f"{who} pushes shard {shard} of a table that has {len(self._clients)}")
        if client not in self._clients[shard]:
            raise ProxyError(f"{who} pushes shard {shard} to a proxy that its routes do not name for it")
        expected = self._next.get((shard, client), self._first)
        if step != expected:
            raise ProxyError(f"{who} pushes shard {shard} of step {step}: its step {expected} is next")
        array: Lanes = np.empty(self._lengths[shard], self._dtypes[shard])
        if size != array.nbytes:
            raise ProxyError(f"{who} pushes {size} bytes of shard {shard}, which has {array.nbytes}")
        return array

    def add(self, shard: int, step: int, client: int, part: Lanes, flags: int = 0) -> bool:
        """Take a part that `check` gave the memory for; whether all parts of the step have now come."""
        pending = self._pending[shard]
        self._next[shard, client] = step + 1
        if pending.step != step:
            raise ProxyError(f"client {client} pushes shard {shard} of step {step} before step {pending.step} is done")
        pending.came[client] = part
        pending.flags |= flags
        for gone, first in self._ended.items():
            _check_ended(gone, first, client, step)
        return self.complete(shard)

    def end(self, client: int, first: int) -> None:
        """Note that a client takes no part from step `first` on.

        Raises:
            ProxyError: another one has pushed something of that step, which would wait for ever; so does `add` from
                now on. Or this one has not pushed what it says here.
        """
        for shard, clients in enumerate(self._clients):
            if client in clients and (had := self._next.get((shard, client), self._first)) != first:
                raise ProxyError(
                    f"client {client} ends after {first} steps, but its step {had} of shard {shard} is next"
                )
        self._ended[client] = first
        for pending in self._pending:
            for other in pending.came:
                _check_ended(client, first, other, pending.step)

    def complete(self, shard: int) -> bool:
        """Whether everything has come; at once where no client pushes the shard to this proxy."""
        return len(self._pending[shard].came) == len(self._clients[shard])

    def awaited(self, shard: int, step: int) -> frozenset[int]:
        """The clients whose parts of that step have yet to come here."""
        pending = self._pending[shard]
        return self._clients[shard].difference(pending.came) if pending.step == step else frozenset()

    def step(self, shard: int) -> int:
        """The step whose parts are awaited, or complete."""
        return self._pending[shard].step

    def flags(self, shard: int) -> Flag:
        """What clients said of their parts."""
        return Flag(self._pending[shard].flags)

    def take(self, shard: int) -> tuple[int, Lanes]:
        """The step and the sum of its parts, in the order of the clients' numbers; the next step's may come."""
        pending = self._pending[shard]
        self._pending[shard] = _Pending(pending.step + 1)
        ordered = [pending.came[client] for client in sorted(pending.came)]
        total = ordered[0] if ordered else np.zeros(self._lengths[shard], self._dtypes[shard])
        for part in ordered[1:]:
            np.add(total, part, out=total)
        return pending.step, total


def _check_ended(gone: int, first: int, other: int, step: int) -> None:
    if step >= first:
        raise ProxyError(f"client {gone} ended after {first} steps, but client {other} pushes in step {step}")
