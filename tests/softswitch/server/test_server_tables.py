"""Table entries of every match kind: written, read back, changed, refused."""

from __future__ import annotations

import random

import grpc
import pytest
from raw_client import Names, RawClient, UpdatesFailedError, as_bytes, update

from catchment.wire.generated import p4runtime_pb2

INVALID_ARGUMENT, NOT_FOUND, ALREADY_EXISTS, PERMISSION_DENIED = 3, 5, 6, 7
RESOURCE_EXHAUSTED, OUT_OF_RANGE, UNIMPLEMENTED = 8, 11, 12
EXACT = {1: 0x020000000001, 2: 3}


def failures(call: object, *arguments: object) -> list[tuple[int, str]]:
    with pytest.raises(UpdatesFailedError) as caught:
        call(*arguments)  # type: ignore[operator]
    return caught.value.errors


def failure(call: object, *arguments: object) -> tuple[int, str]:
    (one,) = failures(call, *arguments)
    return one


def entries_of(client: RawClient, names: Names, table: str) -> list[p4runtime_pb2.TableEntry]:
    request = p4runtime_pb2.Entity()
    request.table_entry.table_id = names.table_id(table)
    return [entity.table_entry for entity in client.read(request)]


def one_of_each(names: Names, rng: random.Random) -> list[p4runtime_pb2.Entity]:
    """An entry of every match kind, every value different."""
    prefix = rng.randrange(1, 33)
    mask = rng.randrange(1, 1 << 16)
    low = rng.randrange(1, 1 << 15)
    return [
        names.entry("exact_t", {1: rng.getrandbits(48), 2: rng.randrange(512)}, ("forward", [rng.randrange(512)])),
        names.entry(
            "lpm_t",
            {1: ("lpm", rng.getrandbits(32) >> (32 - prefix) << (32 - prefix), prefix)},
            ("set_lpm", [rng.getrandbits(16)]),
        ),
        names.entry(
            "ternary_t",
            {1: ("ternary", rng.getrandbits(16) & mask, mask), 2: rng.getrandbits(16)},
            ("set_ternary", [rng.getrandbits(16)]),
            priority=rng.randrange(1, 1 << 31),
        ),
        names.entry(
            "range_t",
            {1: ("range", low, low + rng.randrange(1 << 14))},
            ("set_range", [rng.getrandbits(16)]),
            priority=rng.randrange(1, 1 << 31),
        ),
        names.entry("optional_t", {1: ("optional", rng.getrandbits(16))}, ("set_optional", [3]), priority=9),
        names.entry("wide_t", {1: rng.getrandbits(128)}, ("set_wide", [1, rng.getrandbits(128)])),
        # Entries that do not care, told apart from the default entry.
        names.entry("ternary_t", {2: rng.getrandbits(16)}, ("set_ternary", [8]), priority=1),
        names.entry("range_t", {}, ("set_range", [9]), priority=2),
        names.entry("optional_t", {}, ("set_optional", [4]), priority=8),
        names.entry("lpm_t", {}, ("set_lpm", [2])),
    ]


def sort_key(entity: p4runtime_pb2.Entity) -> bytes:
    return entity.SerializeToString(deterministic=True)


def test_every_match_kind_reads_back_as_written(client: RawClient, names: Names, rng: random.Random) -> None:
    entries = one_of_each(names, rng)
    for number, entry in enumerate(entries):
        entry.table_entry.controller_metadata = number + 1
        entry.table_entry.metadata = bytes([number, 255])
    client.insert(*entries)
    for entry in entries:
        if entry.table_entry.match:
            assert client.read(entry) == [entry]
    every = [e for e in client.read(p4runtime_pb2.Entity(table_entry={})) if not e.table_entry.is_const]
    assert sorted(every, key=sort_key) == sorted(entries, key=sort_key)

    client.delete(*entries)
    assert all(e.table_entry.is_const for e in client.read(p4runtime_pb2.Entity(table_entry={})))


