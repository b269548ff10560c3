"""What the switch does, by example: these pin the model to protocol.md and p4-luwu.md of docs/explanation/."""

from __future__ import annotations

import random

import pytest
from frame_builder import (
    SWITCH_IP,
    SWITCH_MAC,
    arp,
    ethernet,
    host_ip,
    host_mac,
    job_frame,
    pack_values,
    udp_frame,
)
from scenarios import FLOOD_GROUP, PORTS, base_tables

from catchment.sim.golden.switch_frames import PAYLOAD_OFFSET, ipv4, vector
from catchment.sim.golden.switch_model import SwitchModel
from catchment.sim.golden.switch_tables import Fault
from catchment.wire.generated.constants import HEADER_OFFSET, DropReason, Flag, Header, PacketType
from catchment.wire.udp_frame import internet_checksum

LANES = 8
REDUCE, BCAST, ALLREDUCE, LEAF = 10, 11, 0xFFFE, 30  # generations in the scenario's tables


@pytest.fixture
def switch() -> SwitchModel:
    model = SwitchModel(LANES, 16, 8, 4)
    model.tables = base_tables()
    return model


def pa(gen: int, port: int, seq: int, values: list[int], **fields: int) -> bytes:
    header = Header(**{"type": PacketType.PA, "gen": gen, "lanes": LANES, "seq": seq, "wid": 99, **fields})
    return job_frame(header, pack_values(values), port=port)


def hb(gen: int, port: int, ack: int, credit: int) -> bytes:
    return job_frame(Header(type=PacketType.HB, flags=Flag.ACKV, gen=gen, ack=ack, credit=credit), port=port)


def header_of(frame: bytes) -> Header:
    return Header.unpack(frame, HEADER_OFFSET)


def ramp(start: int) -> list[int]:
    return [start * 1000 + lane * 7 for lane in range(LANES)]


def test_reduce_sends_one_sum_to_the_root(switch: SwitchModel) -> None:
    assert switch.inject(1, pa(REDUCE, 1, 5, ramp(1), flags=Flag.EXPV, next_exp=-3)) == []
    assert switch.inject(2, pa(REDUCE, 2, 5, ramp(2), flags=Flag.EXPV | Flag.SAT, next_exp=-7)) == []
    assert switch.inject(2, pa(REDUCE, 2, 5, ramp(2), flags=Flag.RETX)) == []
    [(port, frame)] = switch.inject(3, pa(REDUCE, 3, 5, ramp(3), flags=Flag.EXPV | Flag.ACKV, next_exp=-5, ack=9))
    header = header_of(frame)
    assert port == 4
    assert list(vector(frame, LANES)) == [6000 + lane * 21 for lane in range(LANES)]
    assert (header.type, header.wid, header.next_exp, header.ack) == (PacketType.FA, 2, -3, 0)
    assert header.flags == Flag.EXPV | Flag.SAT
    assert frame[:12] == ethernet(host_mac(4), SWITCH_MAC, 0)[:12]
    assert internet_checksum(frame[14:34]) == 0
    assert frame[26:34] == SWITCH_IP.to_bytes(4, "big") + host_ip(4).to_bytes(4, "big")
    assert frame[34:42] == bytes.fromhex("ca7c") + (51840).to_bytes(2, "big") + (62).to_bytes(2, "big") + b"\0\0"
    # Asked again, the sum goes out again; asked for an older round, nothing does.
    assert switch.inject(1, pa(REDUCE, 1, 5, ramp(1), flags=Flag.RETX))[0][1][PAYLOAD_OFFSET:] == frame[PAYLOAD_OFFSET:]
    assert switch.inject(1, pa(REDUCE, 1, 1, ramp(1))) == []
    assert switch.drops == {DropReason.OLD_SEQ: 1}


