"""`table load` that a switch refuses in the middle: all of the file is on it, or nothing."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from command_lab import Run
from fake_switch import RunningFake, entity_key
from google.rpc import code_pb2

from catchment.controlplane.client import MulticastGroup, SwitchClient, SwitchError, TableEntry
from catchment.controlplane.client.entries import to_message
from catchment.controlplane.dump import undo
from catchment.controlplane.dump.undo import Change
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
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_leaves_the_switch_as_it_was(
    run: Run, fake: RunningFake, file: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    before = dict(fake.switch.entities)
    real: Callable[..., None] = SwitchClient.write
    writes: list[int] = []

    def write(self: SwitchClient, *updates: Any) -> None:
        real(self, *updates)
        writes.append(len(updates))
        if sum(map(bool, writes)) == 3:
            signal.raise_signal(number)

    monkeypatch.setattr(SwitchClient, "write", write)
    run("table", "load", "s1", str(file), code=128 + number)
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


def many(tmp_path: Path, count: int = 200) -> Path:
    """A file of more new entries than go into three requests."""
    entries = [{"match": l2(n).match, "action": "forward", "params": {"port": 7}} for n in range(20, 20 + count)]
    path = tmp_path / "many.json"
    path.write_text(json.dumps({"format": 1, "tables": {"l2": entries}}))
    return path


@pytest.mark.usefixtures("client")
@pytest.mark.parametrize("refused", [30, 219])
def test_many_entries_are_taken_back(run: Run, fake: RunningFake, tmp_path: Path, refused: int) -> None:
    """Those that were never sent are not there, and keep the others from nothing."""
    before = dict(fake.switch.entities)
    refuse(fake, l2(refused))
    assert "the switch is as it was before" in run("table", "load", "s1", str(many(tmp_path)), code=1)
    assert fake.switch.entities == before


@pytest.mark.usefixtures("client")
def test_an_entry_with_the_key_of_a_refused_one_and_another_priority_is_taken_back(
    run: Run, fake: RunningFake, tmp_path: Path
) -> None:
    first, second = (TableEntry("everything", {"flags": 1}, "forward", {"port": 1}, priority=each) for each in (1, 2))
    assert str(+first) == str(+second)
    path = tmp_path / "entries.json"
    lines = [{"match": {"flags": 1}, "priority": n, "action": "forward", "params": {"port": 1}} for n in (1, 2)]
    path.write_text(json.dumps({"format": 1, "tables": {"everything": lines}}))
    before = dict(fake.switch.entities)
    refuse(fake, second)
    assert "the switch is as it was before" in run("table", "load", "s1", str(path), code=1)
    assert fake.switch.entities == before


@pytest.mark.usefixtures("client")
def test_a_switch_that_is_silent_is_asked_to_take_back_once(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real: Callable[..., None] = SwitchClient.write
    writes: list[int] = []

    def write(self: SwitchClient, *updates: Any) -> None:
        writes.append(len(updates))
        if sum(map(bool, writes)) > 2:
            raise SwitchError("switch s1: Deadline Exceeded", code="DEADLINE_EXCEEDED")
        real(self, *updates)

    monkeypatch.setattr(SwitchClient, "write", write)
    said = run("table", "load", "s1", str(many(tmp_path)), code=1)
    assert "not as it was before" in said and "and 187 more" in said
    assert sum(map(bool, writes)) == 4


@pytest.mark.usefixtures("client")
def test_ctrl_c_says_what_the_switch_has(run: Run, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real: Callable[..., None] = SwitchClient.write
    cut: list[bool] = []

    def write(self: SwitchClient, *updates: Any) -> None:
        real(self, *updates)
        if updates and not cut:
            cut.append(True)
            raise KeyboardInterrupt

    said: list[str] = []
    monkeypatch.setattr(SwitchClient, "write", write)
    monkeypatch.setattr(typer, "echo", lambda text="", **_: said.append(str(text)))
    run("table", "load", "s1", str(file), code=130)
    assert "the switch is as it was before: what had been written is taken back" in said


@pytest.mark.usefixtures("client")
@pytest.mark.parametrize(
    ("error", "code"), [(KeyboardInterrupt(), 130), (SwitchError("switch s1: no room", code="RESOURCE_EXHAUSTED"), 1)]
)
def test_what_ends_it_between_its_writes_leaves_the_switch_as_it_was(
    run: Run, fake: RunningFake, file: Path, monkeypatch: pytest.MonkeyPatch, *, error: BaseException, code: int
) -> None:
    """Entries are written by then; the defaults and meters are read next."""
    before = dict(fake.switch.entities)
    at_the_read: list[dict[Any, Any]] = []
    said: list[str] = []

    def read_default(*_: object) -> None:
        at_the_read.append(dict(fake.switch.entities))
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(SwitchClient, "read_default", read_default)
        patch.setattr(typer, "echo", lambda text="", **_: said.append(str(text)))
        said.append(run("table", "load", "s1", str(file), code=code))
    assert at_the_read[0] != before, "nothing had been written: this test tests nothing"
    assert fake.switch.entities == before
    assert "the switch is as it was before: what had been written is taken back" in "\n".join(said)


@pytest.mark.usefixtures("client")
def test_a_signal_between_two_writes_leaves_the_switch_as_it_was(
    run: Run, fake: RunningFake, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first one is answered; the interpreter looks for signals before the other one begins."""
    before = dict(fake.switch.entities)
    real: Callable[..., Iterator[list[Change]]] = undo._requests
    parts: list[int] = []

    def requests(changes: Iterable[Change]) -> Iterator[list[Change]]:
        for part in real(changes):
            yield part
            parts.append(len(part))
            if len(parts) == 2:
                raise KeyboardInterrupt

    monkeypatch.setattr(undo, "_requests", requests)
    run("table", "load", "s1", str(file), code=130)
    assert len(parts) > 2 and fake.switch.entities == before
