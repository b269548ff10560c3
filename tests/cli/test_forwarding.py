"""`job create` without a controller: its switches forward, or no member finds them; what people put there stays."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_lab import Run
from fake_switch import RunningFake

from catchment.cli import target
from catchment.controlplane.client import MulticastGroup, SwitchClient, SwitchError, TableEntry
from catchment.controlplane.deployment.fabric import forwarding_config
from catchment.controlplane.jobs.allocation import FLOOD_GROUP
from catchment.controlplane.networks.state import NetworkState
from catchment.controlplane.state.desired import reconcile
from catchment.controlplane.topology import Topology

CREATE = ("job", "create", "train", "--workers", "w0,w1", "--root", "opt", "--slots", "16")


def lacking(fake: RunningFake, topology: Path) -> int:
    """What has to be written to the switch for it to have its plain forwarding and no jobs."""
    with SwitchClient.connect(fake.address, timeout=60.0) as client:
        return reconcile(client, [forwarding_config(Topology.load(topology), "s1")]).written


def entries(fake: RunningFake, table: str) -> list[TableEntry]:
    with SwitchClient.connect(fake.address, read_only=True, timeout=60.0) as client:
        return client.read(table)


def test_the_switches_of_a_job_forward(run: Run, fake: RunningFake, topology: Path) -> None:
    run(*CREATE)
    assert [len(entries(fake, table)) for table in ("own_addresses", "bindings", "l2")] == [1, 3, 3]
    held = dict(fake.switch.entities)
    run("job", "create", "other", "--workers", "w0,w1", "--root", "opt", "--slots", "16")
    assert held.items() <= fake.switch.entities.items()
    run("job", "remove", "train")
    run("job", "remove", "other")
    assert lacking(fake, topology) == 0, "it stays for the next job"


def test_what_people_put_there_stays(run: Run, fake: RunningFake) -> None:
    theirs = [
        TableEntry("l2", {"dst": "02:00:00:00:00:02"}, "forward", {"port": 9}),
        TableEntry("bindings", {"port": 3}, "trunk"),
    ]
    with SwitchClient.connect(fake.address, timeout=60.0) as client:
        client.insert(*theirs, MulticastGroup.of_ports(FLOOD_GROUP, [1, 9]))
        run(*CREATE)
        assert client.groups()[FLOOD_GROUP] == [1, 9]
    (forward,) = [entry for entry in entries(fake, "l2") if entry.match == theirs[0].match]
    assert forward.params == {"port": 9}
    (binding,) = [entry for entry in entries(fake, "bindings") if entry.match == {"port": 3}]
    assert binding.action == "trunk"
    with SwitchClient.connect(fake.address, timeout=60.0) as client:
        client.delete(*theirs)
    run("job", "create", "other", "--workers", "w0,w1", "--root", "opt", "--slots", "16")
    assert len(entries(fake, "l2")) == len(entries(fake, "bindings")) == 2, "a switch that answers is left as it is"


@pytest.mark.parametrize("of", ["set_groups", "insert", "modify"])
def test_forwarding_that_was_cut_short_is_completed(
    run: Run, fake: RunningFake, topology: Path, monkeypatch: pytest.MonkeyPatch, of: str
) -> None:
    """A switch answers for its address when all else is there, and no job is noted that cannot be reached."""

    def refuse(*_: Any) -> None:
        raise SwitchError("switch s1: Deadline Exceeded", code="DEADLINE_EXCEEDED")

    with monkeypatch.context() as patch:
        patch.setattr(SwitchClient, of, refuse)
        assert "Deadline Exceeded" in run(*CREATE, code=1)
    assert entries(fake, "own_addresses") == []
    assert json.loads(run("job", "list", "--json")) == []
    run(*CREATE)
    run("job", "remove", "train")
    assert lacking(fake, topology) == 0


def test_a_switch_that_starts_anew_gets_it_with_its_next_job(run: Run, fake: RunningFake) -> None:
    run(*CREATE)
    held = len(fake.switch.entities)
    fake.switch.entities.clear()
    run("job", "remove", "train")
    run(*CREATE)
    assert len(fake.switch.entities) == held


def test_a_switch_that_starts_anew_gets_all_with_the_renewal_of_its_job(run: Run, fake: RunningFake) -> None:
    run(*CREATE)
    held = len(fake.switch.entities)
    fake.switch.entities.clear()
    run("job", "renew", "train")
    assert len(fake.switch.entities) == held
    assert len(entries(fake, "own_addresses")) == 1
    assert json.loads(run("job", "list", "--json"))[0]["state"] == "up"


def test_an_emulated_network_has_it_already(
    run: Run, fake: RunningFake, topology: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What people deleted there stays away."""
    network = NetworkState("lab", 1, str(topology), {"s1": fake.address}, ready=True)
    monkeypatch.setattr(target, "is_held", lambda _: True)
    monkeypatch.setattr(target, "read_state", lambda _: network)
    run(*CREATE)
    assert entries(fake, "own_addresses") == []