def test_halves_of_packed_lanes_are_added_by_themselves(switch: SwitchModel) -> None:
    """No carry goes from the lower half to the upper one, nor out of the lane; a duplicate adds nothing."""
    switch.tables.packed = {REDUCE}
    parts = [0x7FFFFFFF, 0x0001FFFF, 0x8000F000]
    for _ in range(2):
        assert switch.inject(1, pa(REDUCE, 1, 5, [parts[0]] * LANES, flags=Flag.PACKED)) == []
        assert switch.inject(2, pa(REDUCE, 2, 5, [parts[1]] * LANES, flags=Flag.PACKED)) == []
    [(_, frame)] = switch.inject(3, pa(REDUCE, 3, 5, [parts[2]] * LANES, flags=Flag.PACKED))
    assert set(vector(frame, LANES)) == {0x0000EFFE}
    assert header_of(frame).flags == Flag.PACKED
    # The same numbers in lanes of 32 bits, in the same stream.
    for port, value in zip((1, 2), parts, strict=False):
        switch.inject(port, pa(REDUCE, port, 6, [value] * LANES))
    [(_, frame)] = switch.inject(3, pa(REDUCE, 3, 6, [parts[2]] * LANES))
    assert set(vector(frame, LANES)) == {sum(parts) % (1 << 32)}


def test_packed_lanes_are_for_streams_that_have_the_entry(switch: SwitchModel) -> None:
    switch.tables.packed = {BCAST}
    assert switch.inject(1, pa(REDUCE, 1, 5, ramp(1), flags=Flag.PACKED)) == []
    assert switch.drops == {DropReason.NOT_PACKED: 1}
    assert switch.refused == {(1, DropReason.NOT_PACKED): 1}
    assert switch.slots.slots[1].workers == 0


def test_sums_wrap_and_sequence_numbers_wrap(switch: SwitchModel) -> None:
    last = (1 << 32) - 1
    for seq in (last - 1, 2):  # the same slot of four, before and after the wrap
        switch.inject(1, pa(REDUCE, 1, seq, [last] * LANES))
        switch.inject(2, pa(REDUCE, 2, seq, [3] * LANES))
        [(_, frame)] = switch.inject(3, pa(REDUCE, 3, seq, ramp(0)))
        assert list(vector(frame, LANES)) == [2 + lane * 7 for lane in range(LANES)]
    assert not switch.drops


def test_all_reduce_answers_a_duplicate_to_the_sender_alone(switch: SwitchModel) -> None:
    switch.inject(5, pa(ALLREDUCE, 5, 8, ramp(1)))
    first = switch.inject(6, pa(ALLREDUCE, 6, 8, ramp(2)))
    assert [port for port, _ in first] == [5, 6]
    again = switch.inject(5, pa(ALLREDUCE, 5, 8, ramp(1), flags=Flag.RETX))
    assert [port for port, _ in again] == [5]
    assert vector(again[0][1], LANES) == vector(first[0][1], LANES)


def test_all_reduce_carries_the_minimum_once_everyone_has_spoken(switch: SwitchModel) -> None:
    switch.inject(5, pa(ALLREDUCE, 5, 8, ramp(1), flags=Flag.ACKV, ack=8, credit=12))
    [(_, frame), _] = switch.inject(6, pa(ALLREDUCE, 6, 8, ramp(2)))
    assert not header_of(frame).flags & Flag.ACKV
    switch.inject(5, pa(ALLREDUCE, 5, 9, ramp(1), flags=Flag.ACKV, ack=9, credit=13))
    [(_, frame), _] = switch.inject(6, pa(ALLREDUCE, 6, 9, ramp(2), flags=Flag.ACKV, ack=8, credit=14))
    assert header_of(frame).flags & Flag.ACKV
    assert (header_of(frame).ack, header_of(frame).credit) == (8, 13)


def test_heartbeats_merge(switch: SwitchModel) -> None:
    assert switch.inject(1, hb(BCAST, 1, 5, 20)) == []
    assert switch.inject(2, hb(BCAST, 2, 6, 19)) == []
    [(port, frame)] = switch.inject(3, hb(BCAST, 3, 7, 30))
    assert (port, header_of(frame).type, header_of(frame).ack, header_of(frame).credit) == (4, PacketType.MH, 5, 19)
    assert switch.inject(3, hb(BCAST, 3, 8, 30)) == []  # the minimum has not moved
    assert len(switch.inject(1, hb(BCAST, 1, 4, 18))) == 1  # worker 0 repeats; an older word moves nothing back
    assert header_of(switch.inject(1, hb(BCAST, 1, 6, 21))[0][1]).ack == 6
    [(_, frame)] = switch.inject(2, hb(BCAST, 2, 6, 25))
    assert header_of(frame).credit == 21
    # Nothing has moved, but worker 2 names a frame that it lacks.
    asks = Header(type=PacketType.HB, flags=Flag.ACKV | Flag.RETX, gen=BCAST, ack=8, credit=30, seq=9)
    [(port, frame)] = switch.inject(3, job_frame(asks, port=3))
    assert (port, header_of(frame).seq, header_of(frame).ack) == (4, 9, 6)
    assert header_of(frame).flags == Flag.ACKV | Flag.RETX
    assert not switch.drops


