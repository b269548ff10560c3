"""What clients and sum homes say to each other over a LuWu job, whose switch adds whatever clients push.

A client writes into lanes of its own and zeros into the others', so the sum of a greeting is everybody's, side by side.
The vectors of a home go in one order, which all follow from the table: the last tensor's shards first, as backward has
them. Behind the lanes of a shard come those of control:

    lanes of the shard | clients that had NaN or an infinity in it | for each client: it has left
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from catchment.host.proxy.errors import ProxyError
from catchment.host.proxy.tensors import TensorTable

Words = npt.NDArray[np.int32]
FACTS = 4
"""Lanes of a client's greeting: bytes of its text, their CRC-32 in two halves, clients that it counts."""
_HALF = 0xFFFF


def default_routes(table: TensorTable, homes: int) -> tuple[int, ...]:
    """A home for each shard: the largest first, to the one that has the least."""
    loads, routes = [0] * homes, [0] * len(table.shards)
    for number in sorted(range(len(routes)), key=lambda n: (table.shards[n].start - table.shards[n].stop, n)):
        home = loads.index(min(loads))
        routes[number] = home
        loads[home] += table.shards[number].stop - table.shards[number].start
    return tuple(routes)


def order_of(table: TensorTable, routes: Sequence[int], home: int) -> tuple[int, ...]:
    """A home's shards, in the order in which they are pushed in every step."""
    return tuple(shard for shard in reversed(range(len(table.shards))) if routes[shard] == home)


def control_lanes(clients: int) -> int:
    """Lanes behind those of a shard."""
    return 1 + clients


def greeting_text(table: TensorTable, routes: Sequence[int]) -> bytes:
    """What a client registers."""
    return json.dumps({"table": table.facts(), "routes": list(routes)}, separators=(",", ":")).encode()


def greeting(number: int, clients: int, text: bytes) -> Words:
    """The first vector of a client: sizes and checksums of texts."""
    crc, facts = zlib.crc32(text), np.zeros((clients, FACTS), np.int32)
    facts[number] = len(text), crc >> 16, crc & _HALF, clients
    return facts.reshape(-1)


def text_lanes(facts: Words, clients: int) -> tuple[int, int]:
    """How many clients send their text, and how many lanes each has for it: one, if all have the same."""
    rows = facts.reshape(clients, FACTS)
    longest = int(rows[:, 0].max())
    same = bool((rows == rows[0]).all())
    return (1 if same else clients), -(-longest // 4)


def text_vector(number: int, text: bytes, shape: tuple[int, int]) -> Words:
    """The second vector of a client: its text, unless client 0 speaks for all."""
    lanes = np.zeros(shape, np.int32)
    if number < shape[0]:
        lanes[number] = np.frombuffer(text.ljust(4 * shape[1], b"\0"), np.int32)
    return lanes.reshape(-1)


def read_texts(lanes: Words, facts: Words, shape: tuple[int, int], homes: int) -> tuple[TensorTable, tuple[int, ...]]:
    """What all clients register.

    Raises:
        ProxyError: they differ (names the first difference), or what they say is nothing of the kind.
    """
    clients = len(facts) // FACTS
    sizes = facts.reshape(clients, FACTS)[:, 0]
    texts = [row.tobytes()[: int(sizes[number])] for number, row in enumerate(lanes.reshape(shape))]
    try:
        said: list[dict[str, Any]] = [json.loads(text) for text in texts]
        tables = [TensorTable.from_facts(each["table"]) for each in said]
        routes = [tuple(each["routes"]) for each in said]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ProxyError(f"a client greets with something else than its tensors ({error!r})") from error
    for client, table in enumerate(tables):
        if difference := table.difference(tables[0]):
            raise ProxyError(
                f"clients {client} and 0 registered different tensors: at client {client} {difference}: give all "
                "clients the same table"
            )
    for client, own in enumerate(routes):
        if len(own) != len(tables[0].shards) or any(home not in range(homes) for home in own):
            raise ProxyError(
                f"client {client} routes {len(tables[0].shards)} shards to {sorted({*map(str, own)})}: give each of "
                f"them one of {homes} homes"
            )
        if own != routes[0]:
            raise ProxyError(
                f"clients {client} and 0 route shards to different homes: give all clients the same routes"
            )
    return tables[0], routes[0]
