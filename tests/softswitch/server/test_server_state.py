"""Counters, direct counters, registers, multicast groups, clone sessions."""

from __future__ import annotations

import random

import pytest
from raw_client import Names, RawClient, UpdatesFailedError, update

from catchment.wire.generated import p4runtime_pb2

INVALID_ARGUMENT, NOT_FOUND, ALREADY_EXISTS, OUT_OF_RANGE = 3, 5, 6, 11
Entity = p4runtime_pb2.Entity


def code_of(call: object, *arguments: object) -> int:
    with pytest.raises(UpdatesFailedError) as caught:
        call(*arguments)  # type: ignore[operator]
    ((code, message),) = caught.value.errors
    assert message
    return code


def counter(names: Names, index: int | None = None, packets: int = 0, octets: int = 0) -> Entity:
    entity = Entity()
    entity.counter_entry.counter_id = names.counter_id("by_port")
    if index is not None:
        entity.counter_entry.index.index = index
    entity.counter_entry.data.packet_count = packets
    entity.counter_entry.data.byte_count = octets
    return entity


def cell(names: Names, register: str, index: int | None = None, value: bytes | None = None) -> Entity:
    entity = Entity()
    entity.register_entry.register_id = names.register_id(register)
    if index is not None:
        entity.register_entry.index.index = index
    if value is not None:
        entity.register_entry.data.bitstring = value
    return entity


def multicast(group: int, *replicas: tuple[int, int], metadata: bytes = b"") -> Entity:
    entity = Entity()
    entry = entity.packet_replication_engine_entry.multicast_group_entry
    entry.multicast_group_id = group
    entry.metadata = metadata
    for port, instance in replicas:
        entry.replicas.add(egress_port=port, instance=instance)
    return entity


def clone(session: int, *replicas: tuple[int, int], length: int = 0) -> Entity:
    entity = Entity()
    entry = entity.packet_replication_engine_entry.clone_session_entry
    entry.session_id = session
    entry.packet_length_bytes = length
    for port, instance in replicas:
        entry.replicas.add(egress_port=port, instance=instance)
    return entity


def test_counters(client: RawClient, names: Names) -> None:
    client.modify(*[counter(names, index, 100 + index, 1 << (20 + index)) for index in range(16)])
    assert client.read(counter(names, 3)) == [counter(names, 3, 103, 1 << 23)]
    everything = [counter(names, index, 100 + index, 1 << (20 + index)) for index in range(16)]
    assert client.read(counter(names)) == everything
    assert client.read(Entity(counter_entry={})) == everything
    client.modify(counter(names, None, 4, 5))  # no index: every cell
    assert client.read(counter(names)) == [counter(names, index, 4, 5) for index in range(16)]


def test_counter_errors(client: RawClient, names: Names) -> None:
    assert code_of(client.modify, counter(names, 16)) == OUT_OF_RANGE
    assert code_of(client.modify, counter(names, -1)) == INVALID_ARGUMENT
    assert code_of(client.modify, counter(names, 1, -5)) == INVALID_ARGUMENT
    assert code_of(client.insert, counter(names, 1)) == INVALID_ARGUMENT
    assert code_of(client.delete, counter(names, 1)) == INVALID_ARGUMENT
    assert code_of(client.read, counter(names, 16)) == OUT_OF_RANGE
    assert code_of(client.read, Entity(counter_entry={"counter_id": 0x12FFFFFF})) == NOT_FOUND
    assert code_of(client.read, Entity(counter_entry={"index": {"index": 1}})) == INVALID_ARGUMENT


