"""What proxies, clients and plans are given that cannot be is refused at once, with what is taken."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from catchment.host.proxy import (
    Client,
    DualCosts,
    HomeClient,
    LinkCurve,
    Proxy,
    ProxyError,
    ProxyGroup,
    SumHome,
    TensorTable,
    dual_plan,
    partition,
    route,
)
from catchment.host.proxy.channel import Flag
from catchment.host.proxy.sums import Handle, SumClient, checked_routes

NO_COUNT: list[Any] = [True, 1.5, math.nan, math.inf, -1, "3", None, [], b"3", np.float32(2)]
NO_NUMBER: list[Any] = [True, math.nan, -1, "3", None, [], b"3", 10**400]
SECRET = b"long enough to use"
GROUP = ProxyGroup(("nobody/is/here",), 2, SECRET)
TABLE = TensorTable.of({"w": 4, "v": 4}, 0)
COSTS = DualCosts(1, 1, 2, 1e9, 1e9)
LINK = LinkCurve.linear(1e-6, 1e9)
PORT: Any = object()
COUNTS: dict[str, Callable[[Any], object]] = {
    "ProxyGroup.clients": lambda count: ProxyGroup(("a/0",), count, SECRET),
    "ProxyGroup.groups": lambda count: ProxyGroup(("a/0",), 1, SECRET, groups=count),
    "ProxyGroup.snapshot_every": lambda count: ProxyGroup(
        ("a/0",), 1, SECRET, rule={"name": "sgd"}, snapshots=Path("a"), snapshot_every=count
    ),
    "LinkCurve.points": lambda count: LinkCurve(((1, 1e-6), (count, 1e-5))),
    "LinkCurve.of": lambda count: LinkCurve.of({1: 1e-6, tuple(count) if isinstance(count, list) else count: 1e-5}),
    "LinkCurve.linear": lambda count: LinkCurve.linear(1e-6, 1e9, (1, count)),
    "DualCosts.workers": lambda count: DualCosts(1, 1, count, 1e9, 1e9),
    "dual_plan": lambda count: dual_plan([5, count], COSTS),
    "partition.size": lambda count: partition(count, 64),
    "partition.threshold": lambda count: partition(64, count),
    "TensorTable.numel": lambda count: TensorTable.of({"w": count}, 0),
    "TensorTable.shard_bytes": lambda count: TensorTable.of({"w": 4}, 0, shard_bytes=count),
    "Client.number": lambda count: Client(GROUP, count, TABLE),
    "Client.routes": lambda count: Client(GROUP, 0, TABLE, [0, count if count != -1 else "-1"]),
    "Proxy.number": lambda count: Proxy(GROUP, count),
    "HomeClient.number": lambda count: HomeClient([PORT], count, 2, TABLE),
    "HomeClient.clients": lambda count: HomeClient([PORT], 0, count, TABLE),
    "SumHome.number": lambda count: SumHome(PORT, count, 2, 1),
    "SumHome.homes": lambda count: SumHome(PORT, 0, count, 1),
    "SumHome.clients": lambda count: SumHome(PORT, 0, 2, count),
}
NUMBERS: dict[str, Callable[[Any], object]] = {
    "ProxyGroup.timeout": lambda number: ProxyGroup(("a/0",), 1, SECRET, timeout=number),
    "LinkCurve.points": lambda number: LinkCurve(((1, 1e-6), (2, number))),
    "LinkCurve.linear.latency": lambda number: LinkCurve.linear(number, 1e9),
    "LinkCurve.linear.rate": lambda number: LinkCurve.linear(1e-6, number),
    "DualCosts.forward": lambda number: DualCosts(number, 1, 2, 1e9, 1e9),
    "DualCosts.backward": lambda number: DualCosts(1, number, 2, 1e9, 1e9),
    "DualCosts.among_workers": lambda number: DualCosts(1, 1, 2, number, 1e9),
    "DualCosts.among_proxies": lambda number: DualCosts(1, 1, 2, 1e9, number),
    "DualCosts.to_proxy": lambda number: DualCosts(1, 1, 2, 1e9, 1e9, number),
    "route.within": lambda number: route({"a": LINK}, within=number),
    "HomeClient.timeout": lambda number: HomeClient([PORT], 0, 2, TABLE, timeout=number),
}


class _Waiting(SumClient):
    """A client whose sums are all there."""

    def _submit(self, shard: int, flags: Flag) -> None: ...

    def _leave(self, *, midway: bool, steps: int, why: str) -> None: ...

    def _tell_others(self, error: ProxyError) -> None: ...


@pytest.mark.parametrize("made", COUNTS.values(), ids=COUNTS)
def test_what_is_no_count_is_refused(made: Callable[[Any], object]) -> None:
    for wrong in NO_COUNT:
        with pytest.raises(ProxyError):
            made(wrong)


@pytest.mark.parametrize("made", NUMBERS.values(), ids=NUMBERS)
def test_what_is_no_number_is_refused(made: Callable[[Any], object]) -> None:
    for wrong in NO_NUMBER:
        with pytest.raises(ProxyError):
            made(wrong)


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda: ProxyGroup("a:1", 1, SECRET), "proxies at 'a:1': give several; addresses are HOST:PORT"),
        (lambda: ProxyGroup(None, 1, SECRET), "proxies at None: give several"),
        (lambda: ProxyGroup(("a/0",), 1, "long enough to use"), "a secret that is a str: give bytes, at least 16"),
        (lambda: ProxyGroup(("a/0",), 1, None), "a secret that is a NoneType: give bytes"),
        (
            lambda: ProxyGroup(("a/0",), 1, SECRET, rule={"name": "sgd"}, snapshots="a"),
            "snapshots in 'a': give the Path",
        ),
        (lambda: ProxyGroup(("a/0",), 1, SECRET, timeout="60"), "1 clients, 1 groups, '60' s: positive numbers"),
        (lambda: LinkCurve(None), "a link measured at None: give pairs of bytes and seconds"),
        (lambda: LinkCurve(((1, 2, 3), (4, 5, 6))), "give pairs of bytes and seconds"),
        (lambda: LinkCurve.of([(1, 2)]), "give bytes -> seconds"),
        (lambda: dual_plan("12", COSTS), "a plan for layers of '12' bytes: give several whole numbers"),
        (lambda: dual_plan([1], None), "a plan at costs None: give DualCosts"),
        (lambda: route(None), "links None: give a LinkCurve by each proxy's name"),
        (lambda: route({"a": 5}), "give a LinkCurve by each proxy's name"),
        (
            lambda: ProxyGroup(("a/0",), 1, SECRET, rule={"name": "sgd"}, snapshots=Path("a"), snapshot_every=10**30),
            "snapshots in a every 1000.* steps: give a folder and a positive number",
        ),
        (lambda: partition(64 << 21, 64), "in 2097152 shards: at most 1048576: give larger shards"),
        (lambda: TensorTable(None), "a table of None: give a tuple of Registered"),
        (lambda: TensorTable.of({5: 4}, 0), "a tensor named 5: give a str"),
        (lambda: TensorTable.of({"w": 4}, 1.5), "tensor w: exponent 1.5: -128 to 127, or None"),
        (lambda: TensorTable.of({"w": 4}, True), "tensor w: exponent True: -128 to 127, or None"),
        (lambda: Client(None, 0, TABLE), "a client of the group None: give a ProxyGroup"),
        (lambda: Client(GROUP, 2, TABLE), "client 2 of 2: they count from 0"),
        (lambda: Client(GROUP, 0, {"w": 4}), "client 0: its tensors are {'w': 4}: give a TensorTable"),
        (lambda: Client(GROUP, 0, TABLE, [0]), r"routes \[0\] of 2 shards: give each of them the number of a proxy"),
        (lambda: Client(GROUP, 0, TABLE, 0), "routes 0 of 2 shards: give each of them"),
        (lambda: Proxy(None, 0), "a proxy of the group None: give a ProxyGroup"),
        (lambda: HomeClient(None, 0, 2, TABLE), "client 0 of 2 with the endpoints None: give an endpoint to each"),
        (lambda: HomeClient([PORT], 0, 2, TABLE, names=("a", "b")), "1 homes with the names .*: give each a name"),
        (lambda: HomeClient([PORT], 0, 2, TABLE, timeout=1e30), "a timeout of 1e.30: give seconds"),
    ],
)
def test_what_is_of_another_type_says_what_is_taken(made: Callable[[], object], words: str) -> None:
    with pytest.raises(ProxyError, match=words):
        made()


def test_numbers_of_other_types_are_taken_and_told() -> None:
    table = TensorTable.of({"w": np.int64(4)}, np.int8(3), shard_bytes=np.int32(64))
    assert TensorTable.from_facts(json.loads(json.dumps(table.facts()))) == table
    assert ProxyGroup(("a/0",), np.int64(2), SECRET, timeout=np.float32(0.5)).clients == 2
    assert DualCosts(0, 0, np.int16(2), 1, 1).to_proxy == math.inf
    assert ProxyGroup(("a/0",), 2, SECRET, timeout=Decimal(3)) == ProxyGroup(("a/0",), np.int8(2), SECRET, timeout=3)


def test_numbers_of_few_bits_do_not_wrap_around() -> None:
    sizes = [1 << 30] * 8
    assert dual_plan(list(np.array(sizes, np.int32)), COSTS) == dual_plan(sizes, COSTS)
    assert partition(np.int32(2**31 - 1), np.int32(1 << 20)) == partition(2**31 - 1, 1 << 20)
    tables = [
        TensorTable.of({"w": number(1 << 30)}, number(0), shard_bytes=number(1 << 30)) for number in (np.int32, int)
    ]
    assert tables[0] == tables[1] and tables[0].shards == tables[1].shards
    sizes, narrow = [200, 200, 100], DualCosts(0.1, 0.2, np.int8(100), np.uint8(200), np.int16(1 << 14))
    assert dual_plan(sizes, narrow) == dual_plan(sizes, DualCosts(0.1, 0.2, 100, 200, 1 << 14))
    link = LinkCurve([[np.uint8(10), 0.1], [np.uint8(200), 0.3]])
    wide = LinkCurve(((10, 0.1), (200, 0.3)))
    assert [link.seconds(size) for size in (1, 10, 99, 10**6)] == [wide.seconds(size) for size in (1, 10, 99, 10**6)]


def test_real_numbers_of_any_type_are_computed_with() -> None:
    costs = DualCosts(Decimal("0.5"), Fraction(1, 4), 2, Decimal(10**9), np.float16(1000), Decimal("inf"))
    assert dual_plan([5, 6], costs) == dual_plan([5, 6], DualCosts(0.5, 0.25, 2, 1e9, 1000.0))
    assert LinkCurve.linear(Decimal("0.5"), Fraction(8)) == LinkCurve.linear(0.5, 8.0)
    assert LinkCurve.of({1: Decimal("0.5"), 3: Fraction(3, 2)}).seconds(2) == 1.0


@pytest.mark.parametrize("several", [list, tuple, iter, np.array, lambda given: dict(enumerate(given)).values()])
def test_routes_sizes_and_homes_come_in_any_order_that_there_is(several: Callable[[list[Any]], Any]) -> None:
    assert checked_routes(several([1, 0]), 2) == (1, 0)
    assert dual_plan(several([5, 6]), COSTS) == dual_plan([5, 6], COSTS)
    with pytest.raises(ProxyError, match="tensor w: a switch adds integers"):  # beyond the homes and their names
        HomeClient(several([PORT, PORT]), 0, 2, TensorTable.of({"w": 4}, None), names=several(["a", "b"]))


@pytest.mark.parametrize("routes", [{0, 1}, {0: 1, 1: 0}, "01", b"01"])
def test_routes_without_an_order_are_refused(routes: Any) -> None:
    with pytest.raises(ProxyError, match="of 2 shards: give each of them the number of a proxy"):
        checked_routes(routes, 2)


def test_a_group_file_is_named_with_what_is_wrong_in_it(tmp_path: Path) -> None:
    path = tmp_path / "group.json"
    path.write_text(json.dumps({"addresses": ["a/0"], "clients": True, "secret": "long enough to use"}))
    with pytest.raises(ProxyError, match=r"group\.json: True clients, 1 groups.*: give whole numbers"):
        ProxyGroup.read(path)


@pytest.mark.parametrize("timeout", [math.nan, -1, "3", True, []])
def test_a_wait_of_no_time_is_refused(timeout: Any) -> None:
    handle = Handle(_Waiting(0, 1, TABLE, 5.0), 0)
    with pytest.raises(ProxyError, match="give a number of seconds from 0 on"):
        handle.wait(timeout)


@pytest.mark.parametrize("timeout", [None, 0, 1e30, math.inf, np.float32(2), np.float32(math.inf), Decimal(2)])
def test_a_wait_of_any_time_is_taken(timeout: Any) -> None:
    client, waited = _Waiting(0, 1, TABLE, 5.0), []

    class Noting(threading.Condition):
        def wait_for(self, predicate: Callable[[], object], timeout: float | None = None) -> Any:
            waited.append(timeout)
            return super().wait_for(predicate, timeout)

    client._changed = Noting()
    Handle(client, 0).wait(timeout)
    assert type(waited[0]) is float and 0 <= waited[0] <= threading.TIMEOUT_MAX