def test_from_the_root(switch: SwitchModel) -> None:
    relayed = switch.inject(4, hb(REDUCE, 4, 3, 7))
    assert [(port, header_of(f).type, header_of(f).ack) for port, f in relayed] == [
        (p, PacketType.MH, 3) for p in (1, 2, 3)
    ]
    payload = bytes(range(99))
    sent = switch.inject(4, job_frame(Header(type=PacketType.PARAM, gen=BCAST, lanes=99, wid=4), payload, port=4))
    assert [(port, f[PAYLOAD_OFFSET:], header_of(f).wid) for port, f in sent] == [(p, payload, 0) for p in (1, 2, 3)]


def test_a_rack_is_one_worker_of_its_parent(switch: SwitchModel) -> None:
    ports = (7, 8, 1, 2, 3, 4, 5, 6)
    for port in ports[:-1]:
        assert switch.inject(port, pa(LEAF, port, 2, ramp(port))) == []
    for _ in range(2):  # also when it is a duplicate
        [(port, frame)] = switch.inject(6, pa(LEAF, 6, 2, ramp(6)))
        assert (port, header_of(frame).type, header_of(frame).wid) == (9, PacketType.PA, 17)
        assert list(vector(frame, LANES)) == [36000 + lane * 56 for lane in range(LANES)]
    down = job_frame(header_of(frame), frame[PAYLOAD_OFFSET:], port=9)
    assert switch.inject(9, down) == [] and switch.drops == {DropReason.WRONG_DIRECTION: 1}
    full = job_frame(header_of(frame)._replace(type=PacketType.FA), frame[PAYLOAD_OFFSET:], port=9)
    assert [port for port, _ in switch.inject(9, full)] == list(ports)


def test_arp_for_the_switch(switch: SwitchModel) -> None:
    [(port, frame)] = switch.inject(3, arp(1, port=3, target_ip=SWITCH_IP))
    assert port == 3
    assert frame[:14] == ethernet(host_mac(3), SWITCH_MAC, 0x0806)
    assert frame[20:42] == (
        b"\0\2"
        + SWITCH_MAC.to_bytes(6, "big")
        + SWITCH_IP.to_bytes(4, "big")
        + host_mac(3).to_bytes(6, "big")
        + host_ip(3).to_bytes(4, "big")
    )


def test_plain_traffic_is_not_touched(switch: SwitchModel) -> None:
    switch.tables.bindings.clear()
    known = udp_frame(b"hello", port=1, dst_ip=host_ip(2), dst_mac=host_mac(2), dst_udp=53, checksum=77)
    assert switch.inject(1, known) == [(2, known)]
    unknown = b"\xff" * 6 + known[6:]
    assert switch.inject(1, unknown) == [(p, unknown) for p in PORTS if p != 1]
    assert switch.drops == {DropReason.FLOOD_SOURCE: 1}
    claims = udp_frame(pa(REDUCE, 1, 0, ramp(1))[42:], port=1, dst_ip=host_ip(2), dst_mac=host_mac(2))
    assert switch.inject(1, claims) == [(2, claims)]
    question = arp(1, port=1, target_ip=host_ip(2))
    assert [p for p, _ in switch.inject(1, question)] == [p for p in PORTS if p != 1]
    switch.tables.flood_group = None
    assert switch.inject(1, unknown) == [] and switch.drops[DropReason.NO_ROUTE] == 1
    assert FLOOD_GROUP in switch.tables.groups


def ip_changed(frame: bytes, offset: int, value: int, *, repair: bool = True) -> bytes:
    data = bytearray(frame)
    data[offset] = value
    if repair:
        data[24:26] = b"\0\0"
        data[24:26] = internet_checksum(bytes(data[14:34])).to_bytes(2, "big")
    return bytes(data)


