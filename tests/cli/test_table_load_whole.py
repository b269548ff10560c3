"""`table load` that a switch refuses in the middle: all of the file is on it, or nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_lab import Run
from fake_switch import RunningFake, entity_key
from google.rpc import code_pb2

from catchment.controlplane.client import MulticastGroup, SwitchClient, SwitchError, TableEntry
from catchment.controlplane.client.entries import to_message
from catchment.wire.generated import p4runtime_pb2

FULL = (code_pb2.RESOURCE_EXHAUSTED, "table full")


def l2(number: int, port: int = 1) -> TableEntry:
    return TableEntry("l2", {"dst": f"02:00:00:00:00:{number:02x}"}, "forward", {"port": port})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Changes an entry, a group and a default, and brings new ones."""
    entries = [{"match": l2(n).match, "action": "forward", "params": {"port": 7}} for n in (1, 2, 3)]
    document = {
        "format": 1,
        "tables": {"l2": entries, "bindings": [{"match": {"port": 3}, "action": "trunk"}]},
        "defaults": {"bindings": {"action": "stranger"}},
        "multicast_groups": {5: [{"port": 1}], 6: [{"port": 2}]},
    }
    path = tmp_path / "entries.json"
    path.write_text(json.dumps(document))
    return path


@pytest.fixture
def client(fake: RunningFake, run: Run) -> SwitchClient:
    with SwitchClient.connect(fake.address, timeout=60.0) as connected:
        connected.insert(l2(1), l2(9), MulticastGroup.of_ports(5, [4]), MulticastGroup.of_ports(8, [4]))
    return connected


def refuse(fake: RunningFake, entry: TableEntry) -> None:
    with SwitchClient.connect(fake.address, timeout=60.0, read_only=True) as client:
        message = to_message(entry, client.p4info)
    fake.switch.refuse[entity_key(p4runtime_pb2.Entity(table_entry=message))] = FULL


@pytest.mark.usefixtures("client")
@pytest.mark.parametrize("options", [(), ("--replace",)])
@pytest.mark.parametrize(
    "refused", [l2(2), TableEntry("bindings", {"port": 3}, "trunk"), TableEntry("bindings", {}, is_default=True)]
)
def test_a_refusal_leaves_the_switch_as_it_was(
    run: Run, fake: RunningFake, file: Path, refused: TableEntry, options: tuple[str, ...]
) -> None:
    before = dict(fake.switch.entities)
    refuse(fake, refused)
    said = run("table", "load", "s1", str(file), *options, code=1)
    assert "RESOURCE_EXHAUSTED: table full" in said and "the switch is as it was before" in said
    assert fake.switch.entities == before
    fake.switch.refuse.clear()
    run("table", "load", "s1", str(file), *options)
    assert fake.switch.entities != before


@pytest.mark.usefixtures("client")
def test_what_cannot_be_taken_back_is_named(
    run: Run, fake: RunningFake, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse(fake, l2(2))
    real: Callable[..., None] = SwitchClient.write
    failed: list[int] = []

    def write(self: SwitchClient, *updates: Any) -> None:
        if failed:
            raise SwitchError("switch s1: Deadline Exceeded", code="DEADLINE_EXCEEDED")
        try:
            real(self, *updates)
        except SwitchError:
            failed.append(1)
            raise

    monkeypatch.setattr(SwitchClient, "write", write)
    said = run("table", "load", "s1", str(file), code=1)
    assert "not as it was before" in said and "delete l2[dst=02:00:00:00:00:03]" in said
    assert "02:00:00:00:00:02]: RESOURCE_EXHAUSTED" in said


@pytest.mark.usefixtures("client")
def test_ctrl_c_leaves_the_switch_as_it_was(
    run: Run, fake: RunningFake, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = dict(fake.switch.entities)
    real: Callable[..., None] = SwitchClient.write
    writes: list[int] = []

    def write(self: SwitchClient, *updates: Any) -> None:
        real(self, *updates)
        writes.append(len(updates))
        if sum(map(bool, writes)) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(SwitchClient, "write", write)
    run("table", "load", "s1", str(file), code=130)
    assert sum(map(bool, writes)) > 3 and fake.switch.entities == before


@pytest.mark.usefixtures("client")
def test_an_entry_that_somebody_else_brought_meanwhile_stays(
    run: Run, fake: RunningFake, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real: Callable[..., None] = SwitchClient.write

    def write(self: SwitchClient, *updates: Any) -> None:
        if any(str(one).startswith("insert l2") for one in updates):
            monkeypatch.setattr(SwitchClient, "write", real)
            self.insert(l2(2, port=9))
        real(self, *updates)

    monkeypatch.setattr(SwitchClient, "write", write)
    assert "ALREADY_EXISTS" in run("table", "load", "s1", str(file), code=1)
    with SwitchClient.connect(fake.address, timeout=60.0, read_only=True) as client:
        found = {entry.match["dst"]: entry.params["port"] for entry in client.read("l2")}
    assert found == {"02:00:00:00:00:01": 1, "02:00:00:00:00:02": 9, "02:00:00:00:00:09": 1}
