"""Groups of jobs under the controller: one loss renews all, and splits that every worker calls."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from types import FrameType
from typing import Any

import pytest
from google.rpc import code_pb2
from running_controller import PATIENT, Place, until, vanish

from catchment.controlplane.controller.errors import ControllerError
from catchment.controlplane.jobs import JobRequest
from catchment.host.membership import Credentials, Description, Guest, Membership, MembershipError

WORKERS = ("w0", "w1", "w2", "w3")


def group(**asked: Any) -> JobRequest:
    return JobRequest("train", "allreduce", WORKERS, None, 8, **asked)


def generations(told: Description) -> set[int]:
    own = {stream.gen for stream in told.streams.values()}
    return own.union(*(generations(part) for part in told.parts.values()))


def joined(place: Place, token: str, exits: ExitStack) -> dict[str, Membership]:
    return {h: exits.enter_context(place.controller.join("train", h, token)) for h in WORKERS}


def at_once(calls: dict[str, Callable[[], Any]]) -> dict[str, Future[Any]]:
    with ThreadPoolExecutor(len(calls)) as threads:
        return {host: threads.submit(call) for host, call in calls.items()}


def on_switches(place: Place) -> set[int]:
    entries = [entry for name in place.fakes for entry in place.contents(name)[0]]
    return {int(k) for entry in entries if (k := entry.partition("jobs[gen=")[2].partition(" ")[0])}


def test_a_lost_member_of_one_job_renews_all(place: Place) -> None:
    """w3 is in no job with w0 but that of all; still w0 learns new numbers of every job, in one notice."""
    with place.controller.operator() as operator, ExitStack() as exits:
        token = operator.create(group(grid=(("half", 2),))).token
        members = joined(place, token, exits)
        old = {host: member.description for host, member in members.items()}
        assert set(old["w0"].parts) == {"half.0", "across-half.0"}
        assert [part.wid for part in old["w2"].parts.values()] == [0, 1]
        for member in members.values():
            member.take(lambda told: told.parts["half.0" if "half.0" in told.parts else "half.1"].open(timeout=60.0))
        vanish(members.pop("w3"))
        for host, member in members.items():
            assert member.superseded(60)
            assert "w3 is lost" in member.cause
            assert (member.epoch, {part.epoch for part in member.description.parts.values()}) == (2, {2})
            assert not generations(member.description) & generations(old[host])
            assert set(member.description.parts) == set(old[host].parts)
        now = set().union(*(generations(member.description) for member in members.values()))
        until(lambda: now <= on_switches(place), "the switches have the new numbers")
        assert not on_switches(place) & set().union(*map(generations, old.values()))


def test_who_sees_an_epoch_sees_why_it_began(place: Place) -> None:
    """Any thread may look at a member while it takes a notice: here before each line of that."""
    seen: list[tuple[int, str]] = []

    def look(frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code is Membership._take.__code__ and event == "line":
            member = frame.f_locals["self"]
            seen.append((member.epoch, member.cause))
        return look

    with place.controller.operator() as operator, ExitStack() as exits:
        token = operator.create(group()).token
        threading.settrace(look)  # of the threads that members start
        exits.callback(threading.settrace, None)
        member = exits.enter_context(place.controller.join("train", "w0", token))
        threading.settrace(None)
        member.endpoint()
        other = place.controller.join("train", "w1", token)
        vanish(other)
        assert member.superseded(60)
    assert {epoch for epoch, _ in seen} == {1, 2}
    assert [cause for epoch, cause in seen if epoch == 2 and "w1 is lost" not in cause] == []


def test_a_group_is_shown_and_removed_as_one(place: Place) -> None:
    empty = place.all_contents()
    with place.controller.operator() as operator:
        operator.create(group(grid=(("half", 2),)))
        (job,) = operator.jobs()
        assert [part.label for part in job.parts] == ["", "half.0", "half.1", "across-half.0", "across-half.1"]
        assert list(job.parts[4].workers) == ["w1", "w3"]
        before = place.all_contents()
        place.restart_switch("r1")
        until(lambda: place.all_contents() == before, "r1 has its share of every job again")
        operator.remove("train")
        assert operator.jobs() == []
    assert place.all_contents() == empty


def test_a_group_that_a_switch_refuses_leaves_nothing(place: Place) -> None:
    empty = place.all_contents()
    with place.controller.operator() as operator:
        place.fakes["r2"].stop()
        until(lambda: any(s.state == "down" for s in operator.switches()), "r2 is noticed")
        with pytest.raises(ControllerError, match="r2"):
            operator.create(group(grid=(("half", 2),)))
        assert operator.jobs() == []
        for name in ("sp", "r1"):
            assert place.contents(name) == empty[name]


def test_a_split_gives_each_color_a_job(place: Place) -> None:
    with place.controller.operator() as operator, ExitStack() as exits:
        members = joined(place, operator.create(group()).token, exits)
        parts = at_once({h: lambda h=h: members[h].split(int(h[1]) % 2, key=-int(h[1])) for h in WORKERS})
        told = {host: part.result()[0] for host, part in parts.items()}
        assert {host: (part.wid, part.streams["sums"].workers) for host, part in told.items()} == {
            "w0": (1, 2), "w1": (1, 2), "w2": (0, 2), "w3": (0, 2)
        }  # fmt: skip
        assert told["w0"].streams["sums"].gen == told["w2"].streams["sums"].gen != told["w1"].streams["sums"].gen
        assert {stream.gen for part in told.values() for stream in part.streams.values()} <= on_switches(place)
        whole = at_once({h: lambda h=h: members[h].split(None if h == "w3" else 5) for h in WORKERS})
        assert whole["w3"].result() == ()
        assert [whole[h].result()[0].wid for h in WORKERS[:3]] == [0, 1, 2]
        assert {part.label for part in operator.job("train").parts} == {"", "split0.0", "split0.1", "split1.5"}


def test_a_split_among_some_needs_no_others(place: Place) -> None:
    """Workers 0 and 3, twice, then 0, 1 and 3; a number counts the calls of the same workers only."""
    with place.controller.operator() as operator, ExitStack() as exits:
        members = joined(place, operator.create(group()).token, exits)

        def made(*hosts: str) -> list[Description]:
            among = [int(host[1]) for host in hosts]
            calls = at_once({h: lambda h=h: members[h].split(0, -int(h[1]), among=reversed(among)) for h in hosts})
            return [call.result()[0] for call in calls.values()]

        pairs = [*made("w0", "w3"), *made("w0", "w3")]
        assert [part.label for part in pairs] == ["split0-of-0-3.0"] * 2 + ["split1-of-0-3.0"] * 2
        assert [part.wid for part in pairs] == [1, 0, 1, 0]
        three = made("w0", "w1", "w3")
        assert {part.label for part in three} == {"split0-of-0-1-3.0"}
        assert [part.streams["sums"].workers for part in three] == [3, 3, 3]
        now = {stream.gen for part in (*pairs, *three) for stream in part.streams.values()}
        assert len(now) == 3 and now <= on_switches(place)
        with pytest.raises(MembershipError, match=r"split0-of-0-1 of job train: w2 is not one of w0, w1"):
            members["w2"].split(0, among=(0, 1))
        with pytest.raises(MembershipError, match="among workers 0, 9: give indices of the 4 workers"):
            members["w0"].split(0, among=(0, 9))
        early = at_once({"w0": lambda: members["w0"].split(0, among=(0, 2), timeout=0.5)})["w0"]
        with pytest.raises(MembershipError, match=r"split0-of-0-2 of job train is not complete.*not called by w2"):
            early.result()


def test_a_split_comes_back_in_the_next_epoch(place: Place) -> None:
    with place.controller.operator() as operator, ExitStack() as exits:
        token = operator.create(group()).token
        members = joined(place, token, exits)

        def halves() -> dict[str, Description]:
            calls = at_once({h: lambda h=h: members[h].split(int(h[1]) // 2) for h in WORKERS})
            return {host: call.result()[0] for host, call in calls.items()}

        first = halves()
        for member in members.values():
            member.endpoint()
        vanish(members["w0"])
        assert members["w1"].superseded(60)
        members["w0"] = exits.enter_context(place.controller.join("train", "w0", token))
        for member in members.values():
            until(lambda member=member: member.epoch == members["w0"].epoch, "all learn the new epoch")
        second = halves()
        assert [part.label for part in second.values()] == [part.label for part in first.values()]
        assert not {s.gen for p in second.values() for s in p.streams.values()} & {
            s.gen for p in first.values() for s in p.streams.values()
        }
        assert {s.gen for p in second.values() for s in p.streams.values()} <= on_switches(place)


@pytest.mark.parametrize("timing", [PATIENT], ids=["patient"])
def test_who_does_not_call_a_split_is_named(place: Place) -> None:
    with place.controller.operator() as operator, ExitStack() as exits:
        members = joined(place, operator.create(group()).token, exits)
        early = {h: lambda h=h: members[h].split(0, timeout=1.0) for h in ("w0", "w2")}
        for call in at_once(early).values():
            with pytest.raises(MembershipError, match=r"split0 of job train is not complete after 1 s: .*w1.*w3"):
                call.result()
        assert list(operator.job("train").parts) == []


def test_a_loss_breaks_a_split_off(place: Place) -> None:
    with place.controller.operator() as operator, ExitStack() as exits:
        members = joined(place, operator.create(group()).token, exits)
        with ThreadPoolExecutor(1) as threads:
            waiting = threads.submit(lambda: members["w0"].split(0, timeout=120.0))
            until(lambda: members["w0"]._splits[()] == 1, "w0 has called")
            vanish(members["w3"])
            with pytest.raises(MembershipError, match=r"split|epoch"):
                waiting.result()


def test_a_split_that_a_switch_refuses_changes_nothing(place: Place) -> None:
    with place.controller.operator() as operator, ExitStack() as exits:
        members = joined(place, operator.create(group()).token, exits)
        before = place.all_contents()
        place.fakes["r2"].switch.refuse_new = (code_pb2.RESOURCE_EXHAUSTED, "table full")
        calls = at_once({h: lambda h=h: members[h].split(int(h[1]) // 2) for h in WORKERS})
        for call in calls.values():
            with pytest.raises(MembershipError, match="table full"):
                call.result()
        place.fakes["r2"].switch.refuse_new = None
        until(lambda: place.all_contents() == before, "nothing of the split is left")
        assert list(operator.job("train").parts) == []


def test_bad_splits_are_refused(place: Place) -> None:
    with place.controller.operator() as operator, ExitStack() as exits:
        token = operator.create(JobRequest("train", "luwu", WORKERS, "opt", 8)).token
        members = joined(place, token, exits)
        root = exits.enter_context(place.controller.join("train", "opt", token))
        with pytest.raises(MembershipError, match="opt is not a worker of job train"):
            root.split(0)
        with pytest.raises(MembershipError, match="color"):
            members["w0"].split(1 << 70)
        with pytest.raises(MembershipError, match="a timeout of 0 s"):
            members["w0"].split(0, timeout=-5.0)


def test_another_process_of_a_members_host_acts_in_its_name(place: Place) -> None:
    """It splits the job, by a number that its callers agree on, and says that the host is lost."""
    with place.controller.operator() as operator, ExitStack() as exits:
        members = joined(place, operator.create(group()).token, exits)
        guests = {
            host: Guest(
                place.controller.address,
                Credentials.of(place.controller.certificates, host),
                member.session,
                "train",
                member.epoch,
            )
            for host, member in members.items()
        }
        calls = at_once({h: lambda h=h: guests[h].split(7, 0, among=(3, 1), timeout=60.0) for h in ("w1", "w3")})
        parts = [call.result()[0] for call in calls.values()]
        assert [(part.label, part.wid) for part in parts] == [("split7-of-1-3.0", 0), ("split7-of-1-3.0", 1)]
        assert parts[0].as_member()["sums"]["gen"] == parts[1].streams["sums"].gen
        for member in members.values():
            member.endpoint()
        stranger = replace(guests["w2"], credentials=guests["w1"].credentials)
        stranger.give_up("a lie")  # another host's certificate: refused
        guests["w1"].give_up("the process of rank 5 has ended")
        guests["w1"].give_up("said by another rank, too")
        for host in ("w0", "w2", "w3"):
            assert members[host].superseded(60)
            assert (members[host].cause, members[host].epoch) == ("w1 is lost: the process of rank 5 has ended", 2)
        states = {member.host: member.state for member in operator.job("train").members}
        assert states == {"w0": "joined", "w1": "lost", "w2": "joined", "w3": "joined"}
        until(lambda: members["w1"].error, "the member that was given up learns of it")
        with pytest.raises(MembershipError, match="PERMISSION_DENIED"):
            guests["w1"].split(8, 0, among=(1,), timeout=60.0)
