"""Sends and receives of ranks that have not met: calls return, order is kept, and who does not come is named."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
import torch
import torch.distributed as dist

from catchment.host.collectives import CollectiveError
from catchment.host.torch.distributed.beside import Beside
from catchment.host.torch.distributed.companion import Companion
from catchment.host.torch.distributed.companion_work import Lost, nobody_lost
from catchment.host.torch.distributed.contacts import Contacts
from catchment.host.torch.distributed.ranks import RankOrder

LONG = 60.0


class Ranks:
    """Three ranks in this process, with a companion each and no switch."""

    def __init__(self, timeout: float) -> None:
        self._companions: list[Any] = [None] * 3
        store = dist.HashStore()

        def make(rank: int) -> None:
            self._companions[rank] = Companion(store, rank, 3, timedelta(seconds=timeout), "127.0.0.1", wanted=True)

        threads = [threading.Thread(target=make, args=(rank,)) for rank in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.beside = [Beside(companion, None, rank, 3) for rank, companion in enumerate(self._companions)]

    def close(self) -> None:
        for companion in self._companions:
            companion.close()


@pytest.fixture
def ranks(request: pytest.FixtureRequest) -> Iterator[Ranks]:
    timeout = getattr(request, "param", LONG)
    before = set(threading.enumerate())
    made = Ranks(timeout)
    yield made
    made.close()
    if timeout < LONG:  # a thread that gloo lets go while the interpreter exits would end the process
        for thread in set(threading.enumerate()) - before:
            if thread.name == "catchment-contact":
                thread.join(10 * timeout)


def value(number: float) -> list[torch.Tensor]:
    return [torch.full((4,), number)]


def test_what_is_called_before_the_other_rank_comes_is_in_order(ranks: Ranks) -> None:
    zero, one, _ = ranks.beside
    sent = [zero.send(value(number), 1, 0) for number in range(5)]
    heard = value(-1)
    sent.append(zero.receive(heard, 1, 0))
    assert not any(work.is_completed() for work in sent)
    for number in range(5):
        got = value(-1)
        one.receive(got, 0, 0).wait()
        assert got[0].tolist() == [number] * 4
    one.send(value(7), 0, 0).wait()
    assert all(work.wait(timedelta(seconds=LONG)) for work in sent)
    assert heard[0].tolist() == [7.0] * 4
    assert all(work.is_success() and work.exception() is None for work in sent)


def test_a_rank_that_waits_for_one_hears_another(ranks: Ranks) -> None:
    zero, one, two = ranks.beside
    heard, relayed = value(-1), value(-1)
    listening = zero.receive(heard, 1, 0)
    sent = [zero.send(value(3), 2, 0)]
    two.receive(relayed, 0, 0).wait()
    sent.append(two.send(relayed, 1, 0))
    got = value(-1)
    one.receive(got, 2, 0).wait()
    sent.append(one.send(got, 0, 0))
    for work in (listening, *sent):
        work.wait()
    assert heard[0].tolist() == [3.0] * 4


def test_a_receive_from_any_takes_no_message_of_one_before_it(ranks: Ranks) -> None:
    zero, one, _ = ranks.beside
    first, second = value(-1), value(-1)
    listening = zero.receive(first, 1, 0)
    taken: list[Any] = []
    calls = threading.Thread(target=lambda: taken.append(zero.receive(second, None, 0)))
    calls.start()
    sent = [one.send(value(number), 0, 0) for number in (1, 2)]
    calls.join(LONG)
    for work in (listening, *taken, *sent):
        work.wait()
    assert (first[0][0].item(), second[0][0].item(), taken[0]._source_rank()) == (1.0, 2.0, 1)


def test_a_receive_from_any_waits_for_none_with_another_tag(ranks: Ranks) -> None:
    zero, _, two = ranks.beside
    never = [zero.receive(value(-1), 1, 4), zero.send(value(5), 1, 0)]
    got = value(-1)
    listening = zero.receive(got, None, 0)
    two.send(value(6), 0, 0).wait()
    listening.wait()
    assert not any(work.is_completed() for work in never)
    assert got[0].tolist() == [6.0] * 4


@pytest.mark.parametrize("ranks", [0.5], indirect=True)
def test_a_rank_that_sends_nothing_is_named_with_the_call(ranks: Ranks) -> None:
    """Each waits for the next one: whoever has the least address opens its connection, who has the largest does not."""
    for rank, one in enumerate(ranks.beside):
        work = one.receive(value(0), (rank + 1) % 3, 9)
        said = f"recv from rank {(rank + 1) % 3}, tag 9: "
        with pytest.raises(CollectiveError, match=rf"{said}.* in 0\.5 s") as caught:
            work.wait()
        assert (caught.value.kind, caught.value.peers) == ("missing", ((rank + 1) % 3,))
        with pytest.raises(RuntimeError, match=said):
            work.wait(timedelta(seconds=0.1))
    with pytest.raises(RuntimeError, match="send to rank 2, tag 1: it has no future"):
        ranks.beside[0].send(value(0), 2, 1).get_future()


def test_a_rank_that_sends_nothing_in_a_part_is_named_as_all_call_it() -> None:
    blocked = threading.Event()
    ours = Contacts(nobody_lost, 0.1, RankOrder([0, 1], of_all=[3, 7]))
    with pytest.raises(CollectiveError, match=r"recv from rank 1, .*: rank 1 of this group is rank 7 of all; one of"):
        ours.receive(1, 0, lambda: blocked.wait(LONG) and failing()).wait()
    blocked.set()


def contacts(lost: Lost = nobody_lost) -> Contacts:
    return Contacts(lost, LONG)


def failing() -> Any:
    raise RuntimeError("Connection refused")


def test_what_cannot_start_is_said_by_wait_and_the_next_is_tried() -> None:
    ours = contacts()
    release = threading.Event()
    tried: list[int] = []

    def first() -> Any:
        release.wait(LONG)
        return failing()

    def second() -> Any:
        tried.append(2)
        return failing()

    works = [ours.send(1, 0, first), ours.send(1, 0, second)]
    release.set()
    for work in works:
        with pytest.raises(RuntimeError, match="send to rank 1, tag 0: Connection refused"):
            work.wait()
        assert work.is_completed() and not work.is_success() and str(work.exception()) == "Connection refused"
    assert tried == [2]


def test_nothing_overtakes_a_message_whose_rank_is_not_there() -> None:
    ours = contacts()
    release = threading.Event()
    begun: list[str] = []

    def begins(name: str, *, blocked: bool = False) -> Callable[[], Any]:
        def start() -> Any:
            if blocked:
                release.wait(LONG)
            begun.append(name)
            return failing()

        return start

    works = [ours.receive(1, 0, begins("first", blocked=True)), ours.send(1, 0, begins("second"))]
    with pytest.raises(RuntimeError, match="Connection refused"):
        ours.receive_from_any(4, begins("any with another tag"))
    with pytest.raises(RuntimeError, match="Connection refused"):
        ours.send(2, 0, begins("to another")).wait()
    later = threading.Timer(0.3, release.set)
    later.start()
    with pytest.raises(RuntimeError, match="Connection refused"):
        ours.receive_from_any(0, begins("any"))
    for work in works:
        with pytest.raises(RuntimeError, match="Connection refused"):
            work.wait()
    assert begun[:3] == ["any with another tag", "to another", "first"]
    assert sorted(begun[3:]) == ["any", "second"]


def test_a_loss_ends_a_wait_for_a_rank_that_was_never_met() -> None:
    error = CollectiveError("the process of rank 1 has ended", kind="missing", peers=(1,))
    known = threading.Event()
    ours = contacts(lambda _: error if known.is_set() else None)
    blocked = threading.Event()
    work = ours.receive(1, 0, lambda: blocked.wait(LONG) and failing())
    known.set()
    with pytest.raises(CollectiveError, match="rank 1 has ended"):
        work.wait()
    for call in (lambda: ours.send(1, 0, failing), lambda: ours.receive_from_any(0, failing)):
        with pytest.raises(CollectiveError, match="rank 1 has ended"):
            call()
    blocked.set()


def test_a_thread_that_cannot_be_made_leaves_the_rank_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = contacts()

    def refused(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refused)
        with pytest.raises(RuntimeError, match="can't start new thread"):
            ours.send(1, 0, failing)
    with pytest.raises(RuntimeError, match="Connection refused"):
        ours.send(1, 0, failing).wait()
