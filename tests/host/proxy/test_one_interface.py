"""Proxies that synchronize among themselves, and homes that share the tensors: one interface, sums and errors alike."""

from __future__ import annotations

import random

import numpy as np
import pytest
from home_group import VARIANTS, run_homes, run_variant
from proxy_group import Floats, expected_sum, push_all, step

from catchment.host.proxy import HomeClient, ProxyError, SumClient, SumHome, TensorTable
from catchment.host.proxy.home_vectors import default_routes

EXPONENTS = {"first": 0, "second": -3, "third": 5}
SIZES = {"first": 1000, "second": 1, "third": 5003}
TABLE = TensorTable.of({"a": 100, "b": 7}, {"a": 1, "b": 2})

either = pytest.mark.parametrize("variant", VARIANTS)


@pytest.mark.parametrize(("homes", "clients"), [(1, 1), (2, 3), (3, 2)])
def test_sums_have_the_same_bits_whichever_way(homes: int, clients: int, rng: random.Random) -> None:
    """Clients push in orders of their own; the bits are those of integers added one after the other."""
    steps = 3
    table = TensorTable.of(SIZES, EXPONENTS, shard_bytes=rng.choice([256, 4096, 1 << 20]))
    numbers = np.random.default_rng(rng.getrandbits(32))
    data = [
        [{n: (numbers.normal(size=s) * 2.0 ** EXPONENTS[n]).astype(np.float32) for n, s in SIZES.items()}
         for _ in range(steps)]
        for _ in range(clients)
    ]  # fmt: skip
    orders = [[rng.sample(list(SIZES), len(SIZES)) for _ in range(steps)] for _ in range(clients)]

    def work(client: SumClient, number: int) -> list[dict[str, Floats]]:
        assert client.clients == clients
        return [step(client, data[number][at], orders[number][at]) for at in range(steps)]

    by_homes, by_proxies = (run_variant(variant, homes, clients, table, work) for variant in ("homes", "proxies"))
    for at in range(steps):
        for name, exponent in EXPONENTS.items():
            expected = expected_sum([own[at][name] for own in data], exponent)
            for number in range(clients):
                assert (by_homes[number][at][name].view(np.int32) == expected.view(np.int32)).all()
                assert (by_proxies[number][at][name].view(np.int32) == expected.view(np.int32)).all()


@either
def test_what_is_not_finite_at_one_client_is_nan_at_all(variant: str, rng: random.Random) -> None:
    """The others' shards keep their sums, and the next step is as ever."""
    count = rng.randint(2, 3)
    bad, place = rng.randrange(count), rng.randrange(64)
    table = TensorTable.of({"w": 128}, 3, shard_bytes=256)

    def work(client: SumClient, number: int) -> list[Floats]:
        found = []
        for at in range(2):
            own = np.full(128, number + 1.0, np.float32)
            if number == bad and at == 0:
                own[place] = rng.choice([np.nan, np.inf, -np.inf])
            found.append(step(client, {"w": own}, ["w"])["w"])
        return found

    for first, second in run_variant(variant, 2, count, table, work):
        assert np.isnan(first[:64]).all()
        assert not np.isnan(first[64:]).any()
        assert second == pytest.approx(count * (count + 1) / 2)


@either
def test_what_a_client_asks_for_wrongly_is_an_error_at_once(variant: str) -> None:
    def work(client: SumClient, number: int) -> float:
        del number
        one = np.ones(100, np.float32)
        for wrong, said in (
            (lambda: client.push("c", one), "tensor 'c' is not registered"),
            (lambda: client.pull("c", one), "tensor 'c' is not registered"),
            (lambda: client.pull("a", one), "tensor a was not pushed in step 0"),
            (lambda: client.push("b", one), "tensor b has 7 elements, 100 are given"),
            (lambda: client.push("a", one.astype(np.float64)), "give contiguous fp32"),
            (client.end_step, "step 0 ends without a, b"),
        ):
            with pytest.raises(ProxyError, match=said):
                wrong()
        push_all(client, TABLE)
        with pytest.raises(ProxyError, match="tensor a was pushed in step 0 already"):
            client.push("a", one)
        client.pull("a", one).wait()
        client.end_step()
        assert client.step == 1
        return float(one.sum())

    assert run_variant(variant, 2, 2, TABLE, work) == [200.0] * 2


