"""What a client writes is what frames meet: interfaces, tables, counters, registers, packet I/O in one process."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from frame_ports import FramePorts, probe, results
from raw_client import Names, RawClient

from catchment.wire.generated import p4runtime_pb2

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")

DST = 0x020000000001
IN_PORT, OUT_PORT = 1, 2


def forward(names: Names, action: str = "forward", value: int = OUT_PORT) -> p4runtime_pb2.Entity:
    return names.entry("exact_t", {1: DST, 2: IN_PORT}, (action, [value]))


def test_a_miss_drops_and_an_entry_forwards(wired: RawClient, ports: FramePorts, names: Names) -> None:
    wired.insert(names.entry("exact_t", {1: DST + 1, 2: IN_PORT}, ("forward", [OUT_PORT])))
    ports.send(IN_PORT, probe(DST, tail=b"dropped"))
    ports.send(IN_PORT, probe(DST + 1, tail=b"after it"))
    assert ports.receive(OUT_PORT).endswith(b"after it")
    wired.insert(forward(names))
    ports.send(IN_PORT, probe(DST, tail=b"first"))
    assert ports.receive(OUT_PORT).endswith(b"first")
    wired.modify(forward(names, value=3))
    ports.send(IN_PORT, probe(DST, tail=b"second"))
    assert ports.receive(3).endswith(b"second")
    wired.delete(forward(names))
    ports.send(IN_PORT, probe(DST, tail=b"third"))
    wired.insert(names.entry("exact_t", {1: DST, 2: 4}, ("forward", [OUT_PORT])))
    ports.send(4, probe(DST, tail=b"fourth"))
    assert ports.receive(OUT_PORT).endswith(b"fourth")
    assert ports.is_silent(OUT_PORT)
    assert ports.is_silent(3)


def test_every_match_kind_decides(wired: RawClient, ports: FramePorts, names: Names) -> None:
    wired.insert(
        forward(names),
        names.entry("lpm_t", {1: ("lpm", 0x0A000000, 8)}, ("set_lpm", [8])),
        names.entry("lpm_t", {1: ("lpm", 0x0A010000, 16)}, ("set_lpm", [16])),
        names.entry("ternary_t", {1: ("ternary", 0x0100, 0xFF00), 2: 7}, ("set_ternary", [1]), priority=1),
        names.entry("ternary_t", {1: ("ternary", 0x0001, 0x00FF), 2: 7}, ("set_ternary", [2]), priority=2),
        names.entry("range_t", {1: ("range", 5, 10)}, ("set_range", [3]), priority=1),
        names.entry("range_t", {1: ("range", 7, 7)}, ("set_range", [4]), priority=9),
        names.entry("optional_t", {1: ("optional", 7)}, ("set_optional", [5]), priority=2),
        names.entry("optional_t", {}, ("set_optional", [6]), priority=1),
        names.entry("wide_t", {1: 1 << 127 | 5}, ("set_wide", [9, 0])),
    )
    expected = {
        (0x0A010203, 0x0101, 7, 1 << 127 | 5): (16, 2, 4, 5, 9, 0x11),  # const_t overrides keyless_t
        (0x0A020203, 0x0102, 7, 5): (8, 1, 4, 5, 0, 7),
        (0x0B020203, 0x0301, 8, 1 << 127): (0, 0, 3, 6, 0, 7),
        (0x0A010203, 0x0101, 11, 1 << 127 | 5): (16, 0, 0, 6, 9, 0x11),
        (0x0A010203, 0x0202, 4, 1 << 127 | 4): (16, 0, 0, 6, 0, 0x22),
    }
    for (address, kind, number, wide), values in expected.items():
        ports.send(IN_PORT, probe(DST, address=address, kind=kind, number=number, wide=wide))
        seen = results(ports.receive(OUT_PORT))
        assert tuple(seen.values()) == values, (hex(address), hex(kind), number)

    wired.modify(names.entry("keyless_t", action=("set_default", [77]), default=True))
    ports.send(IN_PORT, probe(DST))
    assert results(ports.receive(OUT_PORT))["default"] == 77


def test_counters_and_registers_show_the_frames(
    wired: RawClient, ports: FramePorts, names: Names, rng: random.Random
) -> None:
    wired.insert(forward(names))
    lengths = []
    for number in range(10):
        frame = probe(DST, address=1000 + number, number=number, tail=bytes(rng.randrange(200)))
        lengths.append(len(frame))
        ports.send(IN_PORT, frame)
        ports.receive(OUT_PORT)
    counter = p4runtime_pb2.Entity()
    counter.counter_entry.counter_id = names.counter_id("by_port")
    counter.counter_entry.index.index = IN_PORT
    data = wired.read(counter)[0].counter_entry.data
    assert (data.packet_count, data.byte_count) == (10, sum(lengths))
    wanted = forward(names)
    wanted.table_entry.counter_data.SetInParent()
    data = wired.read(wanted)[0].table_entry.counter_data
    assert (data.packet_count, data.byte_count) == (10, sum(lengths))
    cells = p4runtime_pb2.Entity()
    cells.register_entry.register_id = names.register_id("cells")
    values = [int.from_bytes(entity.register_entry.data.bitstring, "big") for entity in wired.read(cells)]
    assert values == [1000 + number if number < 10 else 0 for number in range(64)]


def test_every_hit_of_an_entry_counts_whatever_its_action(wired: RawClient, ports: FramePorts, names: Names) -> None:
    """Other switches refuse counter_data with an action that does not call count(); here it has a meaning."""
    dropping = names.entry("exact_t", {1: DST, 2: IN_PORT}, ("drop", []))
    dropping.table_entry.counter_data.packet_count = 40
    wired.insert(dropping, names.entry("exact_t", {1: DST + 1, 2: IN_PORT}, ("forward", [OUT_PORT])))
    ports.send(IN_PORT, probe(DST))
    ports.send(IN_PORT, probe(DST + 1))
    ports.receive(OUT_PORT)  # so the frame before it is done, too
    assert wired.read(dropping)[0].table_entry.counter_data.packet_count == 41


def test_multicast_reaches_every_replica(wired: RawClient, ports: FramePorts, names: Names) -> None:
    group = p4runtime_pb2.Entity()
    entry = group.packet_replication_engine_entry.multicast_group_entry
    entry.multicast_group_id = 5
    for port in (2, 3, 4):
        entry.replicas.add(egress_port=port, instance=1)
    wired.insert(group, forward(names, "flood", 5))
    ports.send(IN_PORT, probe(DST, tail=b"to all"))
    for port in (2, 3, 4):
        assert ports.receive(port).endswith(b"to all")
    del entry.replicas[1]
    wired.modify(group)
    ports.send(IN_PORT, probe(DST, tail=b"to two"))
    for port in (2, 4):
        assert ports.receive(port).endswith(b"to two")
    assert ports.is_silent(3)


def test_packet_in_carries_its_metadata(wired: RawClient, ports: FramePorts, names: Names) -> None:
    wired.insert(forward(names, "to_controller", 0x55))
    frame = probe(DST, tail=b"for the controller")
    ports.send(IN_PORT, frame)
    packet = wired.receive().packet
    assert packet.payload[:14] == frame[:14]
    assert packet.payload.endswith(b"for the controller")
    assert {one.metadata_id: one.value for one in packet.metadata} == {1: bytes([IN_PORT]), 2: b"\x55"}


def packet_out(payload: bytes, *metadata: tuple[int, bytes]) -> p4runtime_pb2.StreamMessageRequest:
    request = p4runtime_pb2.StreamMessageRequest()
    request.packet.payload = payload
    for number, value in metadata:
        request.packet.metadata.add(metadata_id=number, value=value)
    return request


def test_packet_out_leaves_where_its_metadata_says(wired: RawClient, ports: FramePorts) -> None:
    wired.send(packet_out(probe(DST, tail=b"from the controller"), (1, b"\x03"), (2, b"\0")))
    assert ports.receive(3).endswith(b"from the controller")


@pytest.mark.parametrize(
    ("metadata", "code"),
    [
        ([(1, b"\x03")], 3),
        ([(1, b"\x03"), (2, b"\0"), (3, b"\0")], 3),
        ([(1, b"\x03"), (1, b"\x03"), (2, b"\0")], 3),
        ([(1, b"\x02\0"), (2, b"\0")], 11),
        ([(1, b""), (2, b"\0")], 11),
    ],
)
def test_a_wrong_packet_out_is_reported_on_the_stream(
    wired: RawClient, ports: FramePorts, metadata: list[tuple[int, bytes]], code: int
) -> None:
    request = packet_out(probe(DST), *metadata)
    wired.send(request)
    error = wired.receive().error
    assert error.canonical_code == code
    assert "packet" in error.message
    assert error.packet_out.packet_out == request.packet
    assert ports.is_silent(3)


def test_a_backup_may_not_send_packets(wired: RawClient, tmp_path: Path) -> None:
    with RawClient(f"unix:{tmp_path}/switch.sock") as backup:
        assert backup.arbitrate((0, 0)) == 6
        backup.send(packet_out(probe(DST), (1, b"\x03"), (2, b"\0")))
        assert backup.receive().error.canonical_code == 7


def test_frames_pass_unharmed_while_tables_are_written(wired: RawClient, ports: FramePorts, names: Names) -> None:
    """Entries of other keys come and go in batches; not one frame may be lost, changed or reordered."""
    wired.insert(forward(names))
    batches = [
        [names.entry("exact_t", {1: n, 2: 9}, ("forward", [3])) for n in range(start, start + 200)]
        for start in range(0, 1000, 200)
    ]
    sent = received = 0
    for batch in batches:
        for change in (wired.insert, wired.modify, wired.delete):
            for _ in range(50):
                ports.send(IN_PORT, probe(DST, tail=sent.to_bytes(4, "big")))
                sent += 1
            change(*batch)
            for _ in range(50):
                assert ports.receive(OUT_PORT)[-4:] == received.to_bytes(4, "big")
                received += 1
    assert sent == received
    assert ports.is_silent(3)
