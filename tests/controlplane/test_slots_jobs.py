"""Jobs on p4sgd.p4: planned on switches that run it only, with entries that the program takes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from catchment.checkout import ROOT
from catchment.controlplane.client import P4Info
from catchment.controlplane.client.entries import to_message
from catchment.controlplane.jobs import Allocator, JobError, JobPlan, JobRequest, plan_job
from catchment.controlplane.jobs.entries import switch_configs
from catchment.controlplane.topology import Topology, racks, star
from catchment.wire.generated.constants import Mode

LUWU, P4SGD = (ROOT / "p4src" / name for name in ("luwu.p4", "p4sgd.p4"))
EXAMPLE = ROOT / "sim" / "topologies" / "slots.yaml"
GOLDEN = ROOT / "p4src" / "p4info" / "p4sgd_8.p4info.txtpb"
WORKERS = [f"w{i}" for i in range(8)]


def topology(program: Path = P4SGD) -> Topology:
    return star([*WORKERS, "opt"], program=program, lanes=8, slots=64)


def test_the_example_takes_a_job_whose_entries_the_program_knows() -> None:
    example = Topology.load(EXAMPLE)
    job = plan_job("slots", example, name="fast", workers=WORKERS, slots=4096)
    assert (job.lanes, [stream.mode for stream in job.streams]) == (8, [Mode.ALLREDUCE])
    (config,) = switch_configs(job, example)
    assert sorted(entry.table for entry in config.entries) == ["jobs"] * 8 + ["receivers"] * 8
    info = P4Info.load(GOLDEN)
    for entry in config.entries:
        to_message(entry, info)
    admitted = [entry for entry in config.entries if entry.table == "jobs"]
    assert {(e.match["port"], e.params["own"]) for e in admitted} == {(i + 1, 1 << i) for i in range(8)}
    assert {(e.params["base"], e.params["mask"], e.params["full"]) for e in admitted} == {(0, 4095, 255)}


def test_what_a_member_is_told() -> None:
    job = plan_job("slots", topology(), name="fast", workers=["w3", "w1"], slots=16)
    description = job.describe("w1")
    assert (description["kind"], description["role"], description["wid"]) == ("slots", "slots", 1)
    assert {key: description["sums"][key] for key in ("gen", "workers", "slots", "lanes")} == {
        "gen": job.stream("sums").gen, "workers": 2, "slots": 16, "lanes": 8
    }  # fmt: skip
    assert JobPlan.from_json(json.loads(json.dumps(job.to_json()))) == job


def test_several_jobs_share_the_slots() -> None:
    shared = topology()
    allocator = Allocator(shared)
    jobs = [plan_job("slots", shared, name=n, workers=["w0", "w1"], slots=32, allocator=allocator) for n in "ab"]
    assert [job.streams[0].shares[0].base for job in jobs] == [0, 32]
    with pytest.raises(JobError, match="switch s1 has no 1 slots in a row: 64 of 64 are in use"):
        plan_job("slots", shared, name="c", workers=["w0"], slots=1, allocator=allocator)


def test_a_rack_is_one_worker_of_the_switch_above() -> None:
    tree = racks([["a0", "a1"], ["b0"]], ["c0"], program=P4SGD, lanes=8)
    job = plan_job("slots", tree, name="x", workers=["a0", "b0", "a1"])
    top, *leaves = switch_configs(job, tree)
    assert [branch.switch for branch in job.tree if branch.parent is None] == [top.switch]
    modes = {
        config.switch: {entry.params["mode"] for entry in config.entries if entry.table == "jobs"}
        for config in (top, *leaves)
    }
    assert modes == {top.switch: {Mode.ALLREDUCE}, "r1": {Mode.LEAF}, "r2": {Mode.LEAF}}
    full = {
        config.switch: {entry.params["full"] for entry in config.entries if entry.action == "worker"}
        for config in (top, *leaves)
    }
    assert full == {top.switch: {0b11}, "r1": {0b11}, "r2": {0b1}}
    assert [b.switch for b in plan_job("slots", tree, name="x", workers=["a0", "a1"]).tree] == ["r1"]


@pytest.mark.parametrize(
    ("kind", "program", "complaint"),
    [
        ("luwu", P4SGD, r"switch s1 runs p4sgd\.p4, for jobs of kind slots; kind luwu needs luwu\.p4"),
        ("allreduce", P4SGD, r"runs p4sgd\.p4, for jobs of kind slots; kind allreduce needs luwu\.p4"),
        ("slots", LUWU, r"runs luwu\.p4, for jobs of kind allreduce and luwu; kind slots needs p4sgd\.p4"),
    ],
)
def test_the_wrong_program_is_named(kind: str, program: Path, complaint: str) -> None:
    here = topology(program)
    request = JobRequest("x", kind, ["w0", "w1"], "opt" if kind == "luwu" else None, 16)
    with pytest.raises(JobError, match=complaint):
        request.plan(here, Allocator(here))


def test_a_request_needs_no_root() -> None:
    here = topology()
    assert JobRequest("x", "slots", ["w0"], None, 16).plan(here, Allocator(here)).first.kind == "slots"
    with pytest.raises(JobError, match="--root is for jobs with an optimizer node, and this one is of kind slots"):
        JobRequest("x", "slots", ["w0"], "opt", 16).plan(here, Allocator(here))


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"workers": []}, "0 workers; a job takes 1 to 64"),
        ({"workers": ["w0", "w0"]}, "once only"),
        ({"slots": 48}, "power of two"),
        ({"slots": 128}, "no 128 slots in a row"),
        ({"lanes": 64}, "64 lanes, but switch s1 is built for 8"),
    ],
)
def test_impossible_jobs(options: dict[str, object], complaint: str) -> None:
    arguments = {"workers": ["w0", "w1"], "slots": 16, **options}
    with pytest.raises(JobError, match=complaint):
        plan_job("slots", topology(), name="x", **arguments)  # type: ignore[arg-type]
