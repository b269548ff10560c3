"""A group that cannot be made: every rank hears why, whatever failed, and nobody keeps a place in its job."""

from __future__ import annotations

import copy
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from catchment.host.collectives import CollectiveError
from catchment.host.membership import MembershipError
from catchment.host.torch.distributed import controlled_host, creation, shared_host
from catchment.host.torch.distributed.agreement import Agreement
from catchment.host.torch.distributed.seat import Seat
from catchment.host.torch.distributed.settings import ControllerAccess, Settings

ERRORS = [CollectiveError("no network device on h0", kind="system"), OSError("no memory"), ZeroDivisionError("chance")]


@pytest.fixture(params=ERRORS, ids=lambda error: type(error).__name__)
def error(request: pytest.FixtureRequest) -> Exception:
    """One that has not been raised before."""
    return cast("Exception", copy.copy(request.param))


class Ranks:
    """Two ranks' agreement, in which rank 1 says what it is given to say, or an error keeps it silent."""

    rank, size = 0, 2
    store = None

    def __init__(self, **others: Any) -> None:
        self.said: dict[str, Any] = {}
        self._others = others

    def of_all(self, key: str, own: Any) -> list[Any]:
        self.said[key] = own
        other = self._others[key.replace(" ", "_")]
        if isinstance(other, Exception):
            raise other
        return [own, other]

    def await_readers(self, _: str) -> None:
        pass


class Place:
    """A seat in a job, whose communicator opens or fails."""

    name, host, address = "job", "h0", None

    def __init__(self, error: Exception | None = None) -> None:
        self.ended: list[str] = []
        self._error = error

    def open(self, **_: Any) -> Any:
        if self._error is not None:
            raise self._error
        return SimpleNamespace(rank=0, close=lambda _: self.ended.append("closed"))

    def watch(self, _: Any) -> None:
        pass

    def leave(self) -> None:
        self.ended.append("left")


def opened(ranks: Ranks, take: Callable[[], Any]) -> Any:
    return creation._open(
        cast("Agreement", ranks), Settings(), timedelta(seconds=1), cast("Callable[[], Seat | None]", take)
    )


def test_a_rank_that_cannot_open_leaves_its_place_and_tells_the_others(error: Exception) -> None:
    ranks, place = Ranks(places={"worker": 1, "host": "h1"}), Place(error)
    with pytest.raises(type(error)) as raised:
        opened(ranks, lambda: place)
    assert raised.value is error
    assert str(error) in ranks.said["places"]["failed"]
    assert place.ended == ["left"]


def test_a_rank_that_finds_no_place_tells_the_others(error: Exception) -> None:
    def take() -> None:
        raise error

    ranks = Ranks(places={"worker": 1, "host": "h1"})
    with pytest.raises(type(error)):
        opened(ranks, take)
    assert str(error) in ranks.said["places"]["failed"]


@pytest.mark.parametrize(
    "other", [{"failed": "no device"}, CollectiveError("rank 1 has not come", kind="missing")], ids=["told", "silent"]
)
def test_a_rank_whose_peer_fails_gives_its_place_up(other: Any) -> None:
    place = Place()
    with pytest.raises(CollectiveError, match=r"no device|has not come"):
        opened(Ranks(places=other), lambda: place)
    assert place.ended == ["closed", "left"]


def test_a_group_that_is_made_keeps_its_place() -> None:
    place = Place()
    group, address = opened(Ranks(places={"worker": 1, "host": "h1"}), lambda: place)
    assert group is not None and address is None
    assert place.ended == []


# ---- of a host that joins the controller's job for its ranks


@pytest.fixture
def left(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a membership that is joined has noted of its end; its host takes a place of its own for its ranks."""
    ended: list[str] = []
    member = {"job": "job", "host": "h0", "local": ["127.0.0.1", 1], "wid": 0}
    description = SimpleNamespace(as_member=lambda: member, epoch=1)
    membership = SimpleNamespace(session="secret", leave=lambda: ended.append("left"))
    monkeypatch.setattr(controlled_host, "join", lambda *_: membership)
    monkeypatch.setattr(controlled_host, "settled", lambda *_: SimpleNamespace(description=description))
    monkeypatch.setattr(shared_host, "take", lambda *_: Place())
    return ended


def take(ranks: Ranks) -> Seat:
    access = ControllerAccess(address="controller:1", job="job", host="h0", token="", certificates=Path())
    return controlled_host.take(cast("Agreement", ranks), access, timeout=1.0, absent=1.0, command=None)


def failing(error: Exception) -> Callable[..., Any]:
    def fail(*_: object) -> None:
        raise error

    return fail


def test_a_host_whose_ranks_find_their_switch_stays_a_member(left: list[str]) -> None:
    take(Ranks(hosts_of_ranks="h0", members={}))
    assert left == []


def test_a_host_whose_ranks_find_no_switch_leaves_the_job(
    left: list[str], monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setattr(shared_host, "take", failing(error))
    with pytest.raises(type(error)):
        take(Ranks(hosts_of_ranks="h0", members={}))
    assert left == ["left"]


def test_a_host_whose_ranks_are_silent_leaves_the_job(left: list[str]) -> None:
    with pytest.raises(CollectiveError, match="has not come"):
        take(Ranks(hosts_of_ranks="h0", members=CollectiveError("rank 1 has not come", kind="missing")))
    assert left == ["left"]


@pytest.mark.parametrize("step", ["join", "settled"])
def test_a_host_that_cannot_join_tells_the_others_why(
    left: list[str], monkeypatch: pytest.MonkeyPatch, step: str, error: Exception
) -> None:
    monkeypatch.setattr(controlled_host, step, failing(error))
    assert_told(str(error))
    assert left == (["left"] if step == "settled" else [])


def test_a_host_whose_job_does_not_come_together_tells_the_others_why(
    left: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(controlled_host, "settled", failing(MembershipError("h1 has not come")))
    assert_told("h1 has not come")
    assert left == ["left"]


def assert_told(why: str) -> None:
    ranks = Ranks(hosts_of_ranks="h0", members={})
    with pytest.raises(CollectiveError) as raised:
        take(ranks)
    assert why in ranks.said["members"]["failed"]["text"]
    assert raised.value.message.startswith("h0: ") and raised.value.peers == (0,)
