"""A rank's place behind the switch of its host: who is told of which loss, and which part of a job a group gets."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from test_seats import on_udp, write_job

from catchment.host.collectives import CollectiveError
from catchment.host.torch.distributed import local_seat, shared_host
from catchment.host.torch.distributed.agreement import Agreement
from catchment.host.torch.distributed.controlled_host import ControlledHost, Patience
from catchment.host.torch.distributed.file_host import FileHost
from catchment.host.torch.distributed.file_seat import FileSeat
from catchment.host.torch.distributed.local_seat import LocalSeat
from catchment.host.torch.distributed.ranks import RankOrder
from catchment.host.torch.distributed.seat import Loss
from catchment.host.torch.distributed.shared_host import SharedHostSeat
from catchment.host.torch.distributed.switch_group import SwitchGroup
from catchment.wire.generated.constants import MAX_WORKERS

PATIENCE = 60.0


class Switch:
    """A connection to a host's switch that keeps what is said to it."""

    def __init__(self) -> None:
        self.told: list[tuple[str, tuple[str, ...]]] = []
        self.lost: Callable[[Loss], None] = lambda _: None

    def watch(self, _: str, lost: Callable[[Loss], None]) -> None:
        self.lost = lost

    def tell(self, text: str, hosts: Sequence[str]) -> None:
        self.told.append((text, tuple(hosts)))

    def join(self, _: str) -> None:
        pass


class Store(dict[str, int]):
    """The counters of torch's store."""

    def add(self, key: str, more: int) -> int:
        self[key] = self.get(key, 0) + more
        return self[key]


class Heard:
    """Collects losses from any thread."""

    def __init__(self) -> None:
        self.losses: list[Loss] = []
        self._news = threading.Condition()

    def __call__(self, loss: Loss) -> None:
        with self._news:
            self.losses.append(loss)
            self._news.notify_all()

    def await_texts(self, *texts: str) -> None:
        with self._news:
            assert self._news.wait_for(lambda: len(self.losses) >= len(texts), PATIENCE)
        assert [loss.text for loss in self.losses] == list(texts)


def controlled(given_up: list[str]) -> ControlledHost:
    guest = SimpleNamespace(give_up=given_up.append)
    member = {**on_udp(1, ("127.0.0.1", 9)), "host": "w1"}
    return ControlledHost(cast("Any", guest), member, cast("Any", Store()), None, Patience(1.0, 1.0))


def test_a_rank_that_ends_is_the_hosts_loss_and_ends_its_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    given_up: list[str] = []
    switch, job = Switch(), controlled(given_up)
    told = threading.Event()
    monkeypatch.setattr(job, "_guest", SimpleNamespace(give_up=lambda text: (given_up.append(text), told.set())))
    own = LocalSeat(cast("Any", switch), "job", {}, [-1, -1, 0, 1])
    whole, part = Heard(), Heard()
    SharedHostSeat(job, own, None).watch(whole)
    job.follow(part)
    switch.lost(Loss("the process of rank 1 has ended", (1,)))
    assert told.wait(PATIENCE)
    assert given_up == ["the process of rank 3 has ended"]  # of all ranks, not of the switch's
    whole.await_texts("the process of rank 3 has ended")
    part.await_texts("the process of rank 3 has ended")
    assert (whole.losses[0].ranks, part.losses[0].ranks) == ([3], ())


def test_a_loss_elsewhere_is_told_to_all_on_the_host_and_given_up_by_nobody() -> None:
    given_up: list[str] = []
    switch = Switch()
    first, other = Heard(), Heard()

    class Watched(SimpleNamespace):
        """A host's place whose process hears of the controller's losses."""

        name, address, host = "train", None, "w1"

        def watch(self, lost: Callable[[Loss], None]) -> None:
            lost(Loss("w0 is lost: its connection ended", hosts=("w0",)))

        def spread(self, _: Loss) -> None:
            pass

    SharedHostSeat(cast("Any", Watched()), LocalSeat(cast("Any", switch), "job", {}, [0, 1]), None).watch(first)
    first.await_texts("w0 is lost: its connection ended")
    assert switch.told == [("w0 is lost: its connection ended", ("w0",))]
    job, part = controlled(given_up), Heard()
    job.follow(part)
    SharedHostSeat(job, LocalSeat(cast("Any", switch), "job", {}, [0, 1]), None).watch(other)
    switch.lost(Loss("w0 is lost: its connection ended", hosts=("w0",)))  # as another process has told
    other.await_texts("w0 is lost: its connection ended")
    part.await_texts("w0 is lost: its connection ended")
    assert [heard.losses[0].hosts for heard in (first, other, part)] == [("w0",)] * 3
    assert given_up == []


