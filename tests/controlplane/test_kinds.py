"""Kinds of job register themselves: whoever adds one adds a file, and everything else deals with it."""

from __future__ import annotations

import dataclasses
import json
from functools import partial
from pathlib import Path

import pytest

from catchment.controlplane.deployment import lifecycle
from catchment.controlplane.deployment.store import open_store
from catchment.controlplane.jobs import Allocator, JobError, JobPlan, JobRequest, kind, plan_job
from catchment.controlplane.jobs.kind import Kind, StreamKind, all_kinds, kind_of, register
from catchment.controlplane.topology import star
from catchment.wire.generated.constants import Mode

TOPOLOGY = star(["w0", "w1", "opt"], program=Path("luwu.p4"), name="lab")
GOSSIP = Kind(
    name="gossip",
    summary="rumours",
    program="luwu.p4",
    streams=(
        StreamKind("rumours", Mode.ALLREDUCE),
        StreamKind("asides", Mode.ALLREDUCE, slots=2, optional=True),
        StreamKind("news", Mode.BCAST),
    ),
    role="villager",
    has_root=True,
)


@pytest.fixture
def gossip(monkeypatch: pytest.MonkeyPatch) -> Kind:
    monkeypatch.setattr(kind, "_kinds", dict(kind._kinds))
    return register(GOSSIP)


def test_the_kinds_of_the_folder_are_known() -> None:
    assert {one.name for one in all_kinds()} == {"allreduce", "luwu", "slots"}
    with pytest.raises(JobError, match="'gossip' is no kind of job; there are: allreduce, luwu, slots"):
        kind_of("gossip")


def test_a_new_kind_is_planned_stored_and_shown(gossip: Kind, tmp_path: Path) -> None:
    store = partial(open_store, TOPOLOGY, tmp_path)
    request = JobRequest("talk", gossip.name, ("w1", "w0"), "opt", 16, streams=("asides",))
    reserved = lifecycle.reserve_job(store, request, TOPOLOGY).group.first
    with store() as stored:
        plan = stored.get("talk").first
    assert plan == reserved
    assert [(stream.name, stream.mode, stream.slots) for stream in plan.streams] == [
        ("rumours", Mode.ALLREDUCE, 16), ("asides", Mode.ALLREDUCE, 2), ("news", Mode.BCAST, 16)
    ]  # fmt: skip
    assert [stream.shares[0].slots for stream in plan.streams] == [16, 2, 0]
    told = plan.describe("w0")
    assert (told["kind"], told["role"], told["wid"], told["asides"]["slots"]) == ("gossip", "villager", 1, 2)
    assert plan.describe("opt")["role"] == "root"
    assert plan.describe_all()["kind"] == "gossip"
    assert JobPlan.from_json(json.loads(json.dumps(plan.to_json()))) == plan


def test_optional_streams_come_only_when_asked_for() -> None:
    def names(*streams: str) -> list[str]:
        plan = plan_job("allreduce", TOPOLOGY, name="x", workers=["w0", "w1"], streams=streams)
        return [stream.name for stream in plan.streams]

    assert names() == ["sums"]
    assert names("control") == ["sums", "control"]
    for wrong in ("sums", "asides"):
        with pytest.raises(
            JobError, match=f"a job of kind allreduce has no optional stream '{wrong}'; it may have: co"
        ):
            names(wrong)


def test_a_name_is_given_once(gossip: Kind) -> None:
    assert register(GOSSIP) == gossip
    with pytest.raises(JobError, match="a kind of job named gossip already"):
        register(dataclasses.replace(GOSSIP, role="shepherd"))


def test_a_stored_job_of_a_kind_that_is_gone_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as context:
        context.setattr(kind, "_kinds", {**kind._kinds, "gossip": GOSSIP})
        stored = plan_job("gossip", TOPOLOGY, name="x", workers=["w0"], root="opt").to_json()
    with pytest.raises(JobError, match="'gossip' is no kind of job"):
        JobPlan.from_json(stored)


def test_a_kind_says_whether_it_has_a_root() -> None:
    with pytest.raises(JobError, match="a luwu job needs --root"):
        JobRequest("x", "luwu", ("w0",)).plan(TOPOLOGY, Allocator(TOPOLOGY))
    with pytest.raises(JobError, match="this one is of kind allreduce"):
        JobRequest("x", "allreduce", ("w0",), "opt").plan(TOPOLOGY, Allocator(TOPOLOGY))
