"""What is of another type than is taken is refused by the collectives' own error, which says what is taken."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch

from catchment.host import Stream
from catchment.host.collectives import (
    Block,
    CollectiveError,
    Communicator,
    Delayed,
    Fixed,
    Rail,
    RailCost,
    RailPolicy,
    RailSet,
    Strided,
    Whole,
    calls,
)
from catchment.host.collectives.rail_split import split

STREAM = Stream(gen=1, workers=3)
WHERE: dict[str, Any] = {"local": ("127.0.0.1", 0), "switch": ("127.0.0.1", 51836), "port": "udp"}
MEMBER = {"sums": {"gen": 1, "workers": 3}, "wid": 0, "local": ["127.0.0.1", 0], "switch": ["127.0.0.1", 51836]}
FLOATS = np.zeros(6, np.float32)


@pytest.fixture(scope="module")
def rank() -> Iterator[Communicator]:
    """A rank that no other one hears: what it is refused is not sent."""
    with Communicator(STREAM, rank=0, **WHERE) as alone:
        yield alone
        assert alone.stats()["operations"] == 0


def refused(call: Callable[[], object], words: str) -> None:
    """`call` raises a CollectiveError of kind ``argument`` with these words."""
    with pytest.raises(CollectiveError) as caught:
        call()
    assert caught.value.kind == "argument"
    assert words in str(caught.value)


METHODS: dict[str, Callable[..., object]] = {
    "all_reduce": lambda rank, **options: rank.all_reduce(FLOATS.copy(), **options),
    "reduce": lambda rank, **options: rank.reduce(FLOATS.copy(), **{"root": 0, **options}),
    "broadcast": lambda rank, **options: rank.broadcast(FLOATS.copy(), **{"root": 0, **options}),
    "reduce_scatter": lambda rank, **options: rank.reduce_scatter(FLOATS, np.zeros(2, np.float32), **options),
    "all_gather": lambda rank, **options: rank.all_gather(FLOATS, np.zeros(18, np.float32), **options),
    "barrier": lambda rank, **options: rank.barrier(**options),
    "coalesced": lambda rank, **options: rank.coalesced(**options),
}
_OF_ALL: list[tuple[dict[str, Any], str]] = [
    ({"tag": 1.5}, "tag 1.5: give a whole number, 0..2**32-1"),
    ({"tag": "1"}, "tag '1': give a whole number, 0..2**32-1"),
    ({"tag": ""}, "tag '': give"),
    ({"tag": None}, "tag None: give"),
    ({"tag": True}, "tag True: give"),
    ({"tag": np.zeros(2, np.int64)}, "tag array([0, 0]): give"),
    ({"tag": 1 << 32}, "tag 4294967296: give a whole number, 0..2**32-1"),
    ({"priority": 0.0}, "priority 0.0: give a whole number, -(2**31-1)..2**31-1"),
    ({"priority": "high"}, "priority 'high': give"),
    ({"priority": 1 << 31}, "priority 2147483648: give"),
    ({"timeout": [3]}, "a timeout of [3]: give a number of seconds"),
]
_OF_SOME: list[tuple[str, dict[str, Any], str]] = [
    (method, {"root": root}, f"root {root!r}: give 0..size-1")
    for method in ("reduce", "broadcast")
    for root in (1.5, "0", None, True)
] + [
    (method, {"op": op}, f"op {op!r}: give one of sum, mean, max")
    for method in ("all_reduce", "reduce", "reduce_scatter")
    for op in (["sum"], None, 0)
]


@pytest.mark.parametrize(
    ("method", "options", "words"), [*((method, *wrong) for method in METHODS for wrong in _OF_ALL), *_OF_SOME]
)
def test_a_call_says_what_it_takes(rank: Communicator, method: str, options: dict[str, Any], words: str) -> None:
    refused(lambda: METHODS[method](rank, **options), words)


@pytest.mark.parametrize("scaling", [0, False, "block", STREAM])
def test_what_is_no_scaling_is_refused(rank: Communicator, scaling: Any) -> None:
    refused(lambda: rank.all_reduce(FLOATS.copy(), scaling=scaling), f"scaling {scaling!r}: give Block")
    refused(lambda: Communicator(STREAM, rank=0, scaling=scaling, **WHERE), f"scaling {scaling!r}: give Block")


def test_other_calls_say_what_they_take(rank: Communicator) -> None:
    refused(lambda: rank.beside(1.5), "elements 1.5: give 0..2**36-1")  # type: ignore[arg-type]
    for key in (None, "", "00", b"0" * 32, "0" * 31 + "x"):
        refused(lambda key=key: rank.take_key(1, key), "a key that is none: give 32 hexadecimal digits")  # type: ignore[misc]
    for term in (None, 1.5, True, -1, 1 << 64):
        refused(lambda term=term: rank.take_key(term, "00" * 16), f"the key of term {term}: give a whole number")  # type: ignore[misc]
    refused(lambda: rank.close(math.nan), "a linger of nan: give a number of seconds")


@pytest.mark.parametrize("places", [[0, 2], (2, 1), 2, "all"])
def test_places_that_are_none_are_refused(rank: Communicator, places: Any) -> None:
    words = f"places {places!r}: give a Strided, or None"
    refused(lambda: rank.reduce_scatter(FLOATS, np.zeros(2, np.float32), places=places), words)
    refused(lambda: rank.all_gather(np.zeros(2, np.float32), FLOATS.copy(), places=places), words)


@pytest.mark.parametrize("array", [[[1.0]], [1.0], None, 3, "x", object()])
def test_what_is_no_array_is_refused(rank: Communicator, array: Any) -> None:
    words = f"cannot transfer a {type(array).__name__}: "
    refused(lambda: rank.all_reduce(array), words)
    refused(lambda: rank.reduce(array, 1), words)
    refused(lambda: rank.broadcast(array, 0), words)
    refused(lambda: rank.reduce_scatter(array, FLOATS.copy()), words)
    refused(lambda: rank.all_gather(array, FLOATS.copy()), words)


@pytest.mark.parametrize("dtype", [object, [("a", np.int32), ("b", object)]])
def test_addresses_of_objects_are_not_sent(rank: Communicator, dtype: Any) -> None:
    array, words = np.zeros(3, dtype), "cannot transfer a ndarray of Python objects: they are addresses in this process"
    for root in (0, 1):
        refused(lambda root=root: rank.broadcast(array, root), words)  # type: ignore[misc]
    refused(lambda: rank.all_gather(array, np.zeros(9, dtype)), words)
    refused(lambda: rank.all_gather(np.zeros(24, np.uint8), array), words)


def test_whole_numbers_of_other_types_are_taken() -> None:
    for one in (np.uint32(7), np.int64(7), torch.tensor(7)):
        options: Any = calls.asked(one, None, one, 7)
        assert options == calls.asked(7, None, 7, 7)
        assert all(type(number) is int for number in options)
    zero: Any = np.int64(0)
    assert calls.asked(zero, None, zero) == calls.USUAL


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda: Fixed("3"), "Fixed.exponent '3': give -128..127"),
        (lambda: Fixed(1.5), "Fixed.exponent 1.5: give -128..127"),
        (lambda: Fixed(math.nan), "Fixed.exponent nan: give"),
        (lambda: Fixed(128), "Fixed.exponent 128: give"),
        (lambda: Fixed(3, packed="no"), "Fixed.packed 'no': give True or False"),
        (lambda: Block(packed=1), "Block.packed 1: give True or False"),
        (lambda: Whole(-129), "Whole.least -129: give"),
        (lambda: Whole(packed=None), "Whole.packed None: give"),
        (lambda: Delayed(5), "Delayed.name 5: give the tensor's name"),
        (lambda: Delayed("a", length=0), "Delayed.length 0: give a whole number from 1 on"),
        (lambda: Delayed("a", length=2.5), "Delayed.length 2.5: give"),
        (lambda: Delayed("a", margin=-1), "Delayed.margin -1: give a whole number from 0 on"),
        (lambda: Delayed("a", packed=0), "Delayed.packed 0: give"),
        (lambda: Strided(4.0, 2), "Strided.step 4.0: give a whole number"),
        (lambda: Strided(4, 2, True), "Strided.blocks True: give a whole number"),
    ],
)
def test_options_say_what_they_take(made: Callable[[], object], words: str) -> None:
    refused(made, words)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rank": 1.0}, "rank 1.0: give 0..size-1"),
        ({"rank": "1"}, "rank '1': give 0..size-1"),
        ({"window": 1.5}, "a window of 1.5: give 1..64"),
        ({"window": True}, "a window of True: give 1..64"),
        ({"place": "w1"}, "place 'w1': give the host's worker index"),
        ({"place": -1}, "place -1: give the host's worker index"),
        ({"port": None}, "a port None: give"),
        ({"timeout": True}, "a timeout of True: give a number of seconds"),
        ({"spin": True}, "a thread that looks for frames for True: give"),
        ({"absent": False}, "a switch that may be absent for False: give"),
        ({"switch_name": 5}, "a switch named 5: give"),
        ({"local": ("127.0.0.1", 1.5)}, "port 1.5: give"),
        ({"switch": ("127.0.0.1", True)}, "port True: give"),
    ],
)
def test_a_communicator_says_what_it_takes(options: dict[str, Any], words: str) -> None:
    refused(lambda: Communicator(STREAM, **{"rank": 0, **WHERE, **options}), words)


@pytest.mark.parametrize(
    "description",
    [
        None,
        [],
        "w1",
        {"parts": 5},
        {"parts": {"a": 5}},
        {"parts": {"a": {"rail": "a"}}},
        {**MEMBER, "sums": {"gen": 0, "workers": 3}},
        {**MEMBER, "local": 5},
    ],
)
def test_what_is_no_description_is_said(description: Any) -> None:
    refused(lambda: Communicator.of_job(description), "a description that is none of a member")


@pytest.mark.parametrize("several", [tuple, iter, lambda given: dict(enumerate(given)).values()])
def test_rails_and_their_costs_come_in_any_order_that_there_is(several: Callable[[Any], Any]) -> None:
    costs, times = [RailCost(1000, 2000), RailCost(3000, 1000)], [0, 5]
    assert split(several(costs), several(times), RailPolicy.PAPER, 600) == split(costs, times, RailPolicy.PAPER, 600)
    assert split(costs, np.array(times), RailPolicy.PAPER, 600) == split(costs, times, RailPolicy.PAPER, 600)  # type: ignore[arg-type]
    refused(lambda: RailSet(several([rail(rate=-1)]), rank=0), "rail a: a rate of -1 bit/s")
    refused(lambda: Communicator.of_job(MEMBER, rails=several(["a", "b"])), "rails a, b: job")
    Communicator.of_job(MEMBER, rails=several([])).close()


@pytest.mark.parametrize("several", [tuple, iter, lambda given: dict(enumerate(given)).values()])
def test_rails_of_a_group_of_jobs_come_in_any_order_that_there_is(several: Callable[[Any], Any]) -> None:
    parts = {name: {**MEMBER, "sums": {"gen": gen, "workers": 3}, "rail": name} for gen, name in enumerate("ab", 1)}
    for chosen in (["b"], ["b", "a"], []):
        with RailSet.of_job({"parts": parts}, rails=several(chosen)) as rails:
            assert [state.name for state in rails.rails()] == (chosen or ["a", "b"])
    refused(lambda: RailSet.of_job({"parts": parts}, rails=[["a"]]), "rails [['a']]: give the names of those to use")  # type: ignore[list-item]


@pytest.mark.parametrize("rails", [5, True, "a", [5], {"a"}])
def test_rails_of_a_job_are_named_in_a_list(rails: Any) -> None:
    refused(lambda: Communicator.of_job(MEMBER, rails=rails), f"rails {rails!r}: give the names of those to use")


@pytest.mark.parametrize("several", [None, 5, "a"])
def test_a_split_of_no_rails_is_refused(several: Any) -> None:
    refused(lambda: split(several, [0], RailPolicy.PAPER, 6), f"rails {several!r}: give a list")
    refused(lambda: split([RailCost(1, 1)], several, RailPolicy.PAPER, 6), f"costs of several rails {several!r}: give")
    refused(lambda: split([several], [0], RailPolicy.PAPER, 6), f"rails [{several!r}]: give a RailCost for each")


def test_a_worker_index_is_not_rounded() -> None:
    refused(lambda: Communicator.of_job({**MEMBER, "wid": 1.7}), "rank 1.7: give 0..size-1")


def rail(**options: Any) -> Rail:
    return Rail(**{"name": "a", "stream": STREAM, **WHERE, **options})


@pytest.mark.parametrize(
    ("rails", "options", "words"),
    [
        ([5], {}, "rail 5: give host.collectives.Rail objects"),
        ([rail(name=5)], {}, "rail Rail(name=5"),
        ([rail(rate=1e9)], {}, "rail a: a rate of 1000000000.0: give whole bits per second"),
        ([rail(rate=-1)], {}, "rail a: a rate of -1 bit/s: give whole bits per second"),
        ([rail()], {"policy": "waterfill"}, "policy 'waterfill': give a RailPolicy: WATERFILL"),
        ([rail()], {"policy": 99}, "policy 99: give a RailPolicy"),
        ([rail()], {"policy": True}, "policy True: give a RailPolicy"),
        ([rail()], {"scaling": 3}, "scaling 3: give Block"),
        ([rail()], {"job": 5}, "a job named 5: give its name"),
        (None, {}, "rails None: give several host.collectives.Rail objects"),
        (rail(), {}, "rails Rail(name='a'"),
        ("ab", {}, "rails 'ab': give several"),
        ([rail(ring=[])], {}, "rail a: a ring over []: give tcp or mptcp"),
        ([rail(control=5)], {}, "rail a: control is 5: give a RailPart, or None"),
        ([rail(spares=5)], {}, "rail a: spares 5: give a RailPart for each other rail's name"),
        ([rail(spares={"b": 5})], {}, "rail a: a spare for b is 5: give a RailPart"),
    ],
)
def test_a_set_of_rails_says_what_it_takes(rails: Any, options: dict[str, Any], words: str) -> None:
    refused(lambda: RailSet(rails, **{"rank": 0, **options}), words)


@pytest.mark.parametrize("elements", [-1, 1.5, "6", 1 << 36])
def test_a_split_of_no_operation_is_refused(elements: Any) -> None:
    with RailSet([rail()], rank=0) as rails:
        refused(lambda: rails.shares(elements), "give a whole number, 0..2**36-1")
        refused(lambda: rails.costs(elements), "give a whole number, 0..2**36-1")
    refused(lambda: split([RailCost(1, 1)], [0], RailPolicy.PAPER, elements), "give a whole number, 0..2**36-1")


@pytest.mark.parametrize("cost", [-1, 1.5, 1 << 32])
def test_a_cost_that_has_no_place_is_refused(cost: Any) -> None:
    refused(lambda: split([RailCost(cost, 1)], [0], RailPolicy.PAPER, 6), f"a cost of {cost}: give whole numbers")
    refused(lambda: split([RailCost(1, 1)], [cost], RailPolicy.PAPER, 6), f"a cost of {cost}: give whole numbers")
