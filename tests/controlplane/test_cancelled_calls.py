"""A client that ends its call, or runs out of time, changes nothing about what the controller does for it.

Switches never answer here. The controller's threads are held up in the middle of what they do.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import grpc
import pytest
from running_controller import PATIENT, Place, request, until, use_fake_programs
from test_controller import stub

from catchment.controlplane.client import SwitchClient
from catchment.controlplane.controller.core import Controller
from catchment.controlplane.controller.errors import ControllerError
from catchment.controlplane.controller.identity import digest
from catchment.controlplane.controller.job_watch import JobWatch
from catchment.controlplane.controller.keeper import Keeper
from catchment.controlplane.controller.members import Members
from catchment.controlplane.controller.settings import Settings
from catchment.controlplane.controller.switches import SwitchState
from catchment.controlplane.deployment import lifecycle
from catchment.controlplane.deployment.live_store import LiveStore
from catchment.controlplane.deployment.records import JobRecord, JobState, MemberRecord
from catchment.controlplane.deployment.store import JobStore, Transactions
from catchment.controlplane.jobs import JobError, JobRequest
from catchment.controlplane.topology import racks
from catchment.wire.generated import controller_pb2 as pb
from catchment.wire.service import OPERATOR_NAME

_BARE = racks([["w0", "w1"]], ["opt"], program=Path("luwu.p4"), lanes=8, name="lab")
TOPOLOGY = replace(_BARE, switches={name: replace(one, tags=True) for name, one in _BARE.switches.items()})
WORKERS = ("w0", "w1")


def asked(name: str) -> JobRequest:
    return JobRequest(name, "allreduce", WORKERS, slots=4, tags=True)


class Hold:
    """Holds up a function of `owner` in the thread that calls it, until `end`.

    Args:
        monkeypatch: puts it in place.
        owner: has the function as an attribute.
        name: of the attribute.
        instead: is called in its place in the end.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, instead: Any = None) -> None:
        self._began, self._ended = threading.Event(), threading.Event()
        real = instead or getattr(owner, name)

        def held(*args: Any, **kwargs: Any) -> Any:
            self._began.set()
            assert self._ended.wait(60)
            return real(*args, **kwargs)

        monkeypatch.setattr(owner, name, held)

    async def begins(self) -> None:
        assert await asyncio.to_thread(self._began.wait, 60)

    def end(self) -> None:
        self._ended.set()


@dataclass(frozen=True)
class Lab:
    """A controller with job `train`, whose members are `left` and `joined`."""

    controller: Controller
    members: Members

    @property
    def watch(self) -> JobWatch:
        return self.controller.jobs["train"]

    def locks(self) -> list[bool]:
        return [agent.lock.locked() for agent in self.controller.switches.values()]

    def answer(self) -> None:
        """Have switches count as up."""
        for agent in self.controller.switches.values():
            agent._client, agent.state = cast("SwitchClient", SimpleNamespace(term=None)), SwitchState.UP

    def assert_memory_is_what_is_stored(self) -> None:
        stored = self.controller.store.look()
        assert {name: watch.record for name, watch in self.controller.jobs.items()} == stored.records
        for name, watch in self.controller.jobs.items():
            seats = {host: seat.record() for host, seat in watch.roster.seats.items() if seat.presence != "absent"}
            assert seats == stored.members(name)
            assert watch.roster.epoch == watch.record.epoch


@asynccontextmanager
async def lab(folder: Path) -> AsyncIterator[Lab]:
    store = LiveStore(TOPOLOGY, folder)
    lifecycle.reserve_job(store, asked("train"), TOPOLOGY, digest("token"))
    with store() as jobs:
        jobs.set_state("train", JobState.UP)
        jobs.put_member("train", MemberRecord("w0", "left", 1, b"old"))
        jobs.put_member("train", MemberRecord("w1", "joined", 1, b"session"))
    nowhere = {name: f"unix:{folder}/nobody-at-{name}" for name in TOPOLOGY.switches}
    async with Controller(Settings(TOPOLOGY, nowhere, folder, folder, (), PATIENT)) as controller:
        yield Lab(controller, Members(controller))


@pytest.fixture(autouse=True)
def _programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_fake_programs(monkeypatch, tmp_path)


def deployed(store: Transactions, record: JobRecord, *_: Any, **__: Any) -> JobRecord:
    """Note a job as if switches had it."""
    with store() as jobs:
        jobs.set_state(record.group.name, JobState.UP)
    return replace(record, state=JobState.UP)


def keys_given(store: Transactions, name: str, *args: Any) -> tuple[JobRecord, list[Any]]:
    """Note keys as if switches had them."""
    with store() as jobs:
        record = replace(jobs.record(name), group=jobs.record(name).group.come_to(args[-1]))
        jobs.put(record)
    return record, []


