"""A job's switch is killed while ranks are in all_reduce: they are told, or go on if it may come back."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from crew import FOLDER, GROUPS, PATIENCE, ROOT, environment

from catchment.controlplane.controller.settings import Timing
from catchment.controlplane.jobs import JobRequest
from catchment.controlplane.programs.cache import cache_folder
from catchment.controlplane.topology import star
from catchment.sim.lab.controller_process import ControllerProcess
from catchment.sim.lab.shm_lab import LUWU, SWITCH, ShmLab
from catchment.softswitch.process import SwitchProcess

NAMES = ["w0", "w1", "w2"]
NOTICED = 240.0  # s, in which a rank ends that has started; it waits for an hour where nothing tells it of its switch
PATIENT = Timing(silence=60.0, hang=60.0)  # nothing but the ranks themselves notices a dead switch soon


@dataclass(frozen=True, slots=True)
class Controlled:
    """A switch that a controller keeps, and the environment of the hosts of a job on it, in the order of `NAMES`."""

    switch: SwitchProcess
    members: list[dict[str, str]]


@contextmanager
def controlled_switch() -> Iterator[Controlled]:
    """A controller, a switch that shares memory with all hosts, and a job of them."""
    with ExitStack() as exits:
        folder = Path(exits.enter_context(tempfile.TemporaryDirectory(prefix="catchment-")))
        plain = star(NAMES, program=LUWU, name="controlled")
        hosts = {name: replace(host, shm=str(folder / name)) for name, host in plain.hosts.items()}
        ports = {host.link.port: f"shm:{host.shm}" for host in hosts.values()}
        switch = exits.enter_context(SwitchProcess(ports=ports, grpc=f"unix:{folder}/grpc", program_dir=cache_folder()))
        addresses = {SWITCH: switch.address}
        controller = exits.enter_context(
            ControllerProcess(replace(plain, hosts=hosts), addresses, folder / "c", PATIENT)
        )
        operator = exits.enter_context(controller.operator())
        controller.wait_until_up(operator)
        token = operator.create(JobRequest("torch", "allreduce", tuple(NAMES), slots=32)).token
        access = {
            "CATCHMENT_CONTROLLER": controller.address,
            "CATCHMENT_CERTIFICATES": str(controller.certificates),
            "CATCHMENT_JOB": "torch",
            "CATCHMENT_TOKEN": token,
        }
        yield Controlled(switch, [{**access, "CATCHMENT_HOST": name} for name in NAMES])


def job_file(lab: ShmLab, folder: Path) -> Path:
    """A job of all hosts of the lab, on its shared-memory ports."""
    job = lab.allreduce(NAMES, slots=32)
    members = {name: {**job.describe(name), "port": f"shm:{lab.path(name)}"} for name in NAMES}
    file = folder / "job.json"
    file.write_text(json.dumps({"name": "job", "kind": "allreduce", "workers": NAMES, "members": members}))
    return file


def start(
    script: str, *arguments: str, members: list[dict[str, str]] | None = None, **settings: str
) -> list[subprocess.Popen[str]]:
    """A process for each rank, all of which have started; `members` has what differs between their environments."""
    own = members or [{} for _ in NAMES]
    ranks = [
        subprocess.Popen(
            [sys.executable, str(FOLDER / script), str(rank), str(len(NAMES)), *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=environment({**settings, **own[rank]}),
        )
        for rank in range(len(NAMES))
    ]
    for rank in ranks:
        assert rank.stdout is not None
        line = rank.stdout.readline()
        assert line, rank.communicate(timeout=PATIENCE)[1]
    return ranks


def ends(ranks: list[subprocess.Popen[str]]) -> list[Any]:
    """The last line of JSON of each."""
    try:
        ended = [rank.communicate(timeout=NOTICED) for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()
    assert [rank.returncode for rank in ranks] == [0] * len(ranks), [complaint for _, complaint in ended]
    return [json.loads(output.splitlines()[-1]) for output, _ in ended]


@pytest.mark.sampled(4)
@GROUPS
def test_all_reduces_survive_restarts_of_the_switch(tmp_path: Path, group: str) -> None:
    store, enough = tmp_path / "store", tmp_path / "enough"
    with ShmLab(NAMES) as lab:
        settings = {"CATCHMENT_PROCESS_GROUP": group, "CATCHMENT_JOB": str(job_file(lab, tmp_path))}
        ranks = start("restart_member.py", str(store), str(enough), **settings, CATCHMENT_ABSENT="60")
        for _ in range(2):
            lab.kill_switch()
            lab.restart_switch()
        enough.touch()
        said = ends(ranks)
    assert said == [{"sums": said[0]["sums"], "wrong": []}] * len(NAMES)


def all_name_the_switch(said: list[Any]) -> None:
    """The death shows in what goes through the switch, and in what gloo would do."""
    for told in said:
        assert [one["kind"] for one in told] == ["unreachable"] * 2, told
        assert all("the switch s1 at" in one["text"] and "has gone" in one["text"] for one in told), told


@pytest.mark.sampled(4)
@GROUPS
def test_a_switch_that_dies_is_named_by_every_rank(tmp_path: Path, group: str) -> None:
    """Long before the group's timeout, which is longer than the test's patience."""
    with ShmLab(NAMES) as lab:
        settings = {"CATCHMENT_PROCESS_GROUP": group, "CATCHMENT_JOB": str(job_file(lab, tmp_path))}
        ranks = start("dead_switch_member.py", str(tmp_path / "store"), **settings)
        lab.kill_switch()
        all_name_the_switch(ends(ranks))


@pytest.mark.sampled(4)
@GROUPS
def test_a_switch_of_a_controller_that_dies_is_named_by_every_rank(tmp_path: Path, group: str) -> None:
    """The controller keeps the job, and waits for the switch: it does not tell the ranks."""
    with controlled_switch() as controlled:
        ranks = start(
            "dead_switch_member.py",
            str(tmp_path / "store"),
            members=controlled.members,
            CATCHMENT_PROCESS_GROUP=group,
        )
        controlled.switch.kill()
        all_name_the_switch(ends(ranks))
