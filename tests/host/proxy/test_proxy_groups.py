"""Proxies that synchronize among themselves: the sums that all clients get, on a ring and through the switch."""

from __future__ import annotations

import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from proxy_group import expected_sum, group_of, run_group, step

from catchment.host.collectives import Fixed
from catchment.host.proxy import Client, ProxyError, TensorTable
from catchment.sim.golden.sync_core import ring_sums
from catchment.sim.lab.shm_lab import ShmLab

Floats = npt.NDArray[np.float32]
EXPONENTS = {"first": 0, "second": -3, "third": 5}
SIZES = {"first": 1000, "second": 1, "third": 5003}
Gradients = list[dict[str, Floats]]
"""Results by step."""


def gradients(client: int, steps: int, rng: random.Random) -> Gradients:
    """Another client has other ones; some are larger than their exponent holds."""
    numbers = np.random.default_rng([rng.getrandbits(32), client])
    return [
        {n: (numbers.normal(size=size) * 0.5 * 2.0 ** EXPONENTS[n]).astype(np.float32) for n, size in SIZES.items()}
        for _ in range(steps)
    ]


def shuffled(rng: random.Random, values: Sequence[Any]) -> list[Any]:
    return rng.sample(list(values), len(values))


@pytest.mark.parametrize(("proxies", "clients", "groups"), [(1, 2, 1), (2, 2, 1), (3, 3, 2), (4, 8, 3)])
def test_every_client_gets_the_sum(proxies: int, clients: int, groups: int, rng: random.Random) -> None:
    """Clients push in orders of their own, and to proxies of their own choice for each shard."""
    steps = 4
    table = TensorTable.of(SIZES, EXPONENTS, shard_bytes=rng.choice([256, 4096, 1 << 20]))
    data = [gradients(client, steps, rng) for client in range(clients)]
    orders = [[shuffled(rng, list(SIZES)) for _ in range(steps)] for _ in range(clients)]
    routes = [[rng.randrange(proxies) for _ in table.shards] if rng.random() < 0.7 else None for _ in range(clients)]

    def work(client: Client, number: int) -> Gradients:
        return [step(client, data[number][at], orders[number][at]) for at in range(steps)]

    with group_of(proxies, clients, groups=groups) as group:
        found = run_group(group, table, work, routes=routes)
    for at in range(steps):
        for name in SIZES:
            want = expected_sum([own[at][name] for own in data], EXPONENTS[name])
            for number in range(clients):
                assert (found[number][at][name].view(np.int32) == want.view(np.int32)).all(), (number, at, name)


def test_ring_and_switch_give_the_bits_of_an_all_reduce_with_a_fixed_exponent(rng: random.Random) -> None:
    """What DDP does with `Fixed`; the proxies' job and the ranks' job run on one switch."""
    count = 3
    table = TensorTable.of(SIZES, EXPONENTS, shard_bytes=2048)
    data = [gradients(client, 2, rng) for client in range(count)]
    orders = [shuffled(rng, list(SIZES)) for _ in range(count)]

    def work(client: Client, number: int) -> Gradients:
        return [step(client, own, orders[number]) for own in data[number]]

    proxies, ranks = [f"x{i}" for i in range(count)], [f"r{i}" for i in range(count)]
    with ShmLab([*proxies, *ranks]) as lab, ExitStack() as exits, ThreadPoolExecutor(count) as threads:
        job = lab.allreduce(proxies, name="proxies")
        ports = [[exits.enter_context(lab.endpoint(job, host, timeout=120.0))] for host in proxies]
        with group_of(count, count, sync="switch") as group:
            by_switch = run_group(group, table, work, ports=ports)
        with group_of(count, count, sync="ring") as group:
            by_ring = run_group(group, table, work)
        summed = lab.allreduce(ranks, name="ranks")
        members = [exits.enter_context(lab.communicator(summed, host, timeout=120.0)) for host in ranks]

        def reduce(rank: int) -> Gradients:
            found = [{name: array.copy() for name, array in own.items()} for own in data[rank]]
            for own in found:
                for name, array in own.items():
                    members[rank].all_reduce(array, scaling=Fixed(EXPONENTS[name])).wait()
            return found

        by_ranks = list(threads.map(reduce, range(count)))
    for number in range(count):
        for at in range(2):
            for name in SIZES:
                bits = by_ranks[number][at][name].view(np.int32)
                assert (by_switch[number][at][name].view(np.int32) == bits).all(), (number, at, name)
                assert (by_ring[number][at][name].view(np.int32) == bits).all(), (number, at, name)


def test_a_ring_sums_fp32_in_the_order_of_its_cores(rng: random.Random) -> None:
    count, elements = 3, 700
    table = TensorTable.of({"w": elements}, None, shard_bytes=1 << 20)
    numbers = np.random.default_rng(rng.getrandbits(32))
    values = np.ldexp(numbers.normal(size=(count, elements)), numbers.integers(-20, 20, (count, elements)))
    data = values.astype(np.float32)

    def work(client: Client, number: int) -> Floats:
        return step(client, {"w": data[number]}, ["w"])["w"]

    with group_of(count, count) as group:
        found = run_group(group, table, work)
    expected = ring_sums(data)
    for own in found:
        assert (own.view(np.int32) == expected.view(np.int32)).all()


def test_orders_that_differ_never_get_stuck(rng: random.Random) -> None:
    """COARSE, Figure 10, on real proxies with one group of cores: the paper's queues get stuck in a third of these."""
    steps = 300
    names = {"a": 3, "b": 2, "c": 1}
    table = TensorTable.of(names, 4)
    routes = [[rng.randrange(2) for _ in table.shards] for _ in range(2)]
    orders = [[shuffled(rng, list(names)) for _ in range(steps)] for _ in range(2)]

    def work(client: Client, number: int) -> float:
        total = 0.0
        for order in orders[number]:
            found = step(client, {n: np.full(size, number + 1.0, np.float32) for n, size in names.items()}, order)
            total += sum(float(array.sum()) for array in found.values())
        return total

    with group_of(2, 2) as group:
        assert run_group(group, table, work, routes=routes) == [steps * 6 * 3.0] * 2


def test_a_switch_refuses_what_it_cannot_add() -> None:
    table = TensorTable.of({"w": 4}, None)

    def work(client: Client, number: int) -> None:
        del number
        step(client, {"w": np.ones(4, np.float32)}, ["w"])

    with ShmLab(["x0", "x1"]) as lab, ExitStack() as exits:
        job = lab.allreduce(["x0", "x1"])
        ports = [[exits.enter_context(lab.endpoint(job, host))] for host in ("x0", "x1")]
        with group_of(2, 2, sync="switch") as group, pytest.raises(ProxyError, match="a switch adds integers"):
            run_group(group, table, work, ports=ports)