GOOD = pa(REDUCE, 1, 0, ramp(1))
EMPTY = hb(REDUCE, 4, 1, 2)


@pytest.mark.parametrize(
    ("port", "frame", "reason"),
    [
        (1, GOOD[:13], DropReason.PARSE_ERROR),
        (1, GOOD[:50], DropReason.PARSE_ERROR),
        (1, GOOD[:-1], DropReason.PARSE_ERROR),
        (1, ip_changed(GOOD, 14, 0x46), DropReason.BAD_IPV4),
        (1, ip_changed(GOOD, 20, 0x20), DropReason.BAD_IPV4),
        (1, ip_changed(GOOD, 21, 1), DropReason.BAD_IPV4),
        (1, ip_changed(GOOD, 22, 9, repair=False), DropReason.BAD_IPV4),
        (1, ip_changed(GOOD, 17, 81), DropReason.BAD_LENGTH),
        (1, GOOD + b"x", DropReason.BAD_LENGTH),
        (1, GOOD[:HEADER_OFFSET] + b"\x21" + GOOD[HEADER_OFFSET + 1 :], DropReason.BAD_VERSION),
        (1, GOOD[:HEADER_OFFSET] + b"\x10" + GOOD[HEADER_OFFSET + 1 :], DropReason.BAD_TYPE),
        (1, GOOD[:HEADER_OFFSET] + b"\x16" + GOOD[HEADER_OFFSET + 1 :], DropReason.BAD_TYPE),
        (1, pa(REDUCE, 1, 0, ramp(1), flags=0x80), DropReason.BAD_FLAGS),
        (4, job_frame(Header(type=PacketType.HB, gen=REDUCE), port=4), DropReason.BAD_FLAGS),
        (
            4,
            job_frame(Header(type=PacketType.HB, gen=REDUCE, flags=Flag.ACKV | Flag.PACKED), port=4),
            DropReason.BAD_FLAGS,
        ),
        (
            4,
            job_frame(Header(type=PacketType.HB, gen=REDUCE, flags=Flag.ACKV | Flag.MIXED), port=4),
            DropReason.BAD_FLAGS,
        ),
        (1, pa(REDUCE, 1, 0, ramp(1), lanes=7), DropReason.BAD_LANES),
        (4, EMPTY[:-1], DropReason.PARSE_ERROR),
        (4, job_frame(header_of(EMPTY)._replace(lanes=1), b"x", port=4), DropReason.BAD_LENGTH),
        (4, job_frame(header_of(EMPTY), b"x", port=4), DropReason.BAD_LENGTH),
        (5, GOOD, DropReason.UNKNOWN_JOB),
        (1, pa(0, 1, 0, ramp(1)), DropReason.UNKNOWN_JOB),
        (1, pa(BCAST, 1, 0, ramp(1)), DropReason.WRONG_DIRECTION),
        (4, pa(REDUCE, 4, 0, ramp(1)), DropReason.WRONG_DIRECTION),
        (1, pa(REDUCE, 1, 0, ramp(1), type=PacketType.FA), DropReason.WRONG_DIRECTION),
        (1, hb(REDUCE, 1, 0, 0), DropReason.WRONG_DIRECTION),
        *((1, pa(gen, 1, 3, ramp(1)), DropReason.BAD_SLOT) for gen in (70, 71, 72, 73, 74)),
    ],
)
def test_bad_frames_change_nothing_but_a_counter(
    switch: SwitchModel, port: int, frame: bytes, reason: DropReason
) -> None:
    assert switch.inject(port, frame) == []
    assert switch.drops == {reason: 1}
    assert all(slot.gen == 0 for slot in switch.slots.slots) and not switch.heartbeats.heard


def test_faults(switch: SwitchModel) -> None:
    switch.dice = lambda: 499
    switch.tables.ingress_faults = [Fault(1, PacketType.PA, 0xF, 500), Fault(2, 0, 0, 499)]
    assert switch.inject(1, GOOD) == [] and switch.drops == {DropReason.FAULT_INGRESS: 1}
    switch.inject(2, pa(REDUCE, 2, 0, ramp(1)))
    assert switch.drops == {DropReason.FAULT_INGRESS: 1}
    switch.tables.egress_faults = [Fault(2, PacketType.MH, 0xF, 500), Fault(2, 0, 0, 0, priority=9)]
    assert [p for p, _ in switch.inject(4, EMPTY)] == [1, 2, 3]  # the larger priority wins
    switch.tables.egress_faults.pop()
    assert [p for p, _ in switch.inject(4, EMPTY)] == [1, 3]
    assert switch.drops[DropReason.FAULT_EGRESS] == 1