def test_inserting_twice_and_touching_what_is_not_there(client: RawClient, names: Names, rng: random.Random) -> None:
    for entry in one_of_each(names, rng):
        assert failure(client.modify, entry)[0] == NOT_FOUND
        assert failure(client.delete, entry)[0] == NOT_FOUND
        client.insert(entry)
        code, message = failure(client.insert, entry)
        assert code == ALREADY_EXISTS
        assert "_t" in message  # the table is named
        client.modify(entry)
        client.delete(entry)


def test_modify_replaces_the_action_and_keeps_the_key(client: RawClient, names: Names) -> None:
    client.insert(names.entry("exact_t", EXACT, ("forward", [7])))
    changed = names.entry("exact_t", EXACT, ("flood", [700]))
    client.modify(changed)
    assert entries_of(client, names, "exact_t") == [changed.table_entry]
    client.modify(names.entry("exact_t", EXACT))  # no action: it stays
    assert entries_of(client, names, "exact_t") == [changed.table_entry]


def test_byte_strings_of_any_length_are_taken_and_the_shortest_given_back(client: RawClient, names: Names) -> None:
    client.insert(
        names.entry("exact_t", {1: b"\0\0\0\0\0\0\0\x02", 2: b"\0\0\x01\xff"}, ("forward", [b"\0\0\0\x05"])),
        names.entry("wide_t", {1: bytes(40)}, ("set_wide", [b"\0\0\0", b"\0" * 30 + b"\x01\x02"])),
    )
    assert entries_of(client, names, "exact_t") == [
        names.entry("exact_t", {1: b"\x02", 2: b"\x01\xff"}, ("forward", [b"\x05"])).table_entry
    ]
    assert entries_of(client, names, "wide_t") == [
        names.entry("wide_t", {1: b"\0"}, ("set_wide", [b"\0", b"\x01\x02"])).table_entry
    ]


