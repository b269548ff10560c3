"""Two controllers of this machine, with one folder and one authority: neither gets what is meant for the other."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from command_lab import TOPOLOGY, Run
from fake_switch import FakeSwitch, RunningFake
from running_controller import PATIENT, RunningController, until, use_fake_programs

from catchment.controlplane.controller import run as controller_run
from catchment.controlplane.controller.errors import ControllerError
from catchment.controlplane.controller.operator import OperatorClient
from catchment.controlplane.controller.presence import read
from catchment.controlplane.controller.settings import Settings
from catchment.controlplane.jobs import JobError
from catchment.controlplane.jobs.turn import turn
from catchment.controlplane.topology import Topology


@pytest.fixture
def controller(topology: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunningController]:
    """That of topology lab, at a socket."""
    use_fake_programs(monkeypatch, tmp_path)
    with RunningFake(FakeSwitch()) as switch:
        made = RunningController(Topology.load(topology), {"s1": switch.address}, tmp_path / "state", PATIENT)
        made.settings = replace(made.settings, listen=(f"unix:{tmp_path / 'own.sock'}",))
        with made:
            with made.operator() as operator:
                until(lambda: operator.switches()[0].state == "up", "the switch is up")
            yield made


def other_topology(folder: Path) -> Path:
    path = folder / "other.yaml"
    path.write_text(TOPOLOGY.format(address="127.0.0.1:9").replace("name: lab", "name: other"))
    return path


def test_a_socket_on_which_another_listens_is_refused(controller: RunningController, tmp_path: Path) -> None:
    other = RunningController(
        Topology.load(other_topology(tmp_path)), {"s1": "127.0.0.1:9"}, tmp_path / "state", PATIENT
    )
    other.settings = replace(other.settings, listen=controller.settings.listen)
    with pytest.raises(ControllerError, match=r"own.sock: another process does;.* --listen"), other:
        pass
    with controller.operator() as operator:
        assert operator.jobs() == []


def test_a_socket_that_a_killed_controller_left_is_taken_over(controller: RunningController, tmp_path: Path) -> None:
    controller.stop()
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(tmp_path / "own.sock"))
    controller.start()
    with controller.operator() as operator:
        assert operator.jobs() == []


def test_the_controller_of_another_topology_refuses_verbs(
    run: Run, controller: RunningController, topology: Path, tmp_path: Path
) -> None:
    """A topology's own controller has lost its address to it."""
    run("job", "create", "train", "-w", "w0", "--root", "opt")
    presence = read(tmp_path / "state", "lab")
    assert presence is not None and presence.topology == "lab"
    with OperatorClient.to(replace(presence, topology="other"), timeout=60.0) as client:
        for call in (client.jobs, client.switches, lambda: client.remove("train"), lambda: client.keep("s1")):
            with pytest.raises(ControllerError, match=r"'other' was asked for, and the .* is of lab"):
                call()
    assert "train" in run("job", "list")


def test_a_command_waits_for_a_controller_that_starts(
    run: Run, controller: RunningController, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Had it changed the switches itself, the controller would not know of the job, and take it off again."""
    words = ("job", "create", "train", "-w", "w0", "--root", "opt")
    announced = (tmp_path / "state" / "lab.controller.json").read_bytes()
    (tmp_path / "state" / "lab.controller.json").write_bytes(b"")
    monkeypatch.setenv("CATCHMENT_TIMEOUT", "0.1")
    assert "a controller of lab has been starting for 0.1 s" in run(*words, code=1)
    (tmp_path / "state" / "lab.controller.json").write_bytes(announced)
    monkeypatch.setenv("CATCHMENT_TIMEOUT", "60")
    assert "token: " in run(*words)


def test_a_controller_waits_for_a_command_that_changes_jobs(
    controller: RunningController, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    controller.stop()
    monkeypatch.setattr(controller_run, "_TURN_SECONDS", 0.1)
    with (
        turn(tmp_path / "state", "lab", patience=1.0),
        pytest.raises(JobError, match="another command has been changing the jobs of lab"),
    ):
        controller.start()
    controller.start()


def test_each_topology_has_a_socket_of_its_own(
    run: Run, topology: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Settings] = []
    monkeypatch.setattr(controller_run, "run", lambda settings, started: told.append(settings))
    for file in (topology, other_topology(tmp_path)):
        run("controller", "run", str(file))
    assert [one.listen[0] for one in told] == [
        f"unix:{tmp_path}/state/lab.controller.sock",
        f"unix:{tmp_path}/state/other.controller.sock",
    ]
