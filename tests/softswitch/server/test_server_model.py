"""Random batches against a dictionary: every outcome and every read must agree."""

from __future__ import annotations

import random

from google.protobuf.message import DecodeError
from raw_client import Names, RawClient, UpdatesFailedError, update

from catchment.wire.generated import p4runtime_pb2

OK, NOT_FOUND, ALREADY_EXISTS = 0, 5, 6
Key = tuple[object, ...]


class TableModel:
    """What a table should hold."""

    def __init__(self) -> None:
        self.entries: dict[Key, p4runtime_pb2.TableEntry] = {}

    def apply(self, kind: str, key: Key, entry: p4runtime_pb2.TableEntry) -> int:
        if kind == "INSERT":
            if key in self.entries:
                return ALREADY_EXISTS
        elif key not in self.entries:
            return NOT_FOUND
        if kind == "DELETE":
            del self.entries[key]
        else:
            self.entries[key] = entry
        return OK


def random_entry(names: Names, rng: random.Random) -> tuple[Key, p4runtime_pb2.Entity]:
    """An entry out of a small key space, so that keys meet again."""
    table = rng.choice(["exact_t", "lpm_t", "ternary_t", "range_t", "optional_t"])
    match: dict[int, object] = {}
    priority = 0
    if table == "exact_t":
        match = {1: rng.randrange(6), 2: rng.randrange(3)}
        action = rng.choice([("forward", [rng.randrange(512)]), ("flood", [rng.randrange(1 << 16)]), ("drop", [])])
    elif table == "lpm_t":
        length = rng.randrange(5)
        if length:
            match = {1: ("lpm", rng.randrange(1 << length) << (32 - length), length)}
        action = ("set_lpm", [rng.randrange(1 << 16)])
    else:
        priority = rng.randrange(1, 4)
        low = rng.randrange(4)
        if table == "ternary_t":
            mask = rng.randrange(4)
            match = {2: rng.randrange(2)}
            if mask:
                match[1] = ("ternary", rng.randrange(4) & mask, mask)
            action = ("set_ternary", [rng.randrange(1 << 16)])
        elif table == "range_t":
            if rng.random() < 0.8:
                match = {1: ("range", low, rng.randrange(low, 5))}
            action = ("set_range", [rng.randrange(1 << 16)])
        else:
            if rng.random() < 0.8:
                match = {1: ("optional", low)}
            action = ("set_optional", [rng.randrange(1 << 16)])
    entity = names.entry(table, match, action, priority=priority)
    entity.table_entry.metadata = rng.randbytes(rng.randrange(3))
    key = (table, priority, *sorted(match.items(), key=lambda item: item[0]))
    return key, entity


def test_random_batches(client: RawClient, names: Names, rng: random.Random) -> None:
    model = TableModel()
    for _ in range(150):
        expected, updates = [], []
        for _ in range(rng.randrange(1, 30)):
            kind = rng.choice(["INSERT", "INSERT", "MODIFY", "DELETE"])
            key, entity = random_entry(names, rng)
            updates.append(update(kind, entity))
            expected.append(model.apply(kind, key, entity.table_entry))
        try:
            client.write(*updates)
            outcomes = [OK] * len(updates)
        except UpdatesFailedError as error:
            outcomes = [code for code, _ in error.errors]
        assert outcomes == expected
    read = [e.table_entry for e in client.read(p4runtime_pb2.Entity(table_entry={})) if not e.table_entry.is_const]

    def form(entry: p4runtime_pb2.TableEntry) -> bytes:
        ordered = p4runtime_pb2.TableEntry()
        ordered.CopyFrom(entry)
        del ordered.match[:]
        ordered.match.extend(sorted(entry.match, key=lambda field: field.field_id))
        return ordered.SerializeToString(deterministic=True)

    assert sorted(map(form, read)) == sorted(map(form, model.entries.values()))


def test_mutated_requests_are_answered(client: RawClient, names: Names, rng: random.Random) -> None:
    """Bytes of valid requests changed at random: whatever they mean, the switch answers and goes on."""
    seeds = [
        client.write_request(*[update(rng.choice(["INSERT", "MODIFY", "DELETE"]), random_entry(names, rng)[1])])
        for _ in range(20)
    ]
    for special in ("register_entry", "counter_entry", "direct_counter_entry", "packet_replication_engine_entry"):
        entity = p4runtime_pb2.Entity()
        getattr(entity, special).SetInParent()
        seeds.append(client.write_request(update("MODIFY", entity)))
    answered = 0
    while answered < 500:
        content = bytearray(rng.choice(seeds).SerializeToString())
        for _ in range(rng.randrange(1, 4)):
            place = rng.randrange(len(content))
            if rng.random() < 0.7:
                content[place] = rng.randrange(256)
            else:
                content[place:place] = rng.randbytes(rng.randrange(4))
        request = p4runtime_pb2.WriteRequest()
        try:
            request.ParseFromString(bytes(content))
        except (DecodeError, UnicodeDecodeError):
            continue
        # Those that the envelope would stop go in as well, once as they are and once let in.
        client.try_write(request)
        request.device_id = client.device_id
        request.ClearField("role")
        request.ClearField("role_id")
        request.election_id.high, request.election_id.low = client.election_id or (0, 0)
        client.try_write(request)
        client.try_read([one.entity for one in request.updates])
        answered += 1
    assert client.get_pipeline("COOKIE_ONLY").HasField("config")
