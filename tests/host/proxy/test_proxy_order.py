"""The pure parts of a proxy: which shard is next, which parts it takes, and in which order it works."""

from __future__ import annotations

import random
import threading

import numpy as np
import pytest

from catchment.host.proxy.channel import Flag
from catchment.host.proxy.ending import Ending
from catchment.host.proxy.errors import ProxyError
from catchment.host.proxy.leader import Go, Leader
from catchment.host.proxy.parts import Parts
from catchment.host.proxy.turns import Turns


def test_a_leader_says_what_all_have_and_the_first_layer_of_the_earliest_step_first(rng: random.Random) -> None:
    proxies, shards, steps, window = rng.randint(2, 4), 5, 3, rng.randint(1, 3)
    leader = Leader(proxies, window)
    ready: set[tuple[int, int]] = set()
    said: list[Go] = []
    under_way = 0
    todo = [(step, shard, proxy) for step in range(steps) for shard in range(shards) for proxy in range(proxies)]
    rng.shuffle(todo)
    heard: dict[tuple[int, int], int] = {}
    while todo or under_way:
        if todo and (not under_way or rng.random() < 0.7):
            step, shard, proxy = todo.pop()
            heard[step, shard] = heard.get((step, shard), 0) + 1
            if heard[step, shard] == proxies:
                ready.add((step, shard))
            now = leader.ready(proxy, shard, step, proxy & 1)
        else:
            under_way -= 1
            now = leader.done()
        for go in now:
            assert (go.step, go.shard) == min(ready)
            ready.remove((go.step, go.shard))
            assert go.flags == 1
            under_way += 1
        said += now
        assert under_way == min(window, under_way + len(ready))
    assert [go.number for go in said] == list(range(shards * steps))


def test_a_proxy_that_is_ready_twice_is_named() -> None:
    leader = Leader(2, 4)
    assert leader.ready(1, 0, 0) == []
    with pytest.raises(ProxyError, match="proxy 1 is ready twice for shard 0 of step 0"):
        leader.ready(1, 0, 0)


def test_turns_come_in_the_order_of_their_numbers(rng: random.Random) -> None:
    turns = Turns()
    gos = [Go(number, rng.randrange(9), 0, 0) for number in range(20)]
    for go in rng.sample(gos, len(gos)):
        turns.put(go)
    assert [turns.take() for _ in gos] == gos
    turns.end()
    assert turns.take() is None


@pytest.mark.parametrize(
    ("shard", "step", "client", "size", "says"),
    [
        (2, 0, 0, 12, "client 0 pushes shard 2 of a table that has 2"),
        (-1, 0, 0, 12, "client 0 pushes shard -1 of a table that has 2"),
        (1, 0, 1, 20, "client 1 pushes shard 1 to a proxy that its routes do not name for it"),
        (0, 1, 0, 12, "client 0 pushes shard 0 of step 1: its step 0 is next"),
        (0, 0, 0, 8, "client 0 pushes 8 bytes of shard 0, which has 12"),
        (0, 0, 0, 16, "client 0 pushes 16 bytes of shard 0, which has 12"),
    ],
)
def test_a_part_that_nobody_expects_is_refused(shard: int, step: int, client: int, size: int, says: str) -> None:
    parts = Parts([frozenset({0, 1}), frozenset({0})], [3, 5], [np.int32, np.float32])
    with pytest.raises(ProxyError, match=says):
        parts.check(shard, step, client, size)


def test_parts_are_summed_by_step_whatever_order_they_come_in(rng: random.Random) -> None:
    clients, steps = 3, 4
    parts = Parts([frozenset(range(clients))], [6], [np.int32])
    for step in range(steps):
        total = np.zeros(6, np.int32)
        for number, client in enumerate(rng.sample(range(clients), clients)):
            part = parts.check(0, step, client, 24)
            part[:] = [rng.randrange(-(2**30), 2**30) for _ in range(6)]
            total += part
            flags = Flag.NOT_FINITE if client == step else Flag(0)
            assert parts.add(0, step, client, part, flags) == (number == clients - 1)
        assert parts.flags(0) == (Flag.NOT_FINITE if step < clients else 0)
        found, summed = parts.take(0)
        assert found == step and np.array_equal(summed, total)
        assert not parts.complete(0)


def test_a_shard_that_no_client_routes_here_is_zeros_at_once() -> None:
    parts = Parts([frozenset()], [2], [np.float32])
    assert parts.complete(0)
    assert parts.take(0)[1].tolist() == [0.0, 0.0]


def test_a_client_that_has_ended_is_named_when_another_goes_on() -> None:
    parts = Parts([frozenset({0, 1})], [1], [np.int32])
    assert not parts.add(0, 0, 0, parts.check(0, 0, 0, 4))
    parts.end(0, 1)
    assert parts.add(0, 0, 1, parts.check(0, 0, 1, 4))
    parts.take(0)
    with pytest.raises(ProxyError, match="client 0 ended after 1 steps, but client 1 pushes in step 1"):
        parts.add(0, 1, 1, parts.check(0, 1, 1, 4))


def test_a_client_that_ends_after_other_steps_than_it_pushed_is_named() -> None:
    parts = Parts([frozenset({0, 1}), frozenset({1})], [1, 1], [np.int32] * 2, first=4)
    parts.add(0, 4, 0, parts.check(0, 4, 0, 4))
    for steps in (4, 6):
        with pytest.raises(ProxyError, match=f"client 0 ends after {steps} steps, but its step 5 of shard 0 is next"):
            parts.end(0, steps)
    parts.end(0, 5)


def test_a_proxy_serves_until_it_has_finished_what_all_clients_had(monkeypatch: pytest.MonkeyPatch) -> None:
    ending, asked = Ending(clients=2, peers=0), list[bool]()
    monkeypatch.setattr(ending._changed, "wait_for", lambda over: asked.append(bool(over())))

    def look() -> bool:
        ending.await_service(first=3, shards=2)
        return asked[-1]

    for _ in range(3):
        ending.sum_finished()
    assert not look()
    ending.client_left(0, 5)
    assert not look()
    ending.client_left(1, 5)
    assert not look()  # two steps of two shards make four sums
    ending.sum_finished()
    assert look()


def test_a_proxy_waits_for_every_other_one() -> None:
    for said in range(4):
        ending = Ending(clients=1, peers=3)
        for _ in range(said):
            ending.proxy_left()
        ending.await_proxies(0.0)
        assert (ending.failure is None) == (said == 3)


def test_whoever_waits_for_the_end_is_woken() -> None:
    ending = Ending(clients=1, peers=1)

    def wait() -> None:
        ending.await_service(first=0, shards=1)
        ending.await_proxies(60.0)

    waiting = threading.Thread(target=wait)
    waiting.start()
    ending.client_left(0, 1)
    ending.sum_finished()
    ending.proxy_left()
    waiting.join(60.0)
    assert not waiting.is_alive()
    assert ending.failure is None


def test_whoever_waits_for_the_end_hears_of_the_first_failure_and_of_proxies_that_do_not_end() -> None:
    ending = Ending(clients=1, peers=1)
    ending.await_proxies(0.0)
    assert str(ending.failure).startswith("1 of 1 other proxies had not ended 0 s after the last client")
    ending.fail(ProxyError("a consequence"))
    ending.await_service(first=0, shards=1)
    assert str(ending.failure).startswith("1 of 1 other")