@pytest.mark.parametrize(
    ("table", "match", "action", "priority", "code", "words"),
    [
        ("exact_t", {1: 1 << 48, 2: 1}, ("forward", [1]), 0, OUT_OF_RANGE, ["exact_t", "hdr.ethernet.dst", "48"]),
        ("exact_t", {1: 1, 2: 512}, ("forward", [1]), 0, OUT_OF_RANGE, ["ingress_port", "bit<9>", "0x0200"]),
        ("exact_t", {1: 1, 2: b""}, ("forward", [1]), 0, OUT_OF_RANGE, ["ingress_port", "empty"]),
        ("exact_t", {1: 1}, ("forward", [1]), 0, INVALID_ARGUMENT, ["exact_t", "ingress_port", "missing"]),
        ("exact_t", {1: 1, 2: 1, 3: 1}, ("forward", [1]), 0, INVALID_ARGUMENT, ["exact_t", "field", "3"]),
        ("exact_t", {1: 1, 2: ("lpm", 1, 9)}, ("forward", [1]), 0, INVALID_ARGUMENT, ["ingress_port", "exact", "lpm"]),
        ("exact_t", EXACT, ("forward", [512]), 0, OUT_OF_RANGE, ["forward", "port", "bit<9>"]),
        ("exact_t", EXACT, ("forward", []), 0, INVALID_ARGUMENT, ["forward", "port", "missing"]),
        ("exact_t", EXACT, ("forward", [1, 2]), 0, INVALID_ARGUMENT, ["forward", "2"]),
        ("exact_t", EXACT, ("set_lpm", [1]), 0, INVALID_ARGUMENT, ["exact_t", "action"]),
        ("exact_t", EXACT, None, 0, INVALID_ARGUMENT, ["exact_t", "action"]),
        ("exact_t", EXACT, ("forward", [1]), 5, INVALID_ARGUMENT, ["exact_t", "priority"]),
        ("lpm_t", {1: ("lpm", 0, 0)}, ("set_lpm", [1]), 0, INVALID_ARGUMENT, ["lpm_t", "leave the field out"]),
        ("lpm_t", {1: ("lpm", 1, 33)}, ("set_lpm", [1]), 0, INVALID_ARGUMENT, ["lpm_t", "33"]),
        ("lpm_t", {1: ("lpm", 1, -1)}, ("set_lpm", [1]), 0, INVALID_ARGUMENT, ["lpm_t", "-1"]),
        ("lpm_t", {1: ("lpm", 0x0A000001, 8)}, ("set_lpm", [1]), 0, INVALID_ARGUMENT, ["lpm_t", "prefix"]),
        ("ternary_t", {1: ("ternary", 0, 0), 2: 1}, ("set_ternary", [1]), 1, INVALID_ARGUMENT, ["leave the field out"]),
        ("ternary_t", {1: ("ternary", 3, 1), 2: 1}, ("set_ternary", [1]), 1, INVALID_ARGUMENT, ["kind", "mask"]),
        ("ternary_t", {1: ("ternary", 1, 1 << 16), 2: 1}, ("set_ternary", [1]), 1, OUT_OF_RANGE, ["hdr.probe.kind"]),
        ("ternary_t", {2: 1}, ("set_ternary", [1]), 0, INVALID_ARGUMENT, ["ternary_t", "priority"]),
        ("ternary_t", {2: 1}, ("set_ternary", [1]), -1, INVALID_ARGUMENT, ["ternary_t", "priority"]),
        ("range_t", {1: ("range", 5, 4)}, ("set_range", [1]), 1, INVALID_ARGUMENT, ["range_t", "low", "high"]),
        ("range_t", {1: ("range", 0, 65535)}, ("set_range", [1]), 1, INVALID_ARGUMENT, ["leave the field out"]),
        ("optional_t", {1: ("optional", b"")}, ("set_optional", [1]), 1, OUT_OF_RANGE, ["optional_t", "empty"]),
        ("keyless_t", {}, ("set_default", [1]), 0, INVALID_ARGUMENT, ["keyless_t", "key"]),
        ("wide_t", {1: 1}, ("NoAction", []), 0, PERMISSION_DENIED, ["wide_t", "NoAction", "@defaultonly"]),
        ("const_t", {1: 1}, ("set_default", [1]), 0, PERMISSION_DENIED, ["const_t", "const"]),
    ],
)
def test_what_is_wrong_is_named(  # noqa: PLR0917
    client: RawClient,
    names: Names,
    table: str,
    match: dict[int, object],
    action: tuple[str, list[object]] | None,
    priority: int,
    code: int,
    words: list[str],
) -> None:
    actual, message = failure(client.insert, names.entry(table, match, action, priority=priority))
    assert (actual, [word for word in words if word not in message]) == (code, []), message
    assert all(e.table_entry.is_const for e in client.read(p4runtime_pb2.Entity(table_entry={})))


def test_repeated_fields_and_parameters_are_refused(client: RawClient, names: Names) -> None:
    twice = names.entry("exact_t", EXACT, ("forward", [1]))
    twice.table_entry.match.append(twice.table_entry.match[0])
    assert failure(client.insert, twice)[0] == INVALID_ARGUMENT
    twice = names.entry("exact_t", EXACT, ("forward", [1]))
    twice.table_entry.action.action.params.append(twice.table_entry.action.action.params[0])
    assert failure(client.insert, twice)[0] == INVALID_ARGUMENT


