"""What ranks hear before there is a group: who has not come, and what one of them knows of a loss."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import torch.distributed as dist
from torch._C._distributed_c10d import TCPStore

from catchment.host.collectives import CollectiveError
from catchment.host.torch.distributed import creation
from catchment.host.torch.distributed.agreement import Agreement
from catchment.host.torch.distributed.companion_work import Lost

SHORT, LONG = 1.5, 60.0


@pytest.fixture(params=["memory", "file", "server"])
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Any]]:
    """Gives every rank a store of its own, which all lead to the same."""
    if request.param == "memory":
        shared = dist.HashStore()
        yield lambda: shared
    elif request.param == "file":
        yield lambda: dist.FileStore(str(tmp_path / "store"), -1)
    else:
        server = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        yield lambda: TCPStore("127.0.0.1", server.port, is_master=False)


def knows_of_nothing(_: int) -> Lost | None:
    return None


def attempt(
    stores: Callable[[], Any],
    ranks: Sequence[int],
    size: int,
    seconds: float,
    lost: Callable[[int], Lost | None] = knows_of_nothing,
) -> dict[int, Any]:
    """What each of the ranks that come gets: its agreement, or its error."""
    outcomes: dict[int, Any] = {}

    together = threading.Barrier(len(ranks))

    def come(rank: int) -> None:
        store, timeout = stores(), timedelta(seconds=seconds)
        together.wait(LONG)
        try:
            outcomes[rank] = Agreement(store, rank, size, timeout, lost(rank))
        except CollectiveError as error:
            outcomes[rank] = error

    threads = [threading.Thread(target=come, args=(rank,)) for rank in ranks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes


def test_all_that_come_hear_who_has_not(stores: Callable[[], Any]) -> None:
    outcomes = attempt(stores, [0, 1, 3], 5, SHORT)
    assert len(outcomes) == 3
    for error in outcomes.values():
        assert (error.kind, error.peers) == ("missing", (2, 4)), error
        assert str(error).startswith("ranks 2, 4 have not come"), error
        assert "nothing was heard within 1.5 s" in str(error)


def test_the_first_rank_is_missed_by_all_others(stores: Callable[[], Any]) -> None:
    outcomes = attempt(stores, [1, 2], 3, SHORT)
    assert [error.peers for error in outcomes.values()] == [(0,), (0,)]
    assert all("rank 0 has not come" in str(error) for error in outcomes.values())


def test_an_attempt_that_failed_is_nothing_to_the_next(stores: Callable[[], Any]) -> None:
    attempt(stores, [0, 1], 3, SHORT)
    outcomes = attempt(stores, [0, 1, 2], 3, LONG)
    assert all(isinstance(made, Agreement) for made in outcomes.values()), outcomes
    outcomes[0].store.set("said", "to all of this attempt")
    assert all(made.store.check(["said"]) for made in outcomes.values())


@pytest.mark.parametrize("knows", [0, 1])
def test_a_loss_that_a_rank_knows_ends_its_wait(stores: Callable[[], Any], knows: int) -> None:
    loss = CollectiveError("the process of rank 2 has ended", kind="missing", peers=(2,), hint="make it again")

    def lost(rank: int) -> Lost:
        return lambda _: loss if rank == knows else None

    errors = attempt(stores, [0, 1], 3, LONG if knows == 0 else SHORT, lost)
    told = [errors[0], errors[1]] if knows == 0 else [errors[1]]
    for error in told:
        assert (error.message, error.kind, error.peers, error.hint) == (loss.message, "missing", (2,), loss.hint)


@pytest.mark.parametrize(
    ("ranks", "lost", "matters"),
    [([0, 1], (2,), False), ([1, 2], (2,), True), ([], (2,), True), ([0, 1], (), False), ([], (), False)],
)
def test_a_loss_matters_to_the_groups_that_need_the_rank(
    ranks: list[int], lost: tuple[int, ...], matters: bool
) -> None:
    """A loss of no rank is one of the switch: a new group finds another."""

    class Whole:
        def lost(self, _: float) -> CollectiveError:
            return CollectiveError("it has ended", kind="missing" if lost else "unreachable", peers=lost)

    whole: Any = Whole()
    assert (creation._lost(whole, ranks, 0.0) is not None) == matters


def test_a_store_that_ends_is_not_waited_for() -> None:
    server = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    client = TCPStore("127.0.0.1", server.port, is_master=False)
    outcomes: list[Any] = []

    def come() -> None:
        try:
            Agreement(client, 1, 2, timedelta(seconds=LONG))
        except (CollectiveError, RuntimeError) as error:
            outcomes.append(error)

    waiting = threading.Thread(target=come)
    waiting.start()
    server.wait(["arrivals/1"], timedelta(seconds=LONG))
    del server
    waiting.join()
    assert "rank 0 has not come" in str(outcomes[0])