def test_direct_counters(client: RawClient, names: Names) -> None:
    def keyed(number: int) -> Entity:
        return names.entry("exact_t", {1: number, 2: 1}, ("forward", [number]))

    first = keyed(1)
    first.table_entry.counter_data.packet_count = 11
    client.insert(first, keyed(2))

    def direct(number: int | None, packets: int | None = None) -> Entity:
        entity = Entity()
        entry = entity.direct_counter_entry.table_entry
        entry.table_id = names.table_id("exact_t")
        if number is not None:
            entry.match.extend(keyed(number).table_entry.match)
        if packets is not None:
            entity.direct_counter_entry.data.packet_count = packets
        return entity

    def packets_of(*entities: Entity) -> list[int]:
        return sorted(entity.direct_counter_entry.data.packet_count for entity in client.read(*entities))

    assert packets_of(direct(1)) == [11]
    client.modify(direct(2, 22))
    assert client.read(direct(2)) == [direct(2, 22)]
    assert packets_of(direct(None)) == [11, 22]
    assert packets_of(Entity(direct_counter_entry={})) == [11, 22]

    # Counter data comes with table entries only when asked for, and a modify without leaves it.
    client.modify(keyed(1))
    assert not client.read(keyed(1))[0].table_entry.HasField("counter_data")
    wanted = names.entry("exact_t")
    wanted.table_entry.counter_data.SetInParent()
    assert sorted(e.table_entry.counter_data.packet_count for e in client.read(wanted)) == [11, 22]

    assert code_of(client.modify, direct(3, 1)) == NOT_FOUND
    assert code_of(client.read, direct(3)) == NOT_FOUND
    assert code_of(client.insert, direct(1, 1)) == INVALID_ARGUMENT
    other = Entity(direct_counter_entry={"table_entry": {"table_id": names.table_id("lpm_t")}})
    assert code_of(client.read, other) == INVALID_ARGUMENT


def test_registers_of_every_width(client: RawClient, names: Names, rng: random.Random) -> None:
    values = [rng.getrandbits(32) for _ in range(64)]
    client.modify(*[cell(names, "cells", index, value.to_bytes(4, "big")) for index, value in enumerate(values)])
    read = client.read(cell(names, "cells"))
    assert [entity.register_entry.index.index for entity in read] == list(range(64))
    assert [int.from_bytes(entity.register_entry.data.bitstring, "big") for entity in read] == values
    wide = rng.getrandbits(127) | 1 << 127
    client.modify(cell(names, "wide_cells", 1, wide.to_bytes(16, "big")))
    assert client.read(cell(names, "wide_cells", 1)) == [cell(names, "wide_cells", 1, wide.to_bytes(16, "big"))]
    assert client.read(cell(names, "wide_cells", 0)) == [cell(names, "wide_cells", 0, b"\0")]
    client.modify(cell(names, "cells", None, b"\x07"))
    assert {e.register_entry.data.bitstring for e in client.read(cell(names, "cells"))} == {b"\x07"}
    assert len(client.read(Entity(register_entry={}))) == 64 + 4 + 2


@pytest.mark.parametrize(
    ("value", "canonical"),
    [
        (b"\xfd\x1d", b"\xfd\x1d"),  # -739, the specification's example
        (b"\xff\xff\xff\x9d", b"\x9d"),
        (b"\x07\xff", b"\x07\xff"),
        (b"\xf8\x00", b"\xf8\x00"),
        (b"\x00\x00\x80", b"\x00\x80"),  # 128 needs its sign bit
        (b"\x00", b"\x00"),
        (b"\xff", b"\xff"),
    ],
)
def test_signed_registers(client: RawClient, names: Names, value: bytes, canonical: bytes) -> None:
    client.modify(cell(names, "signed_cells", 2, value))
    assert client.read(cell(names, "signed_cells", 2)) == [cell(names, "signed_cells", 2, canonical)]


@pytest.mark.parametrize("value", [b"\x08\x00", b"\xf7\xff", b"\x8d\x1d", b"", b"\x00\xff\xff"])
def test_signed_values_out_of_range(client: RawClient, names: Names, value: bytes) -> None:
    assert code_of(client.modify, cell(names, "signed_cells", 2, value)) == OUT_OF_RANGE