def test_fields_that_a_table_does_not_have_are_refused(client: RawClient, names: Names) -> None:
    def changed(change: object) -> p4runtime_pb2.Entity:
        entity = names.entry("lpm_t", {1: ("lpm", 0, 1)}, ("set_lpm", [1]))
        change(entity.table_entry)  # type: ignore[operator]
        return entity

    for change in (
        lambda entry: entry.counter_data.SetInParent(),
        lambda entry: entry.meter_config.SetInParent(),
        lambda entry: setattr(entry, "idle_timeout_ns", 10**9),
        lambda entry: entry.time_since_last_hit.SetInParent(),
        lambda entry: setattr(entry, "is_const", True),
        lambda entry: setattr(entry.action, "action_profile_member_id", 1),
        lambda entry: setattr(entry, "table_id", 0),
        lambda entry: entry.action.action.Clear(),
    ):
        code, message = failure(client.insert, changed(change))
        assert code == INVALID_ARGUMENT, message
    assert failure(client.insert, changed(lambda entry: setattr(entry, "table_id", 0x02FFFFFF)))[0] == NOT_FOUND
    assert failure(client.write, p4runtime_pb2.Update(entity=changed(lambda entry: None)))[0] == INVALID_ARGUMENT
    assert failure(client.write, p4runtime_pb2.Update(type="INSERT"))[0] == INVALID_ARGUMENT


def test_each_update_of_a_batch_has_its_own_outcome(client: RawClient, names: Names) -> None:
    def route(number: int, value: int = 1) -> p4runtime_pb2.Entity:
        return names.entry("lpm_t", {1: ("lpm", number << 24, 8)}, ("set_lpm", [value]))

    errors = failures(
        client.write,
        update("INSERT", route(1)),
        update("DELETE", route(2)),
        update("INSERT", route(1)),
        update("INSERT", route(3, 1 << 16)),
        update("INSERT", route(4)),
    )
    assert [code for code, _ in errors] == [0, NOT_FOUND, ALREADY_EXISTS, OUT_OF_RANGE, 0]
    assert [bool(message) for _, message in errors] == [False, True, True, True, False]
    assert len(entries_of(client, names, "lpm_t")) == 2


def test_a_long_status_is_cut_to_what_clients_take(client: RawClient, names: Names) -> None:
    """gRPC would otherwise replace it by RESOURCE_EXHAUSTED without any detail."""
    entries = [names.entry("lpm_t", {1: ("lpm", n << 16, 16)}, ("set_lpm", [1])) for n in range(1, 1001)]
    with pytest.raises(UpdatesFailedError) as caught:
        client.delete(*entries)
    assert "1000 of 1000 updates failed" in str(caught.value)
    assert 10 < len(caught.value.errors) < 1000
    assert {code for code, _ in caught.value.errors} == {NOT_FOUND}
    with pytest.raises(UpdatesFailedError) as caught:
        client.insert(*entries, entries[0])
    assert "1 of 1001 updates failed, the first at index 1000" in str(caught.value)
    assert len(entries_of(client, names, "lpm_t")) == 1000


@pytest.mark.parametrize(("kind", "said"), [(0, "is not set"), (9, "is of type 9, which there is not")])
def test_an_update_of_no_type_says_which_there_are(client: RawClient, names: Names, kind: int, said: str) -> None:
    entry = names.entry("lpm_t", {1: ("lpm", 1 << 24, 8)}, ("set_lpm", [1]))
    code, message = failure(client.write, p4runtime_pb2.Update(type=kind, entity=entry))
    assert code == INVALID_ARGUMENT
    assert said in message and "INSERT, MODIFY or DELETE" in message


def test_a_full_table_says_so(client: RawClient, names: Names) -> None:
    for number in range(4):
        client.insert(names.entry("wide_t", {1: number}, ("set_wide", [1, 2])))
    code, message = failure(client.insert, names.entry("wide_t", {1: 4}, ("set_wide", [1, 2])))
    assert code == RESOURCE_EXHAUSTED
    assert "wide_t" in message
    client.delete(names.entry("wide_t", {1: 0}))
    client.insert(names.entry("wide_t", {1: 4}, ("set_wide", [1, 2])))


