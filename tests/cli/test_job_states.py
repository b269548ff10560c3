"""`job list` without a controller: what it says of jobs that are not up, or whose switches say otherwise."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from command_lab import Run, as_json, held_by_jobs
from fake_program import fake_p4info
from fake_switch import FakeSwitch, RunningFake
from running_controller import PATIENT, RunningController, until, use_fake_programs

from catchment.cli import job as job_verbs
from catchment.cli.job_states import states_of
from catchment.cli.target import find_place
from catchment.controlplane.client import SwitchClient, SwitchError
from catchment.controlplane.jobs import JobGroup
from catchment.controlplane.topology import Topology

CREATE = ("job", "create", "train", "-w", "w0,w1", "--root", "opt")
S2 = "  s2: {{program: luwu.p4, ip: 10.0.0.253, mac: 02:00:00:00:fe:02, grpc: {address}}}\n"


def state(run: Run, job: str = "train") -> tuple[str, str]:
    (found,) = [(one["state"], one["trouble"]) for one in as_json(run, "job", "list") if one["name"] == job]
    return found


def cut_short(run: Run, monkeypatch: pytest.MonkeyPatch, verb: str, *words: str) -> None:
    """Have a verb die on the way to the switches, as SIGKILL makes it."""

    def die(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(job_verbs, verb, die)
        run(*words, code=130)


def test_a_job_that_its_switch_has_is_up(run: Run) -> None:
    run(*CREATE)
    assert state(run) == ("up", "")


def test_a_switch_that_does_not_answer_is_named(run: Run, fake: RunningFake, monkeypatch: pytest.MonkeyPatch) -> None:
    run(*CREATE)
    fake.stop()
    monkeypatch.setenv("CATCHMENT_TIMEOUT", "0.2")
    said = state(run)
    assert said[0] == "unreachable" and "switch s1" in said[1] and "start the switch" in said[1]
    assert "unreachable" in run("job", "list")


def test_a_switch_that_started_anew_is_named(run: Run, fake: RunningFake) -> None:
    run(*CREATE)
    fake.switch.entities.clear()
    said = state(run)
    assert said[0] == "missing" and said[1].startswith("switch s1 does not have it") and "job renew train" in said[1]
    run("job", "renew", "train")
    assert state(run) == ("up", "")


def test_a_switch_without_a_program_is_named(run: Run, fake: RunningFake) -> None:
    run(*CREATE)
    fake.switch.p4info = None
    said = state(run)
    assert said[0] == "missing" and "load its program" in said[1]


def test_a_switch_that_lost_one_stream_is_named(run: Run, fake: RunningFake) -> None:
    run(*CREATE)
    gone = as_json(run, "job", "show", "train")["members"]["w0"]["parameters"]["gen"]
    with SwitchClient.connect(fake.address, timeout=60.0) as client:
        client.delete(*(entry for entry in client.read("jobs") if entry.match["gen"] == gone))
    assert state(run)[0] == "missing"


def test_one_job_of_two_is_missing(run: Run, fake: RunningFake) -> None:
    run(*CREATE)
    kept = dict(fake.switch.entities)
    run("job", "create", "other", "-w", "w0", "--root", "opt")
    fake.switch.entities.clear()
    fake.switch.entities.update(kept)
    assert state(run) == ("up", "")
    assert state(run, "other")[0] == "missing"


def test_a_removal_that_was_cut_short_is_completed_by_another(
    run: Run, fake: RunningFake, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(*CREATE)
    with monkeypatch.context() as patch:
        patch.setattr(SwitchClient, "delete", lambda *_: (_ for _ in ()).throw(SwitchError("no", code="UNAVAILABLE")))
        run("job", "remove", "train", code=1)
    said = state(run)
    assert said[0] == "removing" and "`catchment job remove train` completes it" in said[1]
    assert "no next run" in run("job", "renew", "train", code=1)
    assert "exists" in run(*CREATE, code=1)
    run("job", "remove", "train")
    assert held_by_jobs(fake) == ([], {}) and as_json(run, "job", "list") == []


def test_a_creation_that_was_killed_is_taken_off(run: Run, fake: RunningFake, monkeypatch: pytest.MonkeyPatch) -> None:
    cut_short(run, monkeypatch, "deploy_job", *CREATE)
    said = state(run)
    assert said[0] == "creating" and "`catchment job remove train` takes off" in said[1]
    run("job", "remove", "train")
    assert held_by_jobs(fake) == ([], {}) and as_json(run, "job", "list") == []


@pytest.fixture
def after_a_switch_went(run: Run, topology: Path) -> Iterator[None]:
    """Jobs train, over s1 and s2, and other, over s1; then s2 has gone out of the topology file, and w1 with it."""
    text = topology.read_text()
    with RunningFake(FakeSwitch(p4info=fake_p4info())) as second:
        more = text.replace("hosts:\n", S2.format(address=second.address) + "hosts:\n")
        topology.write_text(more.replace("link: s1:2", "link: s2:2") + "links:\n  - [s1:9, s2:9]\n")
        run(*CREATE)
        run("job", "create", "other", "-w", "w0", "--root", "opt")
        topology.write_text("".join(line for line in text.splitlines(keepends=True) if not line.startswith("  w1:")))
        yield


@pytest.mark.usefixtures("after_a_switch_went")
def test_a_switch_that_went_out_of_the_topology_is_in_the_way_of_its_jobs_alone(run: Run) -> None:
    gone = "job train runs over switch s2, which is not in the topology any more; put the switch back"
    said = state(run)
    assert gone in said[1] and "`catchment job remove train --force`" in said[1]
    assert state(run, "other") == ("up", "")
    for words in (("job", "renew", "train"), ("doctor", "train", "--seconds", "0.05"), ("diagnose", "train")):
        assert gone in run(*words, code=1)
    assert gone.split("; ", maxsplit=1)[0] in run("doctor", "--seconds", "0.05", code=3)
    run("job", "renew", "other")
    run("job", "create", "third", "-w", "w0", "--root", "opt")
    run("job", "remove", "third")
    refused = run("job", "remove", "train", code=1)
    assert "job train runs over switch s2" in refused and "--force" in refused
    assert state(run)[0] == "up", "nothing has happened to it"
    run("job", "remove", "train", "--force")
    run("job", "remove", "other")
    assert as_json(run, "job", "list") == []


@pytest.mark.usefixtures("after_a_switch_went")
def test_a_controller_goes_on_without_a_switch_that_went_out_of_the_topology(
    run: Run, topology: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_fake_programs(monkeypatch, tmp_path)
    loaded = Topology.load(topology)
    with RunningController(loaded, {"s1": loaded.switch("s1").grpc}, tmp_path / "state", PATIENT) as controller:
        with controller.operator() as operator:
            until(lambda: operator.switches()[0].state == "up", "the switch is up for the other job")
        assert "runs over switch s2, which is not in the topology any more" in state(run)[1]
        run("job", "remove", "train")
        assert [(one["name"], one["trouble"]) for one in as_json(run, "job", "list")] == [("other", "")]


def test_a_switch_that_refuses_to_answer_is_not_without_a_program(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    run(*CREATE)
    refusal = SwitchError("switch s1: reading table jobs failed: INTERNAL: no room", code="INTERNAL")
    monkeypatch.setattr(SwitchClient, "read", lambda *_: (_ for _ in ()).throw(refusal))
    assert state(run) == ("unreachable", str(refusal))


def test_dead_switches_are_waited_for_at_the_same_time(run: Run, topology: Path) -> None:
    """Each takes as long as a verb waits for a switch."""
    run(*CREATE)
    store, names = find_place(topology).jobs(), [f"s{number}" for number in range(64)]
    record = store.records["train"]
    plan = record.group.first
    branches = tuple(replace(plan.tree[0], switch=name) for name in names)
    store.records["train"] = replace(record, group=JobGroup.alone(replace(plan, tree=branches)))
    all_are_asked = threading.Barrier(len(names))

    def connect(switch: str, **_: Any) -> SwitchClient:
        all_are_asked.wait(20)
        raise SwitchError(f"switch {switch} is dead", code="UNAVAILABLE")

    place = SimpleNamespace(connect=connect, network=None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(store), "misfits", {})
        assert states_of(cast(Any, place), store)["train"] == ("unreachable", "switch s0 is dead")
