"""What clients of sum homes greet with: the switch's sum of their vectors says who registers what."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest

from catchment.host.proxy import ProxyError, TensorTable
from catchment.host.proxy.home_vectors import (
    Words,
    default_routes,
    greeting,
    greeting_text,
    read_texts,
    text_lanes,
    text_vector,
)

HOMES = 2
TABLE = TensorTable.of({"a": 100, "b": 7}, {"a": 1, "b": 2})


def added(vectors: Sequence[Words]) -> Words:
    """What a switch gives for them."""
    total: Words = np.sum(vectors, axis=0, dtype=np.int32)
    return total


def greeted(texts: Sequence[bytes]) -> tuple[Words, Words, tuple[int, int]]:
    """The texts as everybody reads them: their lanes, what was said of them, and the lanes' shape."""
    clients = len(texts)
    facts = added([greeting(number, clients, text) for number, text in enumerate(texts)])
    shape = text_lanes(facts, clients)
    return added([text_vector(number, text, shape) for number, text in enumerate(texts)]), facts, shape


def test_one_client_speaks_for_all_that_register_the_same(rng: random.Random) -> None:
    routes = default_routes(TABLE, HOMES)
    texts = [greeting_text(TABLE, routes)] * rng.randint(1, 4)
    lanes, facts, shape = greeted(texts)
    assert shape == (1, -(-len(texts[0]) // 4))
    table, read = read_texts(lanes, facts, shape, HOMES)
    assert not table.difference(TABLE)
    assert read == routes


def test_each_client_speaks_for_itself_where_one_differs(rng: random.Random) -> None:
    """Texts of one length differ in their checksums alone."""
    clients = rng.randint(2, 4)
    odd = rng.randrange(1, clients)
    other = TensorTable.of({"a": 101, "b": 7}, {"a": 1, "b": 2})
    tables = [other if number == odd else TABLE for number in range(clients)]
    texts = [greeting_text(table, default_routes(table, HOMES)) for table in tables]
    assert len({len(text) for text in texts}) == 1
    lanes, facts, shape = greeted(texts)
    assert shape == (clients, -(-len(texts[0]) // 4))
    with pytest.raises(ProxyError, match=f"clients {odd} and 0 registered different tensors"):
        read_texts(lanes, facts, shape, HOMES)


@pytest.mark.parametrize("text", [b"[" * 100_000, b"{}", b"5", b'{"table": {"tensors": [["a", 1e999, 0]]}}'])
def test_a_greeting_of_something_else_is_refused(text: bytes) -> None:
    lanes, facts, shape = greeted([text])
    with pytest.raises(ProxyError, match=r"greets with something else|sent a table that is none"):
        read_texts(lanes, facts, shape, HOMES)