async def come_to_terms(lab: Lab) -> None:
    gen = lab.watch.record.group.first.streams[0].gen
    seats = lab.watch.roster.seats
    for host in WORKERS:
        await lab.members.come_to(lab.watch, seats[host], 1, [(gen, 1)])


@dataclass(frozen=True)
class Deed:
    """What a client asks for, where it is held up, and how one sees that it was done."""

    ask: Callable[[Lab], Coroutine[Any, Any, Any]]
    owner: Any
    held: str
    was_done: Callable[[Lab], bool]
    instead: Any = None
    is_on_switches: bool = True


DEEDS = {
    "join": Deed(
        lambda lab: lab.members.join("train", "w0", "token"), lifecycle, "renew_job",
        lambda lab: lab.watch.record.epoch == 2 and lab.watch.roster.seats["w0"].epoch == 2,
    ),
    "renew keys": Deed(
        lambda lab: lab.members.renew_keys(lab.watch, lab.watch.roster.seats["w1"], 1), lifecycle, "renew_job",
        lambda lab: lab.watch.record.epoch == 2,
    ),
    "come to terms": Deed(
        come_to_terms, lifecycle, "give_job_keys",
        lambda lab: lab.watch.record.group.first.streams[0].term == 1, keys_given,
    ),
    "give up": Deed(
        lambda lab: lab.members.give_up(lab.watch, lab.watch.roster.seats["w1"], "its process ended"),
        lifecycle, "renew_job", lambda lab: lab.watch.record.epoch == 2,
    ),
    "leave": Deed(
        lambda lab: lab.members.leave(lab.watch, lab.watch.roster.seats["w1"]), JobStore, "put_member",
        lambda lab: lab.watch.roster.seats["w1"].presence == "left", is_on_switches=False,
    ),
    "renew token": Deed(
        lambda lab: lab.controller.renew_token("train"), JobStore, "put",
        lambda lab: lab.watch.record.token != digest("token"), is_on_switches=False,
    ),
    "remove": Deed(
        lambda lab: lab.controller.remove("train"), lifecycle, "remove_job_where_possible",
        lambda lab: not lab.controller.jobs,
    ),
    "create": Deed(
        lambda lab: lab.controller.create(asked("other")), lifecycle, "deploy_job",
        lambda lab: set(lab.controller.jobs) == {"train", "other"}, deployed,
    ),
    "keep": Deed(
        lambda lab: lab.controller.keep(next(iter(TOPOLOGY.switches))), Keeper, "note", lambda lab: True,
        lambda *_: None,
    ),
}  # fmt: skip


async def left(ask: Awaitable[Any], hold: Hold) -> None:
    """Ask, and end the call in the middle of what is done for it."""
    call = asyncio.ensure_future(ask)
    await hold.begins()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call


