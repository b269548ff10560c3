"""Routing, partition and dual synchronization against brute force, and the table of deadlocks."""

from __future__ import annotations

import math
import random
from itertools import permutations, product

import pytest

from catchment.host.proxy import (
    DualCosts,
    LinkCurve,
    ProxyError,
    ProxyGroup,
    TensorTable,
    better,
    dual_plan,
    partition,
    partition_threshold,
    route,
)
from catchment.sim.golden.proxies import Policy, can_get_stuck

GB = 1e9
NEAR, FAR = "local", "remote"


def _noisy(link: LinkCurve, rng: random.Random, share: float) -> LinkCurve:
    return LinkCurve(tuple((size, seconds * rng.uniform(1 - share, 1 + share)) for size, seconds in link.points))


def _measured(latency: float, rate: float) -> LinkCurve:
    return LinkCurve.linear(latency, rate, tuple(1 << bits for bits in range(10, 27, 2)))


def test_the_threshold_is_where_the_curves_cross_for_good(rng: random.Random) -> None:
    for _ in range(50):
        near = _measured(rng.uniform(1e-6, 5e-6), rng.uniform(1, 5) * GB)
        far = _measured(rng.uniform(6e-6, 50e-6), rng.uniform(6, 20) * GB)
        found = route({NEAR: near, FAR: far})
        assert (found.latency, found.bandwidth) == (NEAR, FAR)
        assert far.seconds(found.threshold) <= near.seconds(found.threshold)
        assert far.seconds(found.threshold - 1) > near.seconds(found.threshold - 1)
        for size in (found.threshold, 10 * found.threshold, 1 << 30):
            assert found.proxy(size) == FAR
            assert far.seconds(size) <= near.seconds(size)
        assert found.proxy(found.threshold - 1) == NEAR


def test_noise_of_a_measurement_moves_the_threshold_by_less_than_twice(rng: random.Random) -> None:
    near, far = _measured(2e-6, 4 * GB), _measured(40e-6, 16 * GB)
    clean = route({NEAR: near, FAR: far}).threshold
    off = []
    for _ in range(100):
        found = route({NEAR: _noisy(near, rng, 0.1), FAR: _noisy(far, rng, 0.1)}).threshold
        off.append(max(found / clean, clean / found))
    assert sorted(off)[80] < 2


def test_the_papers_three_machines() -> None:
    """Figures 8 and 15: a V100 reads remote memory faster than its own, a P100 slower, a T4 as fast."""
    v100 = route({NEAR: _measured(1e-6, 9 * GB), FAR: _measured(3e-6, 16 * GB)})
    assert (v100.proxy(1 << 10), v100.proxy(64 << 20)) == (NEAR, FAR)
    p100 = route({NEAR: _measured(1e-6, 25 * GB), FAR: _measured(3e-6, 18 * GB)})
    assert {p100.proxy(1 << bits) for bits in range(30)} == {NEAR}
    t4 = route({NEAR: _measured(1e-6, 12 * GB), FAR: _measured(1.01e-6, 12.1 * GB)}, within=0.05)
    assert {t4.proxy(1 << bits) for bits in range(30)} == {NEAR}
    assert t4.threshold == 0


def test_shards_are_as_small_as_the_link_is_at_its_full_rate(rng: random.Random) -> None:
    for _ in range(50):
        link = _noisy(_measured(10 ** rng.uniform(-6, -4), rng.uniform(1, 20) * GB), rng, 0.05)
        threshold = partition_threshold(link)
        rates = {size: size / seconds for size, seconds in link.points}
        full = [size for size, rate in rates.items() if rate >= 0.95 * max(rates.values())]
        assert threshold == min(full)
        size = rng.randint(1, 100 << 20)
        bounds = partition(size, threshold)
        assert [start for start, _ in bounds] == [0, *(stop for _, stop in bounds[:-1])]
        assert bounds[-1][1] == size
        lengths = [stop - start for start, stop in bounds]
        assert max(lengths) - min(lengths) <= 128
        assert all(start % 64 == 0 for start, _ in bounds)
        if size >= threshold:
            assert threshold - 64 <= min(lengths)
            assert max(lengths) < 2 * threshold + 64
        else:
            assert len(bounds) == 1


def _costs(rng: random.Random) -> DualCosts:
    backward = 10 ** rng.uniform(-2, 0)
    rates = [10 ** rng.uniform(8, 10.5) for _ in range(3)]
    return DualCosts(backward / 2, backward, rng.randint(2, 16), *rates)


def test_the_best_division_is_the_least_of_all(rng: random.Random) -> None:
    for _ in range(50):
        costs, total = _costs(rng), 10 ** rng.uniform(6, 10)
        best = costs.best(total)
        assert 0 <= best <= total
        step = costs.seconds(best, total)
        assert step <= min(costs.seconds(total * at / 2000, total) for at in range(2001)) * (1 + 1e-9)