def test_a_lost_host_is_its_ranks_in_every_group() -> None:
    """The controller names hosts; an error names the ranks of its group that were on them."""
    seat, communicator = SimpleNamespace(watch=lambda _: None), SimpleNamespace(close=lambda _: None)

    def group(hosts: list[str | None]) -> SwitchGroup:
        order = RankOrder(list(reversed(range(len(hosts)))))  # ranks are not worker indices
        return SwitchGroup(cast("Any", seat), cast("Any", communicator), order, 0, hosts)

    for hosts, lost, ranks in [
        (["w0", "w1", "w2"], ("w1",), (1,)),
        (["w0", "w1", "w0", "w1"], ("w1", "w2"), (1, 3)),
        (["w0", "w2"], ("w1",), ()),  # of a part: the host is in another
        ([None, None], (), ()),
    ]:
        one = group(hosts)
        one._lost(Loss("w1 is lost", hosts=lost, kind="unreachable"))
        told = one.failed("closed", kind="closed")
        assert told.peers == ranks and told.message == "w1 is lost", (hosts, told)
        loss = one.await_loss()
        assert loss is not None and tuple(loss.ranks) == ranks


def test_a_loss_that_names_its_rank_keeps_it() -> None:
    seat, communicator = SimpleNamespace(watch=lambda _: None), SimpleNamespace(close=lambda _: None)
    one = SwitchGroup(cast("Any", seat), cast("Any", communicator), RankOrder([0, 1]), 0, ["w0", "w0"])
    one._lost(Loss("the process of rank 1 has ended", (1,), ("w0",), "unreachable"))
    assert one.failed("closed", kind="closed").peers == (1,)


def test_an_error_says_which_ranks_of_all_its_peers_are() -> None:
    seat, communicator = SimpleNamespace(watch=lambda _: None), SimpleNamespace(close=lambda _: None)
    order = RankOrder([2, 0, 1], of_all=[0, 4, 5])
    one = SwitchGroup(cast("Any", seat), cast("Any", communicator), order, 0, [None] * 3)
    told = one.failed("no progress", kind="missing", peers=(1, 2), hint="look there", seq=7)
    assert (told.peers, told.seq) == ((2, 0), 7)
    assert told.hint == "rank 2 of this group is rank 5 of all; look there"
    one._lost(Loss("the process of rank 1 has ended", (1,)))
    lost = one.lost(0.0)
    assert lost is not None and lost.hint.startswith("rank 1 of this group is rank 4 of all; start the ranks again")


def alone(hosts: list[str]) -> Agreement:
    """What rank 0 hears of ranks of these hosts."""
    return cast(
        "Agreement", SimpleNamespace(rank=0, of_all=lambda _, own: hosts, of_first=lambda _, make: make(), size=2)
    )


def test_a_part_of_a_file_is_given_to_one_group_of_any_ranks(tmp_path: Path) -> None:
    """Two groups of the same hosts, in different processes, as ranks 0 and 4, and 1 and 5, are: one part, then none."""
    file = write_job(
        tmp_path / "job.json", {name: on_udp(wid, ("127.0.0.1", 9)) for wid, name in enumerate(("w0", "w1"))}
    )
    store = Store()
    processes = [FileHost(FileSeat.of(file, rank=0, size=4, host="w0"), cast("Any", store)) for _ in range(2)]
    parts = [process.part(alone(["w0", "w1"])) for process in processes]
    assert [part is not None for part in parts] == [True, False]
    assert parts[0] is not None and parts[0].member["wid"] == 0


def test_more_ranks_than_a_job_can_have_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_seat, "connect", None)
    agreement = cast("Agreement", SimpleNamespace(rank=0, size=MAX_WORKERS + 1))
    with pytest.raises(CollectiveError, match=rf"{MAX_WORKERS + 1} ranks on its hosts.*{MAX_WORKERS} at most"):
        shared_host.take(agreement, controlled([]), None)