def test_default_entries(client: RawClient, names: Names) -> None:
    initial = names.entry("keyless_t", action=("set_default", [7]), default=True)
    changed = names.entry("keyless_t", action=("set_default", [8]), default=True)
    assert client.read(names.entry("keyless_t", default=True)) == [initial]
    client.modify(changed)
    assert client.read(names.entry("keyless_t", default=True)) == [changed]
    client.modify(names.entry("keyless_t", default=True))  # no action: back to the program's own
    assert client.read(names.entry("keyless_t", default=True)) == [initial]
    assert client.read(names.entry("keyless_t")) == []

    all_defaults = p4runtime_pb2.Entity()
    all_defaults.table_entry.is_default_action = True
    assert len(client.read(all_defaults)) == len(names.info.tables)


def test_default_entries_are_protected(client: RawClient, names: Names) -> None:
    default = names.entry("keyless_t", action=("set_default", [8]), default=True)
    assert failure(client.insert, default)[0] == INVALID_ARGUMENT
    assert failure(client.delete, default)[0] == INVALID_ARGUMENT
    with_priority = names.entry("ternary_t", action=("set_ternary", [8]), default=True, priority=1)
    assert failure(client.modify, with_priority)[0] == INVALID_ARGUMENT
    with_match = names.entry("lpm_t", {1: ("lpm", 0, 1)}, ("set_lpm", [1]), default=True)
    assert failure(client.modify, with_match)[0] == INVALID_ARGUMENT
    constant = names.entry("const_default_t", action=("NoAction", []), default=True)
    assert failure(client.modify, constant)[0] == PERMISSION_DENIED


def test_const_entries_can_be_read_but_not_changed(client: RawClient, names: Names) -> None:
    entries = entries_of(client, names, "const_t")
    assert sorted(entry.match[0].exact.value for entry in entries) == [b"\x01\x01", b"\x02\x02"]
    assert all(entry.is_const for entry in entries)
    for kind in ("INSERT", "MODIFY", "DELETE"):
        entity = p4runtime_pb2.Entity(table_entry=entries[0])
        entity.table_entry.is_const = False
        assert failure(client.write, update(kind, entity))[0] == PERMISSION_DENIED


def test_reads_filter_by_what_is_set(client: RawClient, names: Names) -> None:
    def rule(number: int, action: str, priority: int, metadata: bytes) -> p4runtime_pb2.Entity:
        arguments = [] if action == "NoAction" else [number]
        entity = names.entry("ternary_t", {2: number}, (action, arguments), priority=priority)
        entity.table_entry.metadata = metadata
        return entity

    rules = [
        rule(1, "set_ternary", 10, b"a"),
        rule(2, "NoAction", 10, b"b"),
        rule(3, "set_ternary", 20, b"b"),
    ]
    client.insert(*rules)

    def select(**fields: object) -> list[p4runtime_pb2.Entity]:
        request = p4runtime_pb2.Entity()
        request.table_entry.table_id = names.table_id("ternary_t")
        action = fields.pop("action", None)
        if action is not None:
            request.table_entry.action.action.action_id = names.action_id(str(action))
        for field, value in fields.items():
            setattr(request.table_entry, field, value)
        return sorted(client.read(request), key=lambda entity: entity.table_entry.match[0].exact.value)

    assert select() == rules
    assert select(priority=10) == rules[:2]
    assert select(metadata=b"b") == rules[1:]
    assert select(action="set_ternary") == [rules[0], rules[2]]
    assert select(action="set_ternary", priority=20) == rules[2:]
    assert client.read(names.entry("ternary_t", {2: 9}, priority=1)) == []


def test_a_read_that_is_wrong_names_the_request(client: RawClient, names: Names) -> None:
    fine = names.entry("lpm_t")
    unknown = p4runtime_pb2.Entity()
    unknown.table_entry.table_id = 0x02FFFFFF
    errors = failures(client.read, fine, unknown, p4runtime_pb2.Entity())
    assert [code for code, _ in errors] == [0, NOT_FOUND, INVALID_ARGUMENT]


