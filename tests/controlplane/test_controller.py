"""The controller on switches in memory: restores, restarts, members, and who may do what."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
from running_controller import LISTENING, SWITCHES, Place, request, until, vanish

from catchment.controlplane.client import SwitchClient
from catchment.controlplane.controller.certificates import load
from catchment.controlplane.controller.errors import ControllerError, RefusedError
from catchment.controlplane.controller.members import Members
from catchment.controlplane.controller.switches import SwitchAgent
from catchment.controlplane.jobs import JobRequest
from catchment.host import EndpointError
from catchment.host.membership import Credentials, Description, Membership, MembershipError
from catchment.host.membership import member as member_module
from catchment.wire.generated import controller_pb2 as pb
from catchment.wire.generated import controller_pb2_grpc as pb_grpc
from catchment.wire.service import CONTROLLER_NAME, OPERATOR_NAME, host_name


def generations(member: Any) -> set[int]:
    return {stream.gen for stream in member.description.streams.values()}


# Jobs and switches


def test_many_jobs_come_and_go_and_leave_nothing(place: Place, rng: random.Random) -> None:
    empty = place.all_contents()
    names: list[str] = []
    with place.controller.operator() as operator:
        for number in range(24):
            if names and (len(names) > 4 or rng.random() < 0.4):
                operator.remove(names.pop(rng.randrange(len(names))))
            else:
                names.append(operator.create(request(f"job{number}", 1 << rng.randrange(6))).job.name)
        assert {job.name for job in operator.jobs()} == set(names)
        for name in names:
            operator.remove(name)
        assert operator.jobs() == []
    assert place.all_contents() == empty


def test_a_switch_that_restarts_gets_everything_back(place: Place) -> None:
    with place.controller.operator() as operator:
        operator.create(request("one"))
        operator.create(JobRequest("two", "allreduce", ("w0", "w3"), None, 8))
        before = place.all_contents()
        for name in SWITCHES:
            place.restart_switch(name)
            until(lambda name=name: {s.name: s.restores for s in operator.switches()}[name] == 2, f"{name} is restored")
            assert place.all_contents() == before


def test_a_switch_that_dies_under_a_look_that_never_ends_is_down(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    looking = threading.Event()

    async def look(agent: SwitchAgent, _: SwitchClient) -> None:
        if agent.name == "r1":
            looking.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(SwitchAgent, "_look_for_drift", look)
    assert looking.wait(120)
    with place.controller.operator() as operator:
        assert [switch.state for switch in operator.switches()][1] == "up"
        place.fakes["r1"].stop()
        until(lambda: operator.switches()[1].state == "down", "the loss is noticed")


def test_a_job_that_is_removed_while_a_switch_is_down_does_not_come_back(place: Place) -> None:
    empty = place.all_contents()
    with place.controller.operator() as operator:
        operator.create(request("gone"))
        place.restart_switch("r1", lambda: operator.remove("gone"))
        until(lambda: all(s.state == "up" for s in operator.switches()), "r1 is back")
        until(lambda: place.all_contents() == empty, "nothing of the job is left")


def test_a_job_on_a_switch_that_is_down_is_refused_and_named(place: Place) -> None:
    with place.controller.operator() as operator:
        place.fakes["r2"].stop()
        until(lambda: any(s.state == "down" for s in operator.switches()), "r2 is noticed")
        with pytest.raises(ControllerError, match="r2"):
            operator.create(request())
        operator.create(request("local", workers=("w0", "w1")))
        assert [job.name for job in operator.jobs()] == ["local"]


def test_a_controller_that_restarts_finds_its_jobs_and_disturbs_nothing(place: Place) -> None:
    with place.controller.operator() as operator:
        first = operator.create(request()).job
    before = place.all_contents()
    place.controller.stop()
    for fake in place.fakes.values():
        fake.switch.log.clear()
    place.controller.start()
    place.until_up()
    with place.controller.operator() as operator:
        again = operator.job("train")
    assert again.members == first.members
    assert place.all_contents() == before
    assert all("pipeline" not in fake.switch.log and "write" not in fake.switch.log for fake in place.fakes.values())


def test_what_changed_while_the_controller_was_away_is_put_right(place: Place) -> None:
    with place.controller.operator() as operator:
        operator.create(request())
    before = place.all_contents()
    place.controller.stop()
    with SwitchClient.connect(place.fakes["r1"].address, 2, timeout=60.0) as client:
        first, *_ = client.read("jobs")
        client.delete(first)
        client.set_group(99, [1])
        params = {"mode": 1, "job": 1, "group": 2, "src_ip": "10.0.0.1", "src_udp": 51836}
        client.insert(type(first)("jobs", {"gen": 65000, "port": 1}, "root", params))
    place.controller.start()
    place.until_up()
    assert place.all_contents() == before


def test_concurrent_clients_never_share_anything(place: Place) -> None:
    failures: list[BaseException] = []

    def client(number: int) -> None:
        try:
            with place.controller.operator() as operator:
                for turn in range(3):
                    operator.create(request(f"c{number}-{turn}", 8))
                operator.remove(f"c{number}-0")
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=client, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(400)
    assert failures == [] and not any(thread.is_alive() for thread in threads)
    with place.controller.operator() as operator:
        jobs = operator.jobs()
    assert len(jobs) == 8
    used = [s.gen for job in jobs for s in job.members[0].description.streams]
    assert len(set(used)) == 16
    ports = [m.description.local.port for job in jobs for m in job.members if m.host == "w0"]
    assert len(set(ports)) == 8


# Members


def test_a_member_that_is_lost_is_named_and_the_generations_change(place: Place) -> None:
    with place.controller.operator() as operator, ExitStack() as exits:
        token = operator.create(request()).token
        members = {h: exits.enter_context(place.controller.join("train", h, token)) for h in ("w0", "w1", "w2", "opt")}
        for member in members.values():
            member.endpoint()
        for member in members.values():
            member.wait_complete(60)
        old = generations(members["w0"])
        lost = members.pop("w1")
        vanish(lost)
        for member in members.values():
            assert member.superseded(60)
            assert member.epoch == 2
            assert "w1 is lost" in member.cause
            assert member.lost == ("w1",)
            assert not generations(member) & old
        assert "w1 is lost" in operator.job("train").trouble
        assert {m.host: m.state for m in operator.job("train").members}["w1"] == "lost"
        members["w1"] = exits.enter_context(place.controller.join("train", "w1", token))
        assert members["w1"].epoch == 2, "nobody has used these generations on w1 yet"
        for member in members.values():
            member.endpoint()
        for member in members.values():
            member.wait_complete(60)
        assert operator.job("train").trouble == ""
        on_r1 = {int(k) for e in place.contents("r1")[0] if (k := e.partition("jobs[gen=")[2].partition(" ")[0])}
        assert on_r1 == generations(members["w0"])


@pytest.mark.sampled(4)
@pytest.mark.parametrize("timing", [LISTENING], ids=["listening"])
def test_a_member_that_stands_still_is_counted_out(place: Place) -> None:
    """Its connection stands, it just says nothing; when it wakes up it must not go on as if nothing had been."""
    with place.controller.operator() as operator, ExitStack() as exits:
        token = operator.create(request()).token
        other = exits.enter_context(place.controller.join("train", "w0", token))
        sleeper = place.controller.join("train", "w1", token)
        other.endpoint()
        pending = sleeper.endpoint(timeout=60.0).pull(np.zeros(64, np.uint8))
        old = generations(sleeper)
        sleeper._interval = 60.0
        assert other.superseded(60)
        assert "w1 is lost: not heard for" in other.cause
        until(lambda: sleeper.error, "the sleeper learns of it")
        assert generations(sleeper) == old, "it was told the new generations"
        with pytest.raises(EndpointError, match="closed"):
            pending.wait(60)
        with pytest.raises(MembershipError, match="counted w1 out"):
            sleeper.endpoint()
        sleeper.leave()
        with place.controller.join("train", "w1", token) as again:
            assert again.epoch == 2


def test_whoever_leaves_is_not_lost_and_comes_back_with_new_generations(place: Place) -> None:
    with place.controller.operator() as operator:
        token = operator.create(request()).token
        with place.controller.join("train", "w0", token) as other:
            other.endpoint()
            with place.controller.join("train", "w1", token) as member:
                member.endpoint()
            assert {m.host: m.state for m in operator.job("train").members}["w1"] == "left"
            assert not other.superseded(0.8)
            with place.controller.join("train", "w1", token) as again:
                assert again.epoch == 2
                assert other.superseded(60)
                assert "w1 has joined again" in other.cause
                assert other.lost == ()


def test_an_endpoint_of_the_old_generations_is_closed(place: Place) -> None:
    with place.controller.operator() as operator, ExitStack() as exits:
        token = operator.create(request()).token
        member = exits.enter_context(place.controller.join("train", "opt", token))
        other = place.controller.join("train", "w0", token)
        endpoint = member.endpoint(timeout=60.0)
        pending = endpoint.pull(np.zeros(64, np.int32))
        vanish(other)
        with pytest.raises(EndpointError, match="closed"):
            pending.wait(60)
        assert member.superseded(60)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("timing", [LISTENING], ids=["listening"])
def test_members_live_through_a_restart_of_the_controller(place: Place) -> None:
    with place.controller.operator() as operator:
        token = operator.create(request()).token
    with ExitStack() as exits:
        members = [exits.enter_context(place.controller.join("train", h, token)) for h in ("w0", "opt")]
        gone = place.controller.join("train", "w2", token)
        place.controller.stop()
        gone._end()
        place.controller.start()
        for member in members:
            until(lambda member=member: member.epoch == 2, "the loss of w2 is noticed after the restart")
            assert "w2 is lost" in member.cause
            assert member.error is None


def test_who_leaves_while_the_controller_restarts_is_not_lost(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(member_module, "_CALL_SECONDS", 60.0)  # a busy machine's controller may be slow to come back
    with place.controller.operator() as operator:
        token = operator.create(request()).token
    member = place.controller.join("train", "w0", token)
    member.endpoint()
    place.controller.stop()
    leaving = threading.Thread(target=member.leave)
    leaving.start()
    place.controller.start()
    leaving.join(120)
    with place.controller.operator() as operator:
        assert {m.host: m.state for m in operator.job("train").members}["w0"] == "left"


def test_a_member_that_cannot_use_what_it_is_told_says_so(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    with place.controller.operator() as operator, ExitStack() as exits:
        token = operator.create(request()).token
        member = exits.enter_context(place.controller.join("train", "w0", token))
        other = place.controller.join("train", "w1", token)
        pending = member.endpoint(timeout=60.0).pull(np.zeros(64, np.uint8))

        def of(*_: object) -> Description:
            raise ValueError("gen 70000 is not in 1..65535")

        monkeypatch.setattr(Description, "of", of)
        vanish(other)
        with pytest.raises(EndpointError, match="closed"):
            pending.wait(60)
        with pytest.raises(MembershipError, match=r"what the controller says of job train: .*gen 70000 is not in"):
            member.superseded(60)


def test_a_removed_job_ends_its_members(place: Place) -> None:
    with place.controller.operator() as operator:
        token = operator.create(request()).token
        member = place.controller.join("train", "w0", token)
        operator.remove("train")
        until(lambda: member.error, "the member learns of it")
        with pytest.raises(MembershipError, match=r"job train was removed|its job is gone"):
            member.endpoint()
        member.leave()


# Who may do what


def stub(place: Place, name: str) -> tuple[Any, Any]:
    own = load(place.controller.certificates, name)
    credentials = grpc.ssl_channel_credentials(own.authority, own.key, own.certificate)
    channel = grpc.secure_channel(
        place.controller.address, credentials, [("grpc.ssl_target_name_override", CONTROLLER_NAME)]
    )
    return channel, pb_grpc.ControllerStub(channel)


def test_each_does_only_what_its_certificate_allows(place: Place) -> None:
    with place.controller.operator() as operator:
        token = operator.create(request()).token
        member = place.controller.join("train", "w0", token)
        session = member._session
        with pytest.raises(MembershipError, match="takes the certificate of host:w1"):
            place.controller.join("train", "w1", token, proves="w2")
        with pytest.raises(MembershipError, match="token is not of it"):
            place.controller.join("train", "w1", "guess", proves="w1")
        with pytest.raises(MembershipError, match="there is no such job"):
            place.controller.join("other", "w1", token)
        with pytest.raises(MembershipError, match="w0 has joined and is alive"):
            place.controller.join("train", "w0", token, timeout=3.0)
        channel, host = stub(place, host_name("w1"))
        with channel:
            for call in (
                lambda: host.ListJobs(pb.Empty(), timeout=60),
                lambda: host.RemoveJob(pb.JobName(job="train"), timeout=60),
                lambda: host.Leave(pb.SessionName(session=session), timeout=60),
                lambda: host.Report(pb.ReportRequest(session=session), timeout=60),
                lambda: list(host.Heartbeat(iter([pb.Beat(session=session)]), timeout=60)),
                lambda: list(host.Heartbeat(iter([pb.Beat(session="guess")]), timeout=60)),
            ):
                with pytest.raises(grpc.RpcError) as refusal:
                    call()
                assert refusal.value.code() is grpc.StatusCode.PERMISSION_DENIED
        assert member.error is None
        assert operator.job("train").epoch == 1
        member.leave()


@pytest.mark.parametrize("epoch", [2**32 - 1, 2**32 - 2, 1 << 20])
def test_an_epoch_that_no_member_can_know_is_not_believed(
    place: Place, epoch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard, end, beat = threading.Event(), threading.Event(), Members.beat

    def listen(members: Members, watch: Any, seat: Any, said: int) -> None:
        beat(members, watch, seat, said)
        if said == epoch:
            heard.set()

    def beats(session: str) -> Iterator[Any]:
        yield pb.Beat(session=session, epoch=epoch)
        end.wait(120)

    monkeypatch.setattr(Members, "beat", listen)
    with place.controller.operator() as operator:
        token = operator.create(request()).token
        channel, host = stub(place, host_name("w0"))
        with channel:
            session = host.Join(pb.JoinRequest(job="train", host="w0", token=token), timeout=60).session
            beating = host.Heartbeat(beats(session), timeout=120)
            assert heard.wait(120)
            # Whoever joins waits for the job's lock, and so for a renewal that is under way.
            place.controller.join("train", "w1", token).leave()
            assert [job.epoch for job in operator.jobs()] == [1]
            beating.cancel()
            end.set()


def test_a_member_writes_no_lines_and_orders_no_terminal(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    with place.controller.operator() as operator:
        token = operator.create(request()).token
        channel, host = stub(place, host_name("w0"))
        with channel:
            with pytest.raises(grpc.RpcError, match="the job has characters that cannot be printed"):
                host.Join(pb.JoinRequest(job="train\n2026 INFO all is well", host="w0", token="guess"), timeout=60)
            session = host.Join(pb.JoinRequest(job="train", host="w0", token=token), timeout=60).session
            stall = pb.Stall(stream="sums", seq=1, seconds=1.0, cause="\x1b]0;title\x07\n2026 INFO all is well")
            host.Report(pb.ReportRequest(session=session, stalls=[stall]), timeout=60)
            host.GiveUp(pb.GiveUpRequest(session=session, cause="\x1b[2J\n2026 INFO all is well"), timeout=60)
        trouble = operator.job("train").trouble
    assert "all is well" in trouble and trouble.isprintable()
    assert all(record.getMessage().isprintable() for record in caplog.records)


class Refused(grpc.RpcError):  # type: ignore[misc]
    """A refusal, as gRPC raises it."""

    def __init__(self, code: grpc.StatusCode, said: str) -> None:
        super().__init__(said)
        self.code, self.details = (lambda: code), (lambda: said)


def test_why_a_member_is_refused_is_said_even_if_its_last_try_has_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter(
        [
            Refused(grpc.StatusCode.FAILED_PRECONDITION, "w0 has joined and is alive"),
            Refused(grpc.StatusCode.DEADLINE_EXCEEDED, "Deadline Exceeded"),
        ]
    )

    class Stub:
        def __init__(self, channel: grpc.Channel) -> None:
            del channel

        def Join(self, *_: object, **__: object) -> None:  # noqa: N802
            raise next(answers)

    class Insecure(Credentials):
        def channel(self, address: str) -> grpc.Channel:
            return grpc.insecure_channel(address)

    monkeypatch.setattr(member_module.pb_grpc, "ControllerStub", Stub)
    insecure = Insecure(Path("ca"), Path("certificate"), Path("key"))
    with pytest.raises(MembershipError, match="FAILED_PRECONDITION: w0 has joined and is alive"):
        Membership.join(controller="127.0.0.1:1", job="train", host="w0", token="x", credentials=insecure, timeout=60.0)


def test_nobody_without_a_certificate_of_the_authority_gets_in(place: Place, tmp_path: Path) -> None:
    from catchment.controlplane.controller import certificates

    certificates.make(tmp_path / "other", [])
    stranger = load(tmp_path / "other", OPERATOR_NAME)
    ours = load(place.controller.certificates, OPERATOR_NAME)
    for credentials in (
        grpc.ssl_channel_credentials(ours.authority),
        grpc.ssl_channel_credentials(ours.authority, stranger.key, stranger.certificate),
    ):
        options = [("grpc.ssl_target_name_override", CONTROLLER_NAME)]
        with grpc.secure_channel(place.controller.address, credentials, options) as channel:
            with pytest.raises(grpc.RpcError) as refusal:
                pb_grpc.ControllerStub(channel).ListJobs(pb.Empty(), timeout=60)
            assert refusal.value.code() is grpc.StatusCode.UNAVAILABLE
    with grpc.insecure_channel(place.controller.address) as channel, pytest.raises(grpc.RpcError):
        pb_grpc.ControllerStub(channel).ListJobs(pb.Empty(), timeout=60)


@pytest.mark.parametrize(
    ("message", "complaint"),
    [
        (pb.CreateJobRequest(name="x", kind="odd"), "'odd' is no kind of job"),
        (pb.CreateJobRequest(name="", kind="luwu", workers=["w0"], root="opt", slots=8), "cannot be the name"),
        (pb.CreateJobRequest(name="../x", kind="luwu", workers=["w0"], root="opt", slots=8), "cannot be the name"),
        (pb.CreateJobRequest(name="x" * 10_000, kind="luwu"), "10000 characters long"),
        (pb.CreateJobRequest(name="x", kind="luwu", workers=["w0"], slots=8), "needs --root"),
        (pb.CreateJobRequest(name="x", kind="luwu", workers=["w9"], root="opt", slots=8), "no host 'w9'"),
        (pb.CreateJobRequest(name="x", kind="luwu", workers=["w0"] * 2000, root="opt", slots=8), "2000 workers"),
        (pb.CreateJobRequest(name="x", kind="luwu", workers=["w0"], root="opt", slots=7), "power of two"),
        (pb.CreateJobRequest(name="x", kind="luwu", workers=["w0"], root="opt", slots=1 << 31), "no 2147483648 slots"),
    ],
)
def test_bad_requests_are_explained_and_change_nothing(place: Place, message: Any, complaint: str) -> None:
    channel, operator = stub(place, OPERATOR_NAME)
    with channel:
        with pytest.raises(grpc.RpcError) as refusal:
            operator.CreateJob(message, timeout=60)
        assert refusal.value.code() is grpc.StatusCode.FAILED_PRECONDITION
        assert complaint in refusal.value.details()
        assert list(operator.ListJobs(pb.Empty(), timeout=60).jobs) == []


def test_secrets_are_not_logged(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    with place.controller.operator() as operator:
        token = operator.create(request()).token
        with place.controller.join("train", "w0", token) as member:
            session = member._session
        with pytest.raises(RefusedError):
            operator._call(operator._stub.Leave, pb.SessionName(session=session))
    logged = caplog.text
    assert "train" in logged
    assert token not in logged
    assert session not in logged
    stored = b"".join(path.read_bytes() for path in place.controller.settings.folder.glob("lab.jobs.sqlite*"))
    assert token.encode() not in stored
    assert session.encode() not in stored