@either
@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"a": 101, "b": 7}, r"tensor 0 is a \(10[01] elements"),
        ({"b": 7, "a": 100}, "tensor 0 is [ab]"),
        ({"a": 100}, "[12] tensors, [12] there"),
    ],
)
def test_clients_of_different_tables_are_named(variant: str, other: dict[str, int], said: str) -> None:
    def table(number: int) -> TensorTable:
        return TABLE if number == 0 else TensorTable.of(other, {"a": 1, "b": 2})

    with pytest.raises(ProxyError, match=f"clients [01] and [01] registered .*{said}"):
        run_variant(variant, 2, 2, table, lambda client, _: push_all(client, TABLE))


@either
def test_a_client_that_leaves_in_the_midst_of_a_step_is_named(variant: str) -> None:
    def work(client: SumClient, number: int) -> None:
        push_all(client, TABLE)
        if number == 1:
            raise InterruptedError
        client.end_step()
        push_all(client, TABLE)
        client.end_step()

    with pytest.raises(ProxyError, match=r"client 1 (left in the midst of|ended)"):
        run_variant(variant, 2, 2, TABLE, work)


@either
def test_a_client_that_ends_before_the_others_is_named(variant: str) -> None:
    def work(client: SumClient, number: int) -> None:
        for _ in range(2 - number):
            push_all(client, TABLE)
            client.end_step()

    with pytest.raises(ProxyError, match=r"client 1 ended( after 1 steps)?, but client 0 pushes in"):
        run_variant(variant, 2, 2, TABLE, work)


def test_a_home_that_is_gone_is_named() -> None:
    """Its process ends without a word; proxies that are killed are in test_proxy_failures.py."""

    def serve(home: SumHome) -> None:
        if home.number == 0:
            home.run()

    with pytest.raises(ProxyError, match=r"home 1 is gone, or another client does not come: "):
        run_homes(2, 2, TABLE, lambda client, _: push_all(client, TABLE), timeout=1.0, serve=serve)


def test_what_homes_cannot_do_is_refused() -> None:
    for table, routes, said in (
        (TensorTable.of({"w": 4}, None), None, "tensor w: a switch adds integers"),
        (TABLE, [[0, 2]], r"client 0 routes 2 shards to \['0', '2'\]: give each of them one of 1 homes"),
    ):
        with pytest.raises(ProxyError, match=said):
            run_homes(1, 1, table, lambda client, _: push_all(client, TABLE), routes or (), timeout=1.0)
    with pytest.raises(ProxyError, match="clients 1 and 0 route shards to different homes"):
        run_homes(2, 2, TABLE, lambda client, _: push_all(client, TABLE), [[0, 1], [1, 0]], timeout=1.0)
    with pytest.raises(ProxyError, match="client 2 of 2 with 0 homes"):
        HomeClient((), 2, 2, TABLE)
    with pytest.raises(ProxyError, match="home 2 of 2"):
        SumHome(None, 2, 2, 1)  # type: ignore[arg-type]


def test_default_routes_give_every_home_about_as_much(rng: random.Random) -> None:
    for _ in range(20):
        table = TensorTable.of({f"t{n}": rng.randint(1, 5000) for n in range(40)}, 0, shard_bytes=4096)
        homes = rng.randint(1, 5)
        routes = default_routes(table, homes)
        loads = [sum(s.stop - s.start for s, h in zip(table.shards, routes, strict=True) if h == home)
                 for home in range(homes)]  # fmt: skip
        assert max(loads) - min(loads) <= max(s.stop - s.start for s in table.shards)
