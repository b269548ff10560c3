"""How proxies choose what to synchronize next, and whether they can get stuck (COARSE, III-F and Figure 10).

Clients push each tensor to the proxy that their own table names, in their own order. A proxy keeps what has come by one
of three policies. A tensor is synchronized when every client's part of it can be taken.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import product

Order = tuple[int, ...]
"""Tensors in the order in which a client pushes them."""
Table = tuple[int, ...]
"""Tensor -> the proxy that a client pushes it to."""
Part = tuple[int, int]
"""(client, tensor)"""


class Policy(enum.Enum):
    """What a proxy can take."""

    FIRST_COME = "one queue"
    """The head of its only queue."""
    FIFO_PER_CLIENT = "a queue for each client"
    """The head of each client's queue: the paper's cure."""
    BY_TENSOR = "a table"
    """Any part that is there."""


def can_get_stuck(policy: Policy, orders: Sequence[Order], tables: Sequence[Table], proxies: int = 2) -> bool:
    """Whether there is an order of arrival after which tensors are left and none can be synchronized."""
    return any(not _finishes(queues) for queues in _arrivals(policy, orders, tables, proxies))


def _arrivals(
    policy: Policy, orders: Sequence[Order], tables: Sequence[Table], proxies: int
) -> Iterator[tuple[tuple[Part, ...], ...]]:
    """All queues that can come about when everything has arrived; links keep the order of what one client sends."""
    sent = [
        [tuple((client, t) for t in order if tables[client][t] == proxy) for client, order in enumerate(orders)]
        for proxy in range(proxies)
    ]
    match policy:
        case Policy.FIRST_COME:
            yield from product(*(_merges(tuple(parts)) for parts in sent))
        case Policy.FIFO_PER_CLIENT:
            yield tuple(part for parts in sent for part in parts)
        case Policy.BY_TENSOR:
            yield tuple((part,) for parts in sent for each in parts for part in each)


@cache
def _merges(queues: tuple[tuple[Part, ...], ...]) -> tuple[tuple[Part, ...], ...]:
    """All interleavings."""
    if not any(queues):
        return ((),)
    return tuple(
        (queue[0], *rest)
        for at, queue in enumerate(queues)
        if queue
        for rest in _merges((*queues[:at], queue[1:], *queues[at + 1 :]))
    )


def _finishes(queues: Sequence[tuple[Part, ...]]) -> bool:
    """Take the heads of queues as long as some tensor has all of its parts there."""
    left = [list(queue) for queue in queues if queue]
    clients = len({client for queue in left for client, _ in queue})
    while left:
        heads = [queue[0][1] for queue in left]
        ready = next((tensor for tensor in heads if heads.count(tensor) == clients), None)
        if ready is None:
            return False
        left = [rest for queue in left if (rest := queue[1:] if queue[0][1] == ready else queue)]
    return True
