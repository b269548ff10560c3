# ruff: noqa: F811, F401
"""What people put on switches survives a restart of the switch, and of the controller."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from command_lab import Run
from fake_switch import FakeSwitch, RunningFake
from running_controller import Place, RunningController, request, until
from test_controller_verbs import controller, fake

from catchment.controlplane.client import SwitchClient, TableEntry
from catchment.controlplane.client.replication import MulticastGroup, Replica
from catchment.controlplane.controller.errors import ControllerError
from catchment.controlplane.errors import ControlPlaneError
from catchment.controlplane.state.faults import losses, set_loss

MINE = {"dst": "02:00:00:00:99:01"}


class Ports:
    """Doors to the ports of switches in memory: what is in force, by address."""

    def __init__(self) -> None:
        self.faults: dict[str, dict[int, str]] = {}
        self.closed = False

    def read(self, address: str) -> dict[int, str]:
        return dict(self.faults.get(address, {}))

    def write(self, address: str, faults: Mapping[int, str]) -> None:
        if self.closed:
            raise ControlPlaneError("no door")
        self.faults.setdefault(address, {}).update(faults)


@pytest.fixture
def ports(monkeypatch: pytest.MonkeyPatch) -> Ports:
    """Given to the controllers of this test."""
    made = Ports()
    real = RunningController.__init__

    def init(self: RunningController, *arguments: object, **options: object) -> None:
        real(self, *arguments, **options)  # type: ignore[arg-type]
        object.__setattr__(self.settings, "ports", made)

    monkeypatch.setattr(RunningController, "__init__", init)
    return made


def write_by_hand(place: Place, switch: str) -> None:
    """Write to the switch as a person would, without the controller."""
    fake, device = place.fakes[switch], place.topology.switch(switch).device_id
    with SwitchClient.connect(fake.address, device, timeout=60.0) as client:
        client.insert(TableEntry("l2", MINE, "forward", {"port": 2}))
        set_loss(client, [1], 0.25, types=[1])
        client.insert(MulticastGroup(2000, (Replica(1, 5), Replica(2, 0))))


def by_hand(place: Place, switch: str) -> tuple[list[dict[str, object]], list[object], list[MulticastGroup]]:
    address, device = place.fakes[switch].address, place.topology.switch(switch).device_id
    with SwitchClient.connect(address, device, read_only=True, timeout=60.0) as client:
        entries = [dict(e.params) for e in client.read("l2") if e.match == MINE]
        return entries, list(losses(client)), [g for g in client.each(MulticastGroup()) if g.number >= 1024]


def test_what_was_noted_comes_back(ports: Ports, place: Place) -> None:
    address = place.fakes["r1"].address
    with place.controller.operator() as operator:
        operator.create(request("one"))
        write_by_hand(place, "r1")
        ports.faults[address] = {2: "loss=0.5,seed=7"}
        operator.keep("r1")
        before, everything = by_hand(place, "r1"), place.contents("r1")
        assert before[0]
        assert len(before[1]) == 2
        assert before[2] == [MulticastGroup(2000, (Replica(1, 5), Replica(2, 0)))]
        for restart_controller in (False, True):
            if restart_controller:
                place.controller.stop()
                place.controller.start()
            place.restart_switch("r1", while_down=ports.faults.clear)
            place.until_up()
            until(lambda: by_hand(place, "r1") == before, "what people wrote is back")
            until(lambda: ports.faults == {address: {2: "loss=0.5,seed=7"}}, "and the ports' faults")
            assert place.contents("r1") == everything
    # The jobs' own are the controller's: they are in no note.
    with place.controller.operator() as operator:
        operator.remove("one")
        place.restart_switch("r1")
        place.until_up()
        with SwitchClient.connect(place.fakes["r1"].address, 2, read_only=True, timeout=60.0) as client:
            assert client.read("jobs") == client.read("receivers") == []


def test_what_is_there_when_the_controller_comes_is_noted(place: Place) -> None:
    place.controller.stop()
    write_by_hand(place, "r2")
    before = by_hand(place, "r2")
    place.controller.start()
    place.until_up()
    place.restart_switch("r2")
    place.until_up()
    assert by_hand(place, "r2") == before


def test_a_port_that_cannot_be_reached_keeps_no_switch_down(ports: Ports, place: Place) -> None:
    address = place.fakes["r1"].address
    ports.faults[address] = {1: "loss=1,seed=1"}
    with place.controller.operator() as operator:
        operator.keep("r1")
    ports.closed = True
    place.restart_switch("r1")
    place.until_up()


def test_a_switch_that_is_down_cannot_be_noted(place: Place) -> None:
    place.fakes["r1"].stop()
    with place.controller.operator() as operator:
        until(lambda: operator.switches()[1].state == "down", "the loss is noticed")
        with pytest.raises(ControllerError, match="switch r1"):
            operator.keep("r1")
        with pytest.raises(ControllerError, match="no switch 'r9'"):
            operator.keep("r9")


def test_verbs_tell_the_controller(run: Run, controller: RunningController, fake: RunningFake, tmp_path: Path) -> None:
    run("table", "add", "s1", "l2", "dst=02:00:00:00:99:01", "forward", "port=2")
    run("fault", "set", "s1", "--loss", "0.25", "--port", "w1", "--type", "PA")
    assert "no admin socket on this machine" in run("fault", "set", "s1", "--delay", "1ms", code=1)
    dumped = run("table", "dump", "s1")
    again = FakeSwitch(device_id=fake.switch.device_id)
    fake.stop()
    with RunningFake(again, fake.address), controller.operator() as operator:
        until(lambda: operator.switches()[0].restores == 2, "the switch is restored")
        until(lambda: operator.switches()[0].state == "up", "the switch is up")
        assert run("table", "dump", "s1") == dumped
        assert len(json.loads(run("fault", "list", "--json"))) == 2
        run("fault", "clear")
        run("table", "delete", "s1", "l2", "dst=02:00:00:00:99:01")
        cleared = run("table", "dump", "s1")
        assert cleared != dumped