@pytest.mark.parametrize("deed", DEEDS.values(), ids=DEEDS)
def test_what_a_client_asked_for_goes_on_without_it(
    deed: Deed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with lab(tmp_path) as made:
            if deed.instead is not None:
                made.answer()
            watch, agents = made.watch, made.controller.switches.values()
            hold = Hold(monkeypatch, deed.owner, deed.held, deed.instead)
            try:
                await left(deed.ask(made), hold)
                is_held = any(made.locks()) if deed.is_on_switches else watch.lock.locked()
            finally:
                hold.end()
            async with watch.lock:
                for agent in agents:
                    async with agent.lock:
                        pass
            await until_agreed(made, deed)
            assert is_held, "nobody else may write meanwhile"

    asyncio.run(main())


async def until_agreed(made: Lab, deed: Deed) -> None:
    """The task that was left has taken its locks back, and has nothing to wait for any more."""
    for _ in range(3):
        await asyncio.sleep(0)
    assert deed.was_done(made)
    made.assert_memory_is_what_is_stored()


def test_who_removes_a_job_after_a_client_that_left_hears_that_it_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with lab(tmp_path) as made:
            hold = Hold(monkeypatch, lifecycle, "remove_job_where_possible")
            try:
                await left(made.controller.remove("train"), hold)
                second = asyncio.create_task(made.controller.remove("train"))
                token = asyncio.create_task(made.controller.renew_token("train"))
                await asyncio.sleep(0)
            finally:
                hold.end()
            for task in (second, token):
                with pytest.raises(JobError, match="job train is being removed already"):
                    await task
            assert not made.controller.jobs and not made.controller.store.look().records

    asyncio.run(main())


def test_a_client_that_leaves_before_its_turn_has_asked_for_nothing(tmp_path: Path) -> None:
    """However many calls a client begins and ends, none is left behind."""

    async def main() -> None:
        async with lab(tmp_path) as made:
            watch = made.watch
            seat, tasks = watch.roster.seats["w1"], len(asyncio.all_tasks())
            async with watch.lock:
                calls = [
                    asyncio.create_task(ask)
                    for ask in (
                        made.controller.remove("train"), made.controller.renew_token("train"),
                        made.members.join("train", "w0", "token"), made.members.renew_keys(watch, seat, 1),
                        made.members.come_to(watch, seat, 1, []),
                    )
                ]  # fmt: skip
                await asyncio.sleep(0)
                for call in calls:
                    call.cancel()
                await asyncio.wait(calls)
                assert len(asyncio.all_tasks()) == tasks
            async with watch.lock:
                assert watch.record.epoch == 1 and matches_token(watch)
            made.assert_memory_is_what_is_stored()

    def matches_token(watch: JobWatch) -> bool:
        return watch.record.token == digest("token") and not watch.removed

    asyncio.run(main())


def test_the_end_waits_for_what_is_under_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hold = Hold(monkeypatch, lifecycle, "renew_job")
    ends: list[bool] = []

    async def main() -> None:
        async with lab(tmp_path) as made:
            await left(made.members.join("train", "w0", "token"), hold)
            ending = asyncio.create_task(made.controller.__aexit__(None, None, None))
            for _ in range(100):
                await asyncio.sleep(0)
            ends.append(ending.done())
            hold.end()
            await ending
            ends.append(made.watch.record.epoch == 2)
            made.assert_memory_is_what_is_stored()

    try:
        asyncio.run(main())
    finally:
        hold.end()
    assert ends == [False, True]


def test_what_fails_without_its_client_is_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise JobError("the disk is full")

    async def main() -> None:
        async with lab(tmp_path) as made:
            hold = Hold(monkeypatch, lifecycle, "remove_job_where_possible", refuse)
            try:
                await left(made.controller.remove("train"), hold)
            finally:
                hold.end()
            async with made.watch.lock:
                await asyncio.sleep(0)
            made.assert_memory_is_what_is_stored()

    with caplog.at_level(logging.WARNING):
        asyncio.run(main())
    gc.collect()  # asyncio, too, would name an error that nobody takes
    said = [record.getMessage() for record in caplog.records if "the disk is full" in record.getMessage()]
    assert said == ["a client left, and what it had asked for failed: the disk is full"]


def test_a_goodbye_is_not_written_over_what_came_after_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread that notes who has left is slow; another member joins meanwhile, and is known after a restart."""

    async def main() -> None:
        async with lab(tmp_path) as made:
            watch, real = made.watch, made.controller.store
            first, may_go = threading.Event(), threading.Event()

            def slow() -> Any:
                if not first.is_set():
                    first.set()
                    assert may_go.wait(60)
                return real()

            monkeypatch.setattr(made.controller, "store", cast("LiveStore", slow))
            watch.roster.seats["w0"].epoch = 0  # it may join without new generations
            leaving = asyncio.create_task(made.members.leave(watch, watch.roster.seats["w1"]))
            try:
                assert await asyncio.to_thread(first.wait, 60)
                joining = asyncio.create_task(made.members.join("train", "w0", "token"))
                while not joining.done() and not watch.lock._waiters:
                    await asyncio.sleep(0.001)
            finally:
                may_go.set()
            await asyncio.gather(leaving, joining)
            monkeypatch.undo()
            made.assert_memory_is_what_is_stored()
            assert real.look().members("train")["w0"].session == digest(joining.result().session)

    asyncio.run(main())


@pytest.mark.parametrize("timing", [PATIENT], ids=["patient"])
def test_an_operator_who_hangs_up_has_removed_the_job(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """gRPC cancels the method of a call that is over; the audit log has the deed."""
    audit = place.controller.settings.folder / "lab.audit.jsonl"
    empty = place.all_contents()

    def outcomes() -> list[str]:
        deeds = [json.loads(line) for line in audit.read_text("utf-8").splitlines()]
        return [deed["outcome"] for deed in deeds if deed["action"] == "RemoveJob"]

    with place.controller.operator() as operator:
        operator.create(request())
        hold = Hold(monkeypatch, lifecycle, "remove_job_where_possible")
        channel, hasty = stub(place, OPERATOR_NAME)
        try:
            with channel:
                call = hasty.RemoveJob.future(pb.JobName(job="train"), timeout=60)
                asyncio.run(hold.begins())
                call.cancel()
                with pytest.raises(grpc.FutureCancelledError):
                    call.result()
                assert until(outcomes, "the controller hears of it", 30.0) == ["its client left before it was done"]
                assert [job.name for job in operator.jobs()] == ["train"], "it is not removed yet"
        finally:
            hold.end()
        until(lambda: not operator.jobs(), "it is removed", 30.0)
        with pytest.raises(ControllerError, match="no job 'train'"):
            operator.remove("train")
        assert place.all_contents() == empty