def test_no_receiver(switch: SwitchModel) -> None:
    del switch.tables.receivers[(REDUCE, 2)]
    assert [p for p, _ in switch.inject(4, EMPTY)] == [1, 3]
    assert switch.drops == {DropReason.NO_RECEIVER: 1}


def test_header_checks_of_ip(switch: SwitchModel) -> None:
    ip = ipv4(GOOD)
    assert ip is not None and ip.checksum_good
    assert not ipv4(ip_changed(GOOD, 22, 9, repair=False)).checksum_good  # type: ignore[union-attr]
    assert switch.tables.own_addresses[ip.dst] == SWITCH_MAC


def test_no_host_has_a_switch_s_address(switch: SwitchModel) -> None:
    """Neither its own switch's nor, unless it comes over a trunk, another's."""
    own, parent = SWITCH_IP, SWITCH_IP + 256
    switch.tables.switch_addresses, switch.tables.bindings = {own: True, parent: False}, {9: None}
    for port, sender, forged in ((1, own, True), (9, own, True), (1, parent, True), (9, parent, False)):
        for operation in (1, 2):
            before = switch.drops[DropReason.FORGED_ARP]
            switch.inject(port, arp(operation, port=port, target_ip=host_ip(3), sender_ip=sender))
            assert switch.drops[DropReason.FORGED_ARP] - before == forged, (port, sender, operation)


def test_a_host_reaches_no_other_switch(switch: SwitchModel) -> None:
    parent = SWITCH_IP + 256
    switch.tables.switch_addresses, switch.tables.bindings = {parent: False}, {9: None}
    to_parent = udp_frame(b"x" * 30, port=1, dst_ip=parent, dst_mac=host_mac(2))
    assert switch.inject(1, to_parent) == []
    assert switch.drops == {DropReason.OTHER_SWITCH: 1}
    assert switch.inject(9, to_parent) == [(2, to_parent)]
    request = arp(1, port=1, target_ip=parent, dst_mac=host_mac(2))
    assert switch.inject(1, request) == [(2, request)], "who asks for it is answered by it"


FORGERIES = {
    "a switch": {"src_ip": SWITCH_IP},
    "a switch, its hardware address too": {"src_ip": SWITCH_IP, "src_mac": SWITCH_MAC},
    "another switch": {"src_ip": SWITCH_IP + 256},
    "a neighbour": {"src_ip": host_ip(2)},
    "a neighbour, its hardware address too": {"src_ip": host_ip(2), "src_mac": host_mac(2)},
    "a neighbour's hardware address": {"src_mac": host_mac(2)},
    "nobody": {"src_ip": 0},
}


@pytest.mark.parametrize("forgery", FORGERIES.values(), ids=FORGERIES)
@pytest.mark.parametrize("dst_udp", [53, 51843])
def test_a_host_speaks_as_nobody_else_to_a_neighbour(
    switch: SwitchModel, forgery: dict[str, int], dst_udp: int
) -> None:
    frame = udp_frame(b"x" * 60, port=1, dst_ip=host_ip(3), dst_mac=host_mac(3), dst_udp=dst_udp, **forgery)
    assert switch.inject(1, frame) == []
    assert switch.drops == {DropReason.FORGED_SOURCE: 1} and switch.refused == {(1, DropReason.FORGED_SOURCE): 1}
    assert switch.inject(9, frame) == [(3, frame)], "the switch at the other end of a trunk judges its own hosts"


def test_what_hides_the_addresses_does_not_help(switch: SwitchModel) -> None:
    forged = udp_frame(b"x" * 60, port=1, src_ip=SWITCH_IP, dst_ip=host_ip(3), dst_mac=host_mac(3))
    for offset, value in ((14, 0x46), (20, 0x20), (21, 1), (22, 9), (23, 6)):
        assert switch.inject(1, ip_changed(forged, offset, value, repair=False)) == []
    assert switch.drops == {DropReason.FORGED_SOURCE: 5}


