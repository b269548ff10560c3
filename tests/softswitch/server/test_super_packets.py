"""Merged UDP: what a packet socket splits and merges, against a slow model; packets that nobody should believe."""

from __future__ import annotations

import random

import pytest
from udp_packets import DONT_FRAGMENT, LONGEST, NEEDS_CHECKSUM, UDP_SEGMENTS, Flow, any_flow, any_payload, note

from catchment.softswitch.native import runtime

NOTE = 10


def split(said: bytes, packet: bytes, longest: int = LONGEST) -> list[bytes] | None:
    result: list[bytes] | None = runtime().split_super_packet(said, packet, len(packet), longest)
    return result


def merge(frames: list[bytes], longest: int = LONGEST) -> list[tuple[bytes, bytes]]:
    return [(one[:NOTE], one[NOTE:]) for one in runtime().merge_frames(frames, longest)]


def test_segments_are_the_frames_of_the_wire(rng: random.Random) -> None:
    for _ in range(300):
        flow, (payload, segment) = any_flow(rng), any_payload(rng)
        assert split(*flow.merged(payload, segment)) == flow.segments(payload, segment)


def test_headers_that_lie_split_nothing(rng: random.Random) -> None:
    flow = Flow()
    said, packet = flow.merged(bytes(3000), 1000)
    assert split(said, packet) is not None

    def with_bytes(at: int, value: bytes) -> bytes:
        return packet[:at] + value + packet[at + len(value) :]

    lies = {
        "another protocol": with_bytes(23, b"\x06"),
        "another version": with_bytes(14, b"\x65"),
        "a header that is too short": with_bytes(14, b"\x44"),
        "more fragments": with_bytes(20, b"\x20\x00"),
        "a fragment's offset": with_bytes(20, b"\x00\x01"),
        "an IP length": with_bytes(16, b"\x00\x40"),
        "a UDP length": with_bytes(38, b"\xff\xff"),
        "another Ethertype": with_bytes(12, b"\x08\x06"),
        "three tags": flow.frame(bytes(3000))[:12] + bytes.fromhex("810000018100000281000003") + packet[12:],
        "no payload": flow.frame(b""),
    }
    for what, lie in lies.items():
        assert split(said, lie) is None, what
    for what, wrong in {
        "no size": note(flags=NEEDS_CHECKSUM, kind=UDP_SEGMENTS, segment=0),
        "too many": note(flags=NEEDS_CHECKSUM, kind=UDP_SEGMENTS, segment=1),
        "too long": note(flags=NEEDS_CHECKSUM, kind=UDP_SEGMENTS, segment=2000),
        "TCP": note(flags=NEEDS_CHECKSUM, kind=1, segment=1000),
        "UDP fragments": note(flags=NEEDS_CHECKSUM, kind=3, segment=1000),
        "TCP of IPv6": note(flags=NEEDS_CHECKSUM, kind=4, segment=1000),
        "congestion": note(flags=NEEDS_CHECKSUM, kind=0x85, segment=1000),
    }.items():
        assert split(wrong, packet, 1500 + 22) is None, what


def test_anything_is_split_into_all_its_bytes_or_not_at_all(rng: random.Random) -> None:
    """Mutated packets and notes: no exception, nothing longer than asked for, no payload lost."""
    outcomes = {True: 0, False: 0}
    for _ in range(5000):
        flow, (payload, segment) = any_flow(rng), any_payload(rng, longest=300)
        said, packet = (bytearray(part) for part in flow.merged(payload, segment))
        for part in (said, packet[:90]):
            if rng.random() < 0.5:
                part[rng.randrange(len(part))] = rng.choice([0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)])
        packet = packet[: rng.choice([len(packet), len(packet), rng.randrange(len(packet) + 1)])]
        longest, at_hand = rng.choice([60, 400, LONGEST]), rng.choice([len(packet), rng.randrange(len(packet) + 1)])
        frames = runtime().split_super_packet(bytes(said), bytes(packet), at_hand, longest)
        outcomes[frames is not None] += 1
        if frames is not None:
            assert len(frames) <= 128
            assert max(map(len, frames)) <= longest
            head = min(map(len, frames))
            payloads = sum(len(frame) for frame in frames) - (len(frames) - 1) * flow.payload
            assert payloads == len(packet) or head < flow.payload
    assert min(outcomes.values()) > 100


