"""The controller of an emulated network: it ends with the network, and keeps its hands off the next of that name."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from fake_switch import FakeSwitch, RunningFake
from running_controller import PATIENT, RunningController, request, until, use_fake_programs

from catchment.controlplane.controller import run
from catchment.controlplane.networks.life import NetworkLife
from catchment.controlplane.networks.state import NetworkError, NetworkState, StateFile, jobs_folder
from catchment.controlplane.topology import Topology, star

STATE = NetworkState("lab", os.getpid(), ready=True)


@pytest.fixture
def network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StateFile]:
    """A network that this process owns, for as long as the test wants."""
    monkeypatch.setenv("CATCHMENT_RUN_DIR", str(tmp_path))
    use_fake_programs(monkeypatch, tmp_path)
    file = StateFile.acquire("lab")
    file.write(STATE)
    yield file
    file.release()


@pytest.fixture
def switch() -> Iterator[RunningFake]:
    with RunningFake(FakeSwitch()) as running:
        yield running


def lab() -> Topology:
    return star(["w0", "w1", "opt"], program=Path("luwu.p4"), name="lab")


@pytest.fixture
def looking_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A controller looks after its network when it starts, and then not until it has to do with a switch."""
    monkeypatch.setattr(run, "_LOOK_SECONDS", 3600.0)


@pytest.fixture
def controller(network: StateFile, switch: RunningFake) -> Iterator[RunningController]:
    topology = lab()
    (name,) = topology.switches
    made = RunningController(topology, {name: switch.address}, jobs_folder("lab"), PATIENT)
    made.settings = replace(made.settings, network=NetworkLife(STATE))
    with made:
        with made.operator() as operator:
            until(lambda: operator.switches()[0].state == "up", "the switch is up")
            operator.create(request(workers=("w0", "w1")))
        yield made


def test_it_ends_with_the_network(
    controller: RunningController, network: StateFile, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        network.release()
        controller.until_ended()
    assert "network lab is down: its jobs are gone, and its controller ends" in caplog.text
    assert not jobs_folder("lab").exists()


@pytest.mark.usefixtures("looking_once")
def test_it_leaves_the_next_network_of_that_name_alone(
    controller: RunningController, network: StateFile, switch: RunningFake
) -> None:
    """Its switch has the old one's address, and is there before the controller looks after the network again."""
    switch.stop()
    network.release()
    after = StateFile.acquire("lab")
    try:
        after.write(STATE)
        jobs_folder("lab").mkdir(parents=True)
        with RunningFake(FakeSwitch(), switch.address) as restarted:
            found = restarted.switch
            until(lambda: found.primary != (0, 0) or not controller.runs, "it connects, or ends")
            assert (found.primary, found.config, found.entities) == ((0, 0), b"", {})
        controller.until_ended()
        assert jobs_folder("lab").exists()
    finally:
        after.release()


@pytest.mark.usefixtures("looking_once")
def test_what_it_notes_late_goes_too(controller: RunningController, network: StateFile, switch: RunningFake) -> None:
    """Jobs that are noted after the owner of the network has removed them."""
    switch.stop()
    network.release()
    jobs_folder("lab").mkdir(parents=True)
    with RunningFake(FakeSwitch(), switch.address):
        controller.until_ended()
    assert not jobs_folder("lab").exists()


def test_the_network_is_over_whoever_has_its_name_next(network: StateFile, tmp_path: Path) -> None:
    life, left = NetworkLife(STATE), NetworkLife(STATE)
    assert not life.is_over()
    shutil.copy(tmp_path / "lab.json", tmp_path / "copy")
    network.release()
    assert life.is_over()
    after = StateFile.acquire("lab")
    after.write(replace(STATE, owner=1))
    assert life.is_over() and left.is_over()
    with pytest.raises(NetworkError, match="network lab has ended meanwhile"):
        NetworkLife(STATE)
    after.release()
    with pytest.raises(NetworkError, match="network lab has ended meanwhile"):
        NetworkLife(STATE)
    shutil.copy(tmp_path / "copy", tmp_path / "lab.json")  # as its owner leaves it that is killed
    with pytest.raises(NetworkError, match="network lab has ended meanwhile"):
        NetworkLife(STATE)
