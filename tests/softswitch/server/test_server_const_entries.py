"""Entries that the program declares const one by one, and what their priorities are to a P4Runtime client."""

from __future__ import annotations

from pathlib import Path

import pytest
from raw_client import Names, RawClient, UpdatesFailedError, update
from server_programs import Program, compiled

from catchment.softswitch.build import build
from catchment.softswitch.compiler.frontend import check_file
from catchment.softswitch.errors import SwitchError
from catchment.softswitch.inprocess import Switch
from catchment.softswitch.interpreter import InterpretedSwitch
from catchment.wire.generated import p4runtime_pb2

PERMISSION_DENIED = 7
SOURCE = Path(__file__).with_name("entries.p4")
LARGEST = (1 << 31) - 1


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return compiled("entries", tmp_path)


def entries(client: RawClient, names: Names, table: str) -> list[p4runtime_pb2.TableEntry]:
    """Highest priority first."""
    read = [entity.table_entry for entity in client.read(names.entry(table))]
    return sorted(read, key=lambda entry: -entry.priority)


@pytest.mark.sampled(4)
def test_single_const_entries_are_read_as_const_and_stay(client: RawClient, program: Program) -> None:
    names = Names(program.p4info)
    before = entries(client, names, "largest_t")
    assert [entry.is_const for entry in before] == [True, False, True]
    for entry in before:
        for kind in ("MODIFY", "DELETE"):
            entity = p4runtime_pb2.Entity(table_entry=entry)
            entity.table_entry.is_const = False
            if not entry.is_const:
                continue
            with pytest.raises(UpdatesFailedError) as refused:
                client.write(update(kind, entity))
            assert refused.value.errors[0][0] == PERMISSION_DENIED
            assert "const" in refused.value.errors[0][1]
    assert entries(client, names, "largest_t") == before
    client.delete(p4runtime_pb2.Entity(table_entry=before[1]))
    assert entries(client, names, "largest_t") == [before[0], before[2]]


@pytest.mark.sampled(4)
def test_the_counter_of_a_const_entry_can_be_set(client: RawClient, program: Program) -> None:
    names = Names(program.p4info)
    entity = p4runtime_pb2.Entity(table_entry=entries(client, names, "largest_t")[0])
    entity.table_entry.is_const = False
    entity.table_entry.ClearField("action")
    entity.table_entry.counter_data.packet_count = 77
    client.modify(entity)
    changed = p4runtime_pb2.Entity(table_entry=entity.table_entry)
    changed.table_entry.counter_data.SetInParent()
    [read] = client.read(changed)
    assert read.table_entry.counter_data.packet_count == 77


def test_new_pipelines_keep_their_const_entries(client: RawClient, program: Program) -> None:
    names = Names(program.p4info)
    [_, mutable, _] = entries(client, names, "largest_t")
    client.delete(p4runtime_pb2.Entity(table_entry=mutable))
    client.set_pipeline("RECONCILE_AND_COMMIT", program.config())
    assert [entry.is_const for entry in entries(client, names, "largest_t")] == [True, True]


def test_the_largest_priority_wins_whatever_the_program_says(client: RawClient, program: Program) -> None:
    """P4Runtime knows one order only: a table where the smallest number wins is told with the numbers turned round."""
    names = Names(program.p4info)
    assert [entry.priority for entry in entries(client, names, "largest_t")] == [100, 90, 80]
    assert [entry.priority for entry in entries(client, names, "smallest_t")] == [LARGEST - 10, LARGEST - 20]


@pytest.mark.sampled(4)
def test_packets_meet_the_entry_that_reads_first() -> None:
    built, checked = build(SOURCE, strict=True), check_file(SOURCE)
    for switch in (Switch(built), InterpretedSwitch(checked.program)):
        for key in range(8):
            lowest = next((bit for bit in (1, 2, 4) if key & bit), 0)
            [(_, frame)] = switch.inject(0, bytes([key, 0, 0]))
            assert tuple(frame[1:]) == ({0: 0, 1: 1, 2: 2, 4: 3}[lowest], lowest if lowest < 4 else 0)
        assert switch.entries("largest_t") == sorted(switch.entries("largest_t"), key=lambda e: -e.priority)
        for entry in switch.entries("smallest_t"):
            if entry.is_const:
                with pytest.raises(SwitchError, match="const") as refused:
                    switch.remove("smallest_t", entry.match, priority=entry.priority)
                assert refused.value.code == PERMISSION_DENIED
            else:
                switch.remove("smallest_t", entry.match, priority=entry.priority)
        assert [entry.is_const for entry in switch.entries("smallest_t")] == [True]