def test_a_host_claims_only_its_own_addresses_in_arp(switch: SwitchModel) -> None:
    for claim in ({"sender_ip": host_ip(2)}, {"sender_mac": host_mac(2)}, {"sender_ip": SWITCH_IP + 999}):
        for operation in (1, 2):
            for target in (host_ip(3), SWITCH_IP):
                assert switch.inject(1, arp(operation, port=1, target_ip=target, **claim)) == []
    assert switch.drops == {DropReason.FORGED_ARP: 12} and switch.refused == {(1, DropReason.FORGED_ARP): 12}
    probe = arp(1, port=1, target_ip=host_ip(1), sender_ip=0)
    assert len(switch.inject(1, probe)) == len(PORTS) - 1


def test_a_port_that_nothing_is_said_of(switch: SwitchModel) -> None:
    frame = udp_frame(b"x", port=12, dst_ip=host_ip(3), dst_mac=host_mac(3))
    assert switch.inject(12, frame) == [(3, frame)]
    switch.tables.strangers = False
    assert switch.inject(12, frame) == switch.inject(12, arp(1, port=12, target_ip=SWITCH_IP)) == []
    assert switch.drops[DropReason.FORGED_SOURCE] == 2 and switch.refused == {(12, DropReason.FORGED_SOURCE): 2}


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ({"src_udp": 40000}, DropReason.WRONG_UDP_PORT),
        ({"src_ip": host_ip(2)}, DropReason.FORGED_SOURCE),
        ({"src_ip": SWITCH_IP}, DropReason.FORGED_SOURCE),
    ],
)
def test_only_a_member_s_own_program_is_admitted(
    switch: SwitchModel, source: dict[str, int], reason: DropReason
) -> None:
    """A worker's, the root's and a rack's frames, right but for where they come from."""
    vector_header = Header(type=PacketType.PA, gen=REDUCE, lanes=LANES, seq=1 << 30)
    beat = Header(type=PacketType.HB, flags=Flag.ACKV, gen=REDUCE, ack=1 << 30, credit=1 << 31)
    down = Header(type=PacketType.PARAM, gen=LEAF, lanes=3)
    assert switch.inject(1, job_frame(vector_header, pack_values(ramp(1)), port=1, **source)) == []
    assert switch.inject(4, job_frame(beat, port=4, **source)) == []
    assert switch.inject(9, job_frame(down, b"abc", port=9, **source)) == []
    assert switch.drops == {reason: 3} and switch.refused == {(port, reason): 1 for port in (1, 4, 9)}
    assert all(slot.gen == 0 for slot in switch.slots.slots)


FAR = 1 << 30


def test_a_vector_far_ahead_takes_no_slot_of_a_reduction(switch: SwitchModel) -> None:
    """The root has said that it has everything before 8; T is 4."""
    switch.inject(4, hb(REDUCE, 4, 8, 12))
    for seq in (12, 13, 8 + FAR, 8 + (1 << 31) - 1):
        assert switch.inject(1, pa(REDUCE, 1, seq, ramp(9))) == []
    assert switch.drops == {DropReason.BEYOND_WINDOW: 4} and switch.refused == {(1, DropReason.BEYOND_WINDOW): 4}
    for seq in range(8, 12):
        for port in (1, 2):
            switch.inject(port, pa(REDUCE, port, seq, ramp(port)))
        [(_, frame)] = switch.inject(3, pa(REDUCE, 3, seq, ramp(3)))
        assert list(vector(frame, LANES)) == [6000 + lane * 21 for lane in range(LANES)]
    switch.inject(4, hb(REDUCE, 4, 5, 9))  # an old word of the root takes nothing back
    switch.inject(4, hb(REDUCE, 4, 9, 13))
    assert switch.inject(1, pa(REDUCE, 1, 12, ramp(1))) == [] and switch.drops.total() == 4
    switch.restart()
    switch.inject(1, pa(REDUCE, 1, 20, ramp(1)))
    assert switch.drops.total() == 4, "a switch that knows nothing yet lets the senders rebuild it"