def test_a_checksum_left_to_the_device_is_finished(rng: random.Random) -> None:
    for _ in range(200):
        flow, payload = any_flow(rng), rng.randbytes(rng.randrange(1500))
        said = note(flags=NEEDS_CHECKSUM, start=flow.transport, offset=6)
        assert runtime().finish_checksum(said, flow.frame(payload, udp_checksum="left")) == flow.frame(payload)
    frame = Flow().frame(b"12345678")
    for start, offset in ((len(frame), 0), (len(frame) - 2, 1), (0xFFFF, 0xFFFF), (0, len(frame) - 1)):
        assert runtime().finish_checksum(note(flags=NEEDS_CHECKSUM, start=start, offset=offset), frame) is None
    assert runtime().finish_checksum(note(start=34, offset=6), frame) is None


def test_a_run_of_one_flow_is_merged_and_is_what_it_was(rng: random.Random) -> None:
    merged_some = 0
    for _ in range(200):
        flow = Flow(identification=rng.randrange(65536), fragment=rng.choice([0, DONT_FRAGMENT]))
        payload, segment = any_payload(rng, longest=8900)
        frames = flow.segments(payload, segment)
        back = []
        for said, packet in merge(frames):
            back += [packet] if said == bytes(NOTE) else split(said, packet) or []
            merged_some += said != bytes(NOTE)
            assert len(packet) <= 65535
        assert back == frames
    assert merged_some > 50


def test_frames_without_checksum_leave_with_one() -> None:
    flow = Flow()
    payloads = [bytes([index]) * 1000 for index in range(5)] + [b"end"]
    frames = [flow.frame(payload, index, "none") for index, payload in enumerate(payloads)]
    ((said, packet),) = merge(frames)
    assert (said, packet) == flow.merged(b"".join(payloads), 1000)


@pytest.mark.parametrize(
    ("what", "second"),
    [
        ("another port", Flow(ports=(51836, 51837)).frame(bytes(100), 1)),
        ("another life", Flow(ttl=63).frame(bytes(100), 1)),
        ("no payload", Flow().frame(b"", 1)),
        ("no checksum", Flow().frame(bytes(100), 1, "none")),
        ("a wrong checksum", Flow().frame(bytes(100), 1)[:-1] + b"x"),
        ("a wrong IP checksum", Flow().frame(bytes(100), 1)[:24] + b"xx" + Flow().frame(bytes(100), 1)[26:]),
        ("options", Flow(options=bytes(4)).frame(bytes(96), 1)),
        ("a tag", Flow(tags=bytes.fromhex("8100a123")).frame(bytes(96), 1)),
        ("IPv6", Flow(v6=True).frame(bytes(80), 1)),
        ("bytes behind the datagram", Flow().frame(bytes(90), 1) + bytes(10)),
        ("no UDP", bytes(142)),
    ],
)
def test_what_differs_stays_apart(what: str, second: bytes) -> None:
    del what
    first = Flow().frame(bytes(100))
    for frames in ([first, second], [second, first]):
        assert merge(frames) == [(bytes(NOTE), frame) for frame in frames]


def test_only_the_last_may_be_shorter() -> None:
    sizes = [100, 100, 99, 99, 100, 1]
    payloads = [bytes(size) for size in sizes]
    frames = [Flow().frame(payload, index) for index, payload in enumerate(payloads)]
    assert [len(packet) - 42 for _, packet in merge(frames)] == [299, 99, 101]


def test_identifications_out_of_order_merge_only_where_they_mean_nothing() -> None:
    for fragment, count in ((DONT_FRAGMENT, 1), (0, 3)):
        flow = Flow(fragment=fragment)
        assert len(merge([flow.frame(bytes(100), index) for index in (4, 4, 2)])) == count


def test_frames_beyond_the_mtu_are_left_to_the_kernel_to_refuse() -> None:
    frames = [Flow().frame(bytes(1500), index) for index in range(4)]
    assert len(merge(frames, 1514)) == 4
    assert len(merge(frames, 1542)) == 1
    assert len(merge(frames, 0)) == 4