def test_register_errors(client: RawClient, names: Names) -> None:
    assert code_of(client.modify, cell(names, "cells", 64, b"\1")) == OUT_OF_RANGE
    assert code_of(client.modify, cell(names, "cells", -1, b"\1")) == INVALID_ARGUMENT
    assert code_of(client.modify, cell(names, "cells", 0, b"\1\0\0\0\0")) == OUT_OF_RANGE
    assert code_of(client.modify, cell(names, "cells", 0)) == INVALID_ARGUMENT
    assert code_of(client.insert, cell(names, "cells", 0, b"\1")) == INVALID_ARGUMENT
    wrong = cell(names, "cells", 0)
    wrong.register_entry.data.bool = True
    assert code_of(client.modify, wrong) == INVALID_ARGUMENT


def test_multicast_groups(client: RawClient) -> None:
    groups = [multicast(1, (1, 0), (2, 7), (2, 8), metadata=b"\0x"), multicast(65535), multicast(9, (511, 65535))]
    client.insert(*groups)
    assert client.read(multicast(1)) == groups[:1]
    every = client.read(multicast(0))
    assert sorted(map(str, every)) == sorted(map(str, groups))
    changed = multicast(1, (3, 3))
    client.modify(changed)
    assert client.read(multicast(1)) == [changed]
    client.delete(multicast(1))
    assert client.read(multicast(1)) == []

    assert code_of(client.insert, multicast(9)) == ALREADY_EXISTS
    assert code_of(client.modify, multicast(1)) == NOT_FOUND
    assert code_of(client.delete, multicast(1)) == NOT_FOUND
    for wrong in (
        multicast(0, (1, 1)),
        multicast(65536, (1, 1)),
        multicast(2, (1, 1), (1, 1)),
        multicast(2, (512, 1)),
        multicast(2, (1, 65536)),
    ):
        assert code_of(client.insert, wrong) == INVALID_ARGUMENT


def test_replica_ports_read_back_in_the_form_they_were_written(client: RawClient) -> None:
    group = Entity()
    entry = group.packet_replication_engine_entry.multicast_group_entry
    entry.multicast_group_id = 4
    entry.replicas.add(port=b"\x01\x05", instance=1)
    entry.replicas.add(egress_port=6, instance=1)
    client.insert(group)
    assert client.read(multicast(4)) == [group]
    missing = multicast(5)
    missing.packet_replication_engine_entry.multicast_group_entry.replicas.add(instance=1)
    assert code_of(client.insert, missing) == INVALID_ARGUMENT


def test_clone_sessions(client: RawClient) -> None:
    sessions = [clone(1, (1, 0), length=64), clone(500, (2, 1), (3, 1))]
    client.insert(*sessions)
    assert client.read(clone(500)) == sessions[1:]
    assert sorted(map(str, client.read(clone(0)))) == sorted(map(str, sessions))
    client.modify(clone(1, (9, 9)))
    assert client.read(clone(1)) == [clone(1, (9, 9))]
    client.delete(clone(1))
    assert client.read(clone(1)) == []
    assert code_of(client.insert, clone(0, (1, 1))) == INVALID_ARGUMENT
    assert code_of(client.insert, clone(500)) == ALREADY_EXISTS
    assert code_of(client.modify, clone(1)) == NOT_FOUND
    assert code_of(client.insert, clone(2, (1, 0), length=-1)) == INVALID_ARGUMENT


def test_a_replication_entry_must_say_what_it_is(client: RawClient) -> None:
    empty = Entity()
    empty.packet_replication_engine_entry.SetInParent()
    assert code_of(client.insert, empty) == INVALID_ARGUMENT
    assert code_of(client.read, empty) == INVALID_ARGUMENT


def test_extern_entries_do_not_exist(client: RawClient) -> None:
    assert client.read(Entity(extern_entry={})) == []
    with pytest.raises(UpdatesFailedError) as caught:
        client.write(update("INSERT", Entity(extern_entry={"extern_id": 5})))
    assert caught.value.errors[0][0] == 12