def test_a_vector_far_ahead_takes_no_slot_of_an_all_reduce(switch: SwitchModel) -> None:
    """T is 2; who is ahead cannot move the minimum alone, whatever it says that it has."""
    for port, ack in ((5, 8), (6, 9)):
        switch.inject(port, hb(ALLREDUCE, port, ack, ack + 2))
    switch.inject(6, pa(ALLREDUCE, 6, FAR, ramp(2), flags=Flag.ACKV, ack=FAR, credit=FAR + 2))
    switch.inject(6, pa(ALLREDUCE, 6, 10, ramp(2)))
    assert switch.drops == {DropReason.BEYOND_WINDOW: 2}
    for seq in (8, 9):
        switch.inject(5, pa(ALLREDUCE, 5, seq, ramp(1)))
        assert len(switch.inject(6, pa(ALLREDUCE, 6, seq, ramp(2)))) == 2


@pytest.mark.parametrize("kind", [PacketType.FA, PacketType.MH])
def test_a_vector_far_ahead_takes_no_slot_of_a_rack(switch: SwitchModel, kind: PacketType) -> None:
    """The parent's word counts, not that of the rack's own workers; T is 4."""
    said = Header(type=kind, flags=Flag.ACKV, gen=LEAF, ack=8, credit=12, lanes=LANES if kind == PacketType.FA else 0)
    switch.inject(9, job_frame(said, pack_values(ramp(0)) if kind == PacketType.FA else b"", port=9))
    switch.inject(7, pa(LEAF, 7, 12, ramp(1)))
    assert switch.drops == {DropReason.BEYOND_WINDOW: 1}
    switch.inject(7, pa(LEAF, 7, 11, ramp(1)))
    assert switch.drops.total() == 1


def test_a_slot_that_a_far_vector_took_is_given_back(switch: SwitchModel) -> None:
    """The switch knows no bound before the root has said anything; then the slot was never rightly taken."""
    switch.inject(1, pa(REDUCE, 1, 8 + FAR, ramp(9)))
    switch.inject(2, pa(REDUCE, 2, 8, ramp(2)))
    assert switch.drops == {DropReason.OLD_SEQ: 1}
    switch.inject(4, hb(REDUCE, 4, 8, 12))
    for port in (1, 2):
        assert switch.inject(port, pa(REDUCE, port, 8, ramp(port))) == []
    [(_, frame)] = switch.inject(3, pa(REDUCE, 3, 8, ramp(3)))
    assert list(vector(frame, LANES)) == [6000 + lane * 21 for lane in range(LANES)]
    assert switch.inject(1, pa(REDUCE, 1, 8 + FAR, ramp(9))) == []
    assert switch.drops == {DropReason.OLD_SEQ: 1, DropReason.BEYOND_WINDOW: 1}


def sums_of_a_window(switch: SwitchModel) -> list[list[int]]:
    """The job begins: the root says where, and three workers send its first window; T is 4."""
    switch.inject(4, hb(REDUCE, 4, 0, 4))
    sums = []
    for seq in range(4):
        for port in (1, 2):
            assert switch.inject(port, pa(REDUCE, port, seq, ramp(port + seq))) == []
        [(_, frame)] = switch.inject(3, pa(REDUCE, 3, seq, ramp(3 + seq)))
        sums.append(list(vector(frame, LANES)))
    return sums


def true_sums() -> list[list[int]]:
    return [[sum(lanes) for lanes in zip(*(ramp(port + seq) for port in (1, 2, 3)), strict=True)] for seq in range(4)]


def test_two_windows_of_forged_vectors_before_a_job_begins_are_given_back(
    switch: SwitchModel, rng: random.Random
) -> None:
    """Vectors of the second window take the slots in any order, and they are beyond the root's first word."""
    forged = [*range(8), *(rng.randrange(8) for _ in range(20))]
    rng.shuffle(forged)
    for seq in forged:
        assert switch.inject(1, pa(REDUCE, 1, seq, ramp(rng.randrange(100, 200)))) == []
    assert sums_of_a_window(switch) == true_sums()


def test_a_forged_vector_of_the_first_window_stands_for_the_member_s_own(switch: SwitchModel) -> None:
    """Root of the member's host sent it, and without tags that is the member: its own vector comes again."""
    switch.inject(1, pa(REDUCE, 1, 2, ramp(150)))
    true = true_sums()
    true[2] = [mine - own + forged for mine, own, forged in zip(true[2], ramp(3), ramp(150), strict=True)]
    assert sums_of_a_window(switch) == true
