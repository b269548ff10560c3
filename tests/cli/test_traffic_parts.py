"""`catchment traffic` on a group of jobs: one of its jobs is played, and the group as a whole cannot be."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command_lab import Run, as_json

from catchment.cli import traffic
from catchment.cli.job_part import job_of_part
from catchment.controlplane.errors import ControlPlaneError
from catchment.controlplane.networks.state import NetworkState, StateFile


@pytest.fixture
def played(topology: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[dict[str, Any]]]:
    """The network of the topology is up; the descriptions that players on its hosts were started with."""
    given: list[dict[str, Any]] = []

    class Player:
        def __init__(self, command: list[str], **_: Any) -> None:
            given.append(json.loads(Path(next(word for word in command if word.endswith(".json"))).read_text()))

        def communicate(self) -> tuple[str, None]:
            return json.dumps({"error": None}), None

    monkeypatch.setattr(traffic, "interface_of", lambda *_: "eth0")
    monkeypatch.setattr(subprocess, "Popen", Player)
    file = StateFile.acquire("lab")
    hosts = dict.fromkeys(("w0", "w1", "opt"), os.getpid())
    file.write(NetworkState("lab", os.getpid(), str(topology), hosts=hosts, ready=True))
    yield given
    file.release()


@pytest.mark.parametrize("role", ["worker", "root", "straggler", "attacker"])
def test_a_group_without_a_job_of_all_workers_is_not_played(run: Run, played: list[Any], role: str) -> None:
    run("job", "create", "train", "--workers", "w0", "--roots", "w1,opt")
    said = run("traffic", role, "train", "--host", "w0", code=1)
    assert said == ("catchment: group train has no job of all workers; say with --part which of its jobs: w1, opt\n")
    assert not played


def test_a_job_of_a_group_is_played(run: Run, played: list[Any]) -> None:
    run("job", "create", "train", "--workers", "w0", "--roots", "w1,opt")
    members = as_json(run, "job", "show", "train")["members"]
    for role, host in (("worker", "w0"), ("root", "opt")):
        run("traffic", role, "train", "--host", host, "--part", "opt")
        assert played.pop() == members[host]["parts"]["opt"]
    run("traffic", "attacker", "train", "--host", "w1", "--part", "opt")
    assert played.pop() == members["w0"]["parts"]["opt"], "the attacked member"
    assert "host w1 is not in job train" in run("traffic", "root", "train", "--host", "w1", "--part", "opt", code=1)
    said = run("traffic", "root", "train", "--host", "opt", "--part", "w9", code=1)
    assert "job train has no part 'w9'; it has: w1, opt" in said


def test_a_job_by_itself_has_no_parts(run: Run, played: list[Any]) -> None:
    run("job", "create", "train", "--workers", "w0,w1", "--root", "opt")
    described = as_json(run, "job", "show", "train")
    run("traffic", "root", "train", "--host", "opt")
    assert played == [described["members"]["opt"]]
    assert "it is one job, without parts" in run("traffic", "root", "train", "--host", "opt", "--part", "a", code=1)
    assert job_of_part(described, None) == described


def test_a_ring_and_the_job_of_all_workers_of_a_group() -> None:
    """A group of a job of all workers on rail a, a job of some of them on it, and a ring on rail b."""
    whole = {"w0": {"role": "worker", "switch": ["10.0.0.9", 1]}, "w1": {"role": "worker", "switch": ["10.0.0.9", 1]}}
    ring = {host: {"role": "worker", "ring": "tcp", "next": []} for host in whole}
    described = {
        "name": "train",
        "workers": ["w0", "w1"],
        "rail": "a,b",
        "parts": {"": {"rail": "a"}, "b": {"rail": "b"}, "some": {"rail": "a", "workers": ["w0"]}},
        "members": {
            "w0": {**whole["w0"], "parts": {"b": ring["w0"], "some": whole["w0"]}},
            "w1": {**whole["w1"], "parts": {"b": ring["w1"]}},
        },
    }
    alone = job_of_part(described, None)
    assert (alone["rail"], list(alone["members"])) == ("a", ["w0", "w1"])
    some = job_of_part(described, "some")
    assert (some["rail"], some["workers"], some["members"]) == ("a", ["w0"], {"w0": whole["w0"]})
    with pytest.raises(ControlPlaneError, match="job train, part b, has no switch: it is a ring"):
        job_of_part(described, "b")
    with pytest.raises(ControlPlaneError, match="no part ''; it has: b, some"):
        job_of_part(described, "")
