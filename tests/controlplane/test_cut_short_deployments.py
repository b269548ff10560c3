"""Deployments on several switches that somebody ends in the middle, and what they leave behind."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from fake_program import fake_p4info
from fake_switch import FakeSwitch, RunningFake

from catchment.controlplane.client import SwitchClient
from catchment.controlplane.jobs import deploy, plan_job, remove
from catchment.controlplane.topology import racks

TOPOLOGY = racks([["a0", "a1"], ["b0", "b1", "b2"]], ["opt"], program=Path("luwu.p4"))
JOB = plan_job("allreduce", TOPOLOGY, name="train", workers=["a0", "b2"])


@pytest.fixture
def clients() -> Iterator[dict[str, SwitchClient]]:
    with ExitStack() as exits:
        made = {}
        for name, switch in TOPOLOGY.switches.items():
            fake = RunningFake(FakeSwitch(device_id=switch.device_id, p4info=fake_p4info()))
            address = exits.enter_context(fake).address
            made[name] = exits.enter_context(SwitchClient.connect(address, switch.device_id, name=name, timeout=60.0))
        yield made


def test_ctrl_c_while_the_second_switch_is_written_leaves_nothing_on_either(
    clients: dict[str, SwitchClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = SwitchClient.insert
    second = JOB.tree[1].switch

    def insert(self: SwitchClient, *new: Any) -> None:
        real(self, *new)
        if self is clients[second]:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(SwitchClient, "insert", insert)
        with pytest.raises(KeyboardInterrupt):
            deploy(JOB, TOPOLOGY, clients)
    assert {name: (client.read(), client.groups()) for name, client in clients.items()} == dict.fromkeys(
        clients, ([], {})
    )
    deploy(JOB, TOPOLOGY, clients)


def test_what_a_removal_that_is_cut_short_leaves_says_whose_it_is(
    clients: dict[str, SwitchClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Groups alone do not tell that they are left from a job."""
    deploy(JOB, TOPOLOGY, clients)
    real = SwitchClient.delete
    deletions = []

    def delete(self: SwitchClient, *old: Any) -> None:
        if deletions:
            raise KeyboardInterrupt
        deletions.extend(old)
        real(self, *old)

    with monkeypatch.context() as patch:
        patch.setattr(SwitchClient, "delete", delete)
        with pytest.raises(KeyboardInterrupt):
            remove(JOB, clients)
    for client in clients.values():
        named = {int(entry.params["group"]) for entry in client.read("jobs")}
        assert set(client.groups()) <= named
    remove(JOB, clients)
    assert not any(client.groups() or client.read() for client in clients.values())