def test_a_plan_of_whole_layers_is_the_best_of_all_cuts(rng: random.Random) -> None:
    for _ in range(50):
        sizes = [rng.randint(1, 1 << 28) for _ in range(rng.randint(1, 30))]
        costs = _costs(rng)
        plan = dual_plan(sizes, costs)
        assert plan.proxied == sum(sizes[plan.first :]), "the last layers, which backward produces first"
        assert plan.seconds == min(costs.seconds(sum(sizes[at:]), sum(sizes)) for at in range(len(sizes) + 1))
        assert not better(plan, plan.seconds)
        assert not better(plan, plan.seconds / 0.98)
        assert better(plan, plan.seconds / 0.96)


def test_with_the_papers_numbers_the_proxies_take_nearly_everything() -> None:
    bert = 1.2 * GB
    v100 = DualCosts(0.06, 0.12, 4, 9 * GB, 16 * GB)
    assert v100.best(bert) == bert
    assert v100.seconds(bert, bert) == pytest.approx(0.18, abs=0.005)
    assert v100.seconds(0, bert) == pytest.approx(0.38, abs=0.005)
    equal = DualCosts(0.1, 0.2, 4, 8 * GB, 8 * GB)
    assert equal.best(bert) / bert == pytest.approx(0.944, abs=0.001)
    assert DualCosts(0.1, 0.2, 4, 8 * GB, 8 * GB, to_proxy=GB).best(bert) < equal.best(bert)


def test_bad_numbers_are_named() -> None:
    for call, says in (
        (lambda: route({}), "without a link"),
        (lambda: route({"a": _measured(1e-6, GB)}, within=1.0), "within 1.0"),
        (lambda: LinkCurve(((5, 1.0),)), "two sizes or more"),
        (lambda: LinkCurve(((5, 1.0), (6, math.nan))), "positive numbers"),
        (lambda: partition(0, 5), "both from 1 on"),
        (lambda: dual_plan([], _costs(random.Random(0))), r"layers of \[\] bytes"),
        (lambda: dual_plan([10**400], _costs(random.Random(0))), r"a layer of 1000.* bytes: at most 11529"),
        (lambda: LinkCurve(((5, 1.0), (10**400, 2.0))), "a link measured at 1000.* bytes: at most 11529"),
        (lambda: TensorTable.of({"w": 10**400}, 0), "tensor w has 1000.* elements: at most"),
        (lambda: TensorTable.from_facts({"tensors": [["w", math.inf, 0]], "shard_bytes": 1}), "a table that is none"),
        (lambda: dual_plan([-5, 10], _costs(random.Random(0))), r"layers of \[-5, 10\] bytes"),
        (lambda: DualCosts(0, 0, 1, 1, 1), "two workers or more"),
        (lambda: DualCosts(math.inf, 0, 2, 1, 1), "seconds from 0 on"),
        (lambda: ProxyGroup((1,), 1, bytes(16)), r"addresses are HOST:PORT"),  # type: ignore[arg-type]  of a file
        (lambda: ProxyGroup(("a:1",), 1, bytes(16), timeout=1e30), "at most 100000000 s"),
        (lambda: ProxyGroup(("a:1",), 1.5, bytes(16)), r"1\.5 clients.*give whole numbers"),  # type: ignore[arg-type]
        (lambda: ProxyGroup(("a:1",), 10**9, bytes(16)), "1000000000 clients, 1 groups: at most 65536 of each"),
        (lambda: ProxyGroup(("a:1",), 1, bytes(16), groups=10**9), "1 clients, 1000000000 groups: at most 65536"),
        (lambda: DualCosts(0, 0, 2, 0, 1), "rates are positive"),
    ):
        with pytest.raises(ProxyError, match=says):
            call()


@pytest.mark.parametrize(
    ("policy", "one_order", "all_orders"),
    [(Policy.FIRST_COME, 62, 2292), (Policy.FIFO_PER_CLIENT, 0, 768), (Policy.BY_TENSOR, 0, 0)],
)
def test_which_queues_get_stuck(policy: Policy, one_order: int, all_orders: int) -> None:
    """Two clients, two proxies, three tensors: all 64 routings, and all 36 pairs of orders of each."""
    tables = list(product(product((0, 1), repeat=3), repeat=2))
    orders = list(permutations(range(3)))
    assert sum(can_get_stuck(policy, (orders[0], orders[0]), table) for table in tables) == one_order
    stuck = sum(can_get_stuck(policy, pair, table) for pair in product(orders, repeat=2) for table in tables)
    assert stuck == all_orders