def test_large_reads_come_in_pieces(client: RawClient, names: Names) -> None:
    for start in range(0, 5_000, 1_000):
        client.insert(
            *[names.entry("exact_t", {1: n, 2: n % 512}, ("forward", [n % 512])) for n in range(start, start + 1_000)]
        )
    read = entries_of(client, names, "exact_t")
    assert {int.from_bytes(entry.match[0].exact.value, "big") for entry in read} == set(range(5_000))
    for entry in read:
        number = int.from_bytes(entry.match[0].exact.value, "big")
        assert entry.match[1].exact.value == entry.action.action.params[0].value == as_bytes(number % 512)


def test_an_unknown_atomicity_is_refused_not_ignored(client: RawClient, names: Names) -> None:
    request = client.write_request(update("INSERT", names.entry("lpm_t", {}, ("set_lpm", [1]))))
    request.atomicity = 7  # type: ignore[assignment]
    with pytest.raises(grpc.RpcError, match="CONTINUE_ON_ERROR") as caught:
        client.send_write(request)
    assert caught.value.code() == grpc.StatusCode.UNIMPLEMENTED
    assert entries_of(client, names, "lpm_t") == []


def test_a_match_without_priority_reads_every_priority(client: RawClient, names: Names) -> None:
    rules = [
        names.entry("ternary_t", {1: ("ternary", 0x0100, 0xFF00), 2: 7}, ("set_ternary", [n]), priority=n)
        for n in (3, 4)
    ]
    client.insert(*rules, names.entry("ternary_t", {2: 7}, ("set_ternary", [9]), priority=9))
    anything = names.entry("ternary_t", {2: 7, 1: ("ternary", b"\0\1\0", b"\0\xff\0")})
    assert sorted(client.read(anything), key=lambda entity: entity.table_entry.priority) == rules


def test_a_default_entry_keeps_what_comes_with_it_until_it_is_reset(client: RawClient, names: Names) -> None:
    entry = names.entry("exact_t", {}, ("forward", [3]), default=True)
    entry.table_entry.metadata, entry.table_entry.controller_metadata = b"mine", 5
    entry.table_entry.counter_data.packet_count = 12
    client.modify(entry)
    ask = names.entry("exact_t", default=True)
    ask.table_entry.counter_data.SetInParent()
    assert client.read(ask) == [entry]
    direct = p4runtime_pb2.Entity()
    direct.direct_counter_entry.table_entry.CopyFrom(names.entry("exact_t", default=True).table_entry)
    direct.direct_counter_entry.data.packet_count = 30
    client.modify(direct)
    assert client.read(direct) == [direct]
    client.modify(names.entry("exact_t", {}, ("forward", [4]), default=True))  # a new action: the counter goes on
    assert client.read(direct) == [direct]
    client.modify(names.entry("exact_t", default=True))
    expected = names.entry("exact_t", {}, ("drop", []), default=True)
    expected.table_entry.counter_data.SetInParent()
    assert client.read(ask) == [expected]


def test_the_time_since_the_last_hit_is_for_tables_that_keep_it(client: RawClient, names: Names) -> None:
    entry = names.entry("lpm_t")
    entry.table_entry.time_since_last_hit.SetInParent()
    assert [code for code, _ in failures(client.read, entry)] == [INVALID_ARGUMENT]


def test_messages_of_a_read_are_no_longer_than_clients_take(client: RawClient, names: Names) -> None:
    entities = [names.entry("exact_t", {1: number, 2: 0}, ("forward", [1])) for number in range(1, 1601)]
    for entity in entities:
        entity.table_entry.metadata = bytes(3000)
    entities[-1].table_entry.metadata = bytes(4_190_000)  # a message of nearly 4 MiB on its own
    for first in range(0, 1500, 500):
        client.insert(*entities[first : first + 500])
    client.insert(*entities[1500:-1])
    client.insert(entities[-1])
    request = p4runtime_pb2.ReadRequest(device_id=1, entities=[names.entry("exact_t")])
    replies = list(client.stub.Read(request, timeout=60))
    assert max(reply.ByteSize() for reply in replies) <= 4 << 20
    assert len(replies) < 100
    assert [entity for reply in replies for entity in reply.entities] == entities
