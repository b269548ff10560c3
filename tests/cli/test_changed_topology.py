"""A job whose member has gone out of the topology file: it is said, and in the way of nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_lab import Run, held_by_jobs
from fake_switch import FakeSwitch, RunningFake
from running_controller import PATIENT, RunningController, programs, until, use_fake_programs

from catchment.cli import net_switch
from catchment.controlplane.client import SwitchClient
from catchment.controlplane.networks.state import NetworkState, StateFile
from catchment.controlplane.topology import Topology

GONE = r"job train has a member at port 2 of s1, where the topology no longer has anybody"


def without(topology: Path, host: str) -> None:
    lines = topology.read_text().splitlines(keepends=True)
    topology.write_text("".join(line for line in lines if not line.startswith(f"  {host}:")))


def generations(fake: RunningFake) -> set[int]:
    with SwitchClient.connect(fake.address, read_only=True, timeout=60.0) as client:
        return {int(entry.match["gen"]) for entry in client.read("jobs")}


def test_without_a_controller_it_is_said_and_can_be_removed(run: Run, fake: RunningFake, topology: Path) -> None:
    run("job", "create", "train", "-w", "w0,w1", "--root", "opt")
    before = json.loads(run("job", "show", "train", "--json"))
    without(topology, "w1")
    for words in (("job", "renew", "train"), ("doctor", "train", "--seconds", "0.05")):
        said = run(*words, code=1)
        assert GONE in said and "`catchment job remove`" in said
    assert json.loads(run("job", "show", "train", "--json")) == before, "it has the generations that switches know"
    run("job", "create", "other", "-w", "w0", "--root", "opt")
    run("job", "remove", "train")
    stored = json.loads(run("job", "show", "other", "--json"))["members"]["w0"]
    assert generations(fake) == {stored[name]["gen"] for name in ("gradients", "parameters")}
    run("job", "remove", "other")
    assert held_by_jobs(fake) == ([], {})


def test_another_host_in_its_place_is_named(run: Run, topology: Path) -> None:
    run("job", "create", "train", "-w", "w0,w1", "--root", "opt")
    topology.write_text(topology.read_text().replace("  w1:", "  w9:"))
    assert "port 2 of s1, where the topology has w9 now, which is not in the job" in run(
        "job", "renew", "train", code=1
    )


def test_a_switch_that_is_restarted_gets_the_other_jobs(
    run: Run, topology: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Restart the switch of an emulated network, which this process stands for, without a controller."""
    asked: list[tuple[str, ...]] = []
    monkeypatch.setattr(net_switch, "ask", lambda *words: asked.append(words))
    monkeypatch.setattr(net_switch, "program_for", lambda switch: programs(Topology.load(topology), tmp_path)["s1"])
    network = StateFile.acquire("lab")
    with RunningFake(FakeSwitch()) as switch:
        network.write(NetworkState("lab", 1, str(topology), {"s1": switch.address}, ready=True))
        try:
            run("net", "restart", "s1")
            run("job", "create", "train", "-w", "w0,w1", "--root", "opt")
            run("job", "create", "other", "-w", "w0", "--root", "opt")
            without(topology, "w1")
            switch.switch.entities.clear()
            said = run("net", "restart", "s1", code=1)
            assert "left out of what is on s1 again" in said and GONE in said and "other" not in said
            assert asked == [("lab", "restart", "s1")] * 2
            stored = json.loads(run("job", "show", "other", "--json"))["members"]["w0"]
            assert generations(switch) == {stored[name]["gen"] for name in ("gradients", "parameters")}
            run("job", "remove", "train")
            switch.switch.entities.clear()
            assert "is up again" in run("net", "restart", "s1")
        finally:
            network.release()


def test_a_controller_sets_the_job_aside(
    run: Run, topology: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_fake_programs(monkeypatch, tmp_path)
    with RunningFake(FakeSwitch()) as switch:
        addresses, folder = {"s1": switch.address}, tmp_path / "state"
        with RunningController(Topology.load(topology), addresses, folder, PATIENT) as controller:
            with controller.operator() as operator:
                until(lambda: operator.switches()[0].state == "up", "the switch is up")
            for name, workers in (("train", "w0,w1"), ("other", "w0")):
                run("job", "create", name, "-w", workers, "--root", "opt")
        without(topology, "w1")
        with RunningController(Topology.load(topology), addresses, folder, PATIENT) as controller:
            with controller.operator() as operator:
                until(lambda: operator.switches()[0].state == "up", "the switch is up for the other job")
            jobs = {job["name"]: job for job in json.loads(run("job", "list", "--json"))}
            assert GONE in jobs["train"]["trouble"]
            assert not jobs["other"]["trouble"].startswith("job")
            stored = json.loads(run("job", "show", "other", "--json"))["members"]["w0"]
            assert generations(switch) == {stored[name]["gen"] for name in ("gradients", "parameters")}
            run("job", "remove", "train")
            assert [job["name"] for job in json.loads(run("job", "list", "--json"))] == ["other"]
