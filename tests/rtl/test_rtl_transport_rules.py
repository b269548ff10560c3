"""The rules of docs/explanation/protocol.md: credit, window, timeouts, requests, heartbeats, settings, speed."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise

import pytest
from transport_frames import LANES, M32, merged_frame, parsed, sum_frame
from transport_nic import VECTOR_BYTES, Gaps, Meta, Nic, Settings, StreamSettings

from catchment.rtl.generated.nic_regs import Role
from catchment.wire.generated.constants import Flag, PacketType

BASE = 0xFFFF_FFFA
STREAM = StreamSettings(gen=9, base_seq=BASE, window=8, slots=1024)
WIDE = replace(STREAM, window=1024)
QUIET = 1 << 24  # clocks: no timer runs out meanwhile
SILENT = Settings(STREAM, STREAM, all_reduce=True, rto=QUIET, rto_most=QUIET, heartbeat_interval=QUIET)
STATS_OF_FRAMES = (
    "TX_BYTES", "TX_VECTORS", "TX_HEARTBEATS", "RX_BYTES", "RX_FRAMES", "RX_VECTORS", "RX_SATURATED", "RX_HEARTBEATS",
)  # fmt: skip
GRADIENTS = replace(SILENT, rx=replace(STREAM, gen=10), all_reduce=False)


def nic_of(settings: Settings, rng: random.Random, role: Role = Role.WORKER) -> Nic:
    nic = Nic(role, settings, rng.getrandbits(32))
    nic.start()
    nic.run(50)  # the first heartbeat
    nic.frames()
    return nic


def push(nic: Nic, rng: random.Random, count: int) -> list[bytes]:
    vectors = [rng.randbytes(VECTOR_BYTES) for _ in range(count)]
    for vector in vectors:
        nic.push(vector, Meta())
    return vectors


def sent(nic: Nic, clocks: int) -> list[tuple[int, int, bool]]:
    """(clock, offset from BASE, again) of the data that leave within `clocks`."""
    nic.run(clocks)
    out = []
    for clock, frame in nic.frames():
        header, _ = parsed(frame)
        if header.type in (PacketType.PA, PacketType.PARAM):
            out.append((clock, (header.seq - nic.settings.tx.base_seq) % M32, bool(int(header.flags) & Flag.RETX)))
    return out


def offsets(nic: Nic, clocks: int) -> list[int]:
    return [offset for _, offset, _ in sent(nic, clocks)]


def beats(nic: Nic, clocks: int) -> list[tuple[int, int, int, int]]:
    """(clock, ack, credit, the frame asked for or -1) of the heartbeats that leave, offsets from the stream's base."""
    nic.run(clocks)
    base = nic.settings.rx.base_seq
    out = []
    for clock, frame in nic.frames():
        header, _ = parsed(frame)
        if header.type == PacketType.HB:
            asked = (header.seq - base) % M32 if int(header.flags) & Flag.RETX else -1
            out.append((clock, (header.ack - base) % M32, (header.credit - base) % M32, asked))
    return out


def test_clocks_from_data_to_frame_and_back(rng: random.Random) -> None:
    """A frame begins 3 clocks after the last beat of its vector; a vector 3 clocks after the last beat of its frame."""
    with nic_of(replace(SILENT, tx=WIDE, rx=WIDE), rng) as nic:
        begin = nic.now
        push(nic, rng, 1000)
        clocks = [clock - begin for clock, _, _ in sent(nic, 6000)]
        assert clocks[0] == 7, "from the first beat of data to the first beat of the frame"
        assert clocks == [7 + 5 * i for i in range(1000)], "a bubble"
        begin = nic.now
        for index in range(1000):
            nic.receive(sum_frame(nic.settings, (BASE + index) % M32))
        nic.run(6000)
        clocks = [clock - begin for clock, _, _ in nic.vectors()]
        assert clocks[0] == 8, "from the first beat of the frame to the first beat of data"
        assert clocks == [8 + 5 * i for i in range(1000)], "a bubble"


def test_nothing_beyond_the_credit(rng: random.Random) -> None:
    with nic_of(GRADIENTS, rng) as nic:
        push(nic, rng, 40)
        assert offsets(nic, 1000) == list(range(8))
        assert nic.stat("TX_CREDIT_CLOCKS") > 800
        nic.receive(merged_frame(nic.settings, BASE + 8, BASE + 8))  # received, and no room for more
        assert offsets(nic, 1000) == []
        nic.receive(merged_frame(nic.settings, BASE + 8, BASE + 11))
        assert offsets(nic, 1000) == [8, 9, 10]
        for stale in (BASE + 3, BASE + 1, BASE):  # old heartbeats move nothing back
            nic.receive(merged_frame(nic.settings, stale, stale + 8))
        assert offsets(nic, 1000) == []
        status = nic.status()
        assert (status.tx_acked, status.tx_credit) == ((BASE + 8) % M32, (BASE + 11) % M32)
        assert nic.rejects() == {}


def test_no_more_in_flight_than_the_window(rng: random.Random) -> None:
    with nic_of(GRADIENTS, rng) as nic:
        push(nic, rng, 40)
        nic.receive(merged_frame(nic.settings, BASE, BASE + 1000))
        assert offsets(nic, 1000) == list(range(8))
        assert nic.stat("TX_WINDOW_CLOCKS") > 800
        nic.receive(merged_frame(nic.settings, BASE + 3, BASE + 1000))
        assert offsets(nic, 1000) == [8, 9, 10]


def test_the_ring_takes_its_places_and_no_more(rng: random.Random) -> None:
    with nic_of(GRADIENTS, rng) as nic:
        push(nic, rng, 1100)
        nic.run(8000)
        assert nic.unsent == 1100 - 1024
        assert nic.stat("TX_RING_CLOCKS") > 0
        nic.receive(merged_frame(nic.settings, BASE + 8, BASE + 16))
        nic.run(200)
        assert nic.unsent == 1100 - 1032


def test_timeouts_resend_from_the_oldest_with_backoff(rng: random.Random) -> None:
    settings = replace(GRADIENTS, rto=1000, rto_most=3000, resend_delay=128)
    with nic_of(settings, rng) as nic:
        push(nic, rng, 6)
        events = sent(nic, 12_000)
        assert [offset for _, offset, _ in events[:6]] == list(range(6))
        resent = events[6:]
        assert resent and all(again and offset == 0 for _, offset, again in resent), "ma alone while nothing comes back"
        waits = [b[0] - a[0] for a, b in pairwise(resent)]
        delay = 128 | 64
        assert all(abs(wait - (rto + delay)) <= 8 for wait, rto in zip(waits, [2000, 3000, 3000, 3000], strict=False))
        assert nic.stat("TX_TIMEOUTS") == len(resent)
        # It was lost, and so was what followed: twice as many each time an ack shows it.
        nic.receive(merged_frame(settings, BASE + 1, BASE + 9))
        assert offsets(nic, 300) == [1, 2]
        nic.receive(merged_frame(settings, BASE + 3, BASE + 11))
        assert offsets(nic, 300) == [3, 4, 5]
        nic.receive(merged_frame(settings, BASE + 6, BASE + 14))
        assert offsets(nic, 5000) == [], "all has arrived"


def test_the_timeout_falls_back_with_progress(rng: random.Random) -> None:
    """The timeouts after it are as long as the first ones of a stream."""
    with nic_of(replace(GRADIENTS, rto=1000, rto_most=8000), rng) as nic:
        push(nic, rng, 3)
        nic.run(20_000)
        assert nic.stat("TX_TIMEOUTS") == 4, "the longest timeout is reached"
        nic.frames()
        nic.receive(merged_frame(nic.settings, BASE + 1, BASE + 9))
        events = sent(nic, 8000)
        assert [offset for _, offset, _ in events] == [1, 2, 1, 1, 1]
        waits = [b[0] - a[0] for a, b in pairwise([events[0], *events[2:]])]
        assert all(abs(wait - (rto + 64)) <= 8 for wait, rto in zip(waits, [1000, 2000, 4000], strict=True)), waits


def test_round_trips_are_measured_but_for_frames_that_timed_out(rng: random.Random) -> None:
    with nic_of(replace(GRADIENTS, rto=3000, rto_most=3000), rng) as nic:

        def trip(offset: int, wait: int) -> int:
            """The clocks from the first beat of a frame to the beat that acknowledges it."""
            push(nic, rng, 1)
            (clock, *_), *_ = sent(nic, wait)
            begin = nic.now
            nic.receive(merged_frame(nic.settings, BASE + offset + 1, BASE + offset + 9))
            nic.run(64)
            return begin - clock

        def measured() -> list[int]:
            return [nic.stat(f"ROUND_TRIP{name}") for name in ("S", "_SUM_CLOCKS", "_MIN_CLOCKS", "_MAX_CLOCKS")]

        assert measured() == [0, 0, M32 - 1, 0]
        first = trip(0, 500) + 6  # until the acknowledgement has been checked
        assert measured() == [1, first, first, first]
        trip(1, 4000)
        assert nic.stat("TX_TIMEOUTS") == 1
        assert measured() == [1, first, first, first], "it may be the answer to either of two frames"
        second = trip(2, 300) + 6
        assert measured() == [2, first + second, second, first]


@pytest.mark.parametrize(
    "settings",
    [
        {"rto": M32 - 1, "rto_most": M32 - 1},
        {"rto": M32 - 64, "rto_most": M32 - 1},
        {"rto": 500, "rto_most": 1000, "resend_delay": M32 - 300},
        {"rto": M32 - 300, "rto_most": M32 - 1, "resend_delay": 500},
    ],
)
def test_no_timeout_wraps(settings: dict[str, int], rng: random.Random) -> None:
    """Times that are longer together than 32 bits are long: nothing is sent again."""
    with nic_of(replace(GRADIENTS, **settings), rng) as nic:  # type: ignore[arg-type]
        push(nic, rng, 6)
        assert offsets(nic, 100_000) == list(range(6))
        assert nic.stat("TX_TIMEOUTS") == 0


def test_the_least_time_is_64_clocks(rng: random.Random) -> None:
    with nic_of(replace(GRADIENTS, rto=0, rto_most=0, resend_delay=0), rng) as nic:
        push(nic, rng, 1)
        clocks = [clock for clock, _, _ in sent(nic, 2000)]
        assert len(clocks) > 10
        assert all(64 <= after - before <= 72 for before, after in pairwise(clocks[1:]))


def test_requests_are_heeded_anew_after_a_timeout(rng: random.Random) -> None:
    with nic_of(replace(GRADIENTS, rto=2000, rto_most=1 << 20), rng) as nic:
        push(nic, rng, 8)

        def ask() -> None:
            seq = (BASE + 3) % M32
            nic.receive(merged_frame(nic.settings, BASE, BASE + 8, flags=Flag.ACKV | Flag.RETX, seq=seq))

        nic.run(300)
        nic.frames()
        ask()
        assert offsets(nic, 300) == [3]
        ask()
        assert offsets(nic, 300) == [], "once is enough"
        assert offsets(nic, 2000) == [0], "the timeout"
        ask()
        assert offsets(nic, 300) == [3], "it may have been lost again"


def test_a_late_ack_ends_the_repetition(rng: random.Random) -> None:
    settings = replace(GRADIENTS, rto=1000, rto_most=8000)
    with nic_of(settings, rng) as nic:
        push(nic, rng, 6)
        assert offsets(nic, 1500) == [0, 1, 2, 3, 4, 5, 0]
        nic.receive(merged_frame(settings, BASE + 4, BASE + 12))
        assert offsets(nic, 900) == []


def test_a_missing_frame_is_sent_again_once(rng: random.Random) -> None:
    with nic_of(GRADIENTS, rng) as nic:
        push(nic, rng, 8)
        nic.run(300)
        nic.frames()
        for asked in (3, 3, 5, 4, 3, 9, -1):
            seq = (BASE + asked) % M32
            nic.receive(merged_frame(nic.settings, BASE, BASE + 8, flags=Flag.ACKV | Flag.RETX, seq=seq))
        assert [(offset, again) for _, offset, again in sent(nic, 500)] == [(3, True), (5, True)]
        assert nic.stat("RX_REQUESTS") == 7


def test_a_receiver_asks_for_what_is_missing(rng: random.Random) -> None:
    settings = replace(GRADIENTS, tx=GRADIENTS.rx, rx=GRADIENTS.tx)  # the root takes sums
    with nic_of(settings, rng, Role.ROOT) as nic:
        for offset in (0, 3, 1, 6):
            nic.receive(sum_frame(settings, (BASE + offset) % M32))
        asked = [what for _, _, _, what in beats(nic, 500) if what >= 0]
        assert asked == [1, 2, 4, 5]
        assert nic.stat("TX_REQUESTS") == 4


def test_a_peer_asks_by_sending_its_own_part_again(rng: random.Random) -> None:
    with nic_of(SILENT, rng) as nic:
        push(nic, rng, 5)
        nic.run(300)
        nic.frames()
        for offset in (0, 3):
            nic.receive(sum_frame(nic.settings, (BASE + offset) % M32))
        assert offsets(nic, 500) == [1, 2]


def test_heartbeats_each_interval_and_at_once_when_senders_wait(rng: random.Random) -> None:
    settings = replace(GRADIENTS, tx=GRADIENTS.rx, rx=replace(GRADIENTS.tx, window=16))
    settings = replace(settings, heartbeat_interval=1024)
    with nic_of(settings, rng, Role.ROOT) as nic:
        idle = beats(nic, 6000)
        gaps = {b[0] - a[0] for a, b in pairwise(idle)}
        assert len(idle) >= 5 and all(abs(gap - 1090) <= 3 for gap in gaps), gaps
        # A whole window arrives while the host takes nothing: what is granted is used up.
        nic.gaps(Gaps(host_stall=256))
        for offset in range(16):
            nic.receive(sum_frame(settings, (BASE + offset) % M32))
        assert beats(nic, 300)[-1][1:] == (16, 16, -1)
        assert nic.stat("RX_FULL_CLOCKS") > 0
        begin = nic.now
        nic.gaps(Gaps())
        clock, ack, credit, _ = beats(nic, 60)[0]
        assert clock - begin < 16 and (ack, credit) == (16, 17), "room again, and the senders wait for it"
        # A duplicate: the sender has not heard.
        nic.run(300)
        nic.frames()
        begin = nic.now
        nic.receive(sum_frame(settings, BASE))
        assert [clock - begin < 16 for clock, _, _, _ in beats(nic, 60)] == [True]
        # The end of a message.
        begin = nic.now
        nic.receive(sum_frame(settings, (BASE + 16) % M32, flags=Flag.LAST))
        assert [clock - begin < 24 for clock, _, _, _ in beats(nic, 60)] == [True]


def test_senders_that_used_up_an_odd_window_hear_of_room_at_once(rng: random.Random) -> None:
    settings = replace(GRADIENTS, tx=GRADIENTS.rx, rx=replace(GRADIENTS.tx, window=9))
    with nic_of(replace(settings, heartbeat_interval=1 << 20), rng, Role.ROOT) as nic:
        nic.gaps(Gaps(host_stall=256))
        for offset in range(9):
            nic.receive(sum_frame(settings, (BASE + offset) % M32))
        nic.run(600)
        nic.frames()
        nic.gaps(Gaps())
        nic.run(8)
        nic.gaps(Gaps(host_stall=256))
        assert [beat for _, *beat in beats(nic, 400)] == [[9, 10, -1]]


@pytest.mark.parametrize("window", [0, 1025, 0xFFFF])
def test_a_window_that_cannot_be_is_the_largest(window: int, rng: random.Random) -> None:
    stream = replace(STREAM, window=window)
    with nic_of(replace(SILENT, tx=stream, rx=stream), rng) as nic:
        assert nic.status().tx_credit == (BASE + 1024) % M32
        nic.receive(sum_frame(nic.settings, (BASE + 1023) % M32))
        nic.receive(sum_frame(nic.settings, (BASE + 1024) % M32))
        assert nic.rejects() == {"WINDOW": 1}


def test_generation_0_never_begins(rng: random.Random) -> None:
    nothing = replace(STREAM, gen=0)
    with Nic(Role.WORKER, replace(SILENT, tx=nothing, rx=nothing), rng.getrandbits(32)) as nic:
        nic.push(bytes(VECTOR_BYTES), Meta())
        nic.receive(sum_frame(nic.settings, BASE))
        nic.run(3000)
        assert not nic.status().tx_ready and not nic.status().rx_ready
        assert nic.frames() == [] and nic.vectors() == []
        assert nic.rejects() == {"GENERATION": 1}
        assert nic.unsent == 0, "a stream at rest drops what the host offers"


def test_times_of_zero_neither_hang_nor_flood(rng: random.Random) -> None:
    with nic_of(replace(GRADIENTS, rto=0, rto_most=0, heartbeat_interval=0), rng) as nic:
        push(nic, rng, 3)
        assert 6000 // 80 < len(sent(nic, 6000)) < 6000 // 60
        assert 6000 // 80 < len(beats(nic, 6000)) < 6000 // 60


def test_a_vector_under_way_when_a_stream_ends_is_dropped_whole(rng: random.Random) -> None:
    """The stream begins again while the host is in the middle of a vector of the old one."""
    for clocks in range(12):
        with nic_of(SILENT, rng) as nic:
            old = push(nic, rng, 6)
            nic.run(clocks)
            nic.configure(nic.settings.without())
            nic.run(1 + clocks % 3)
            fresh = replace(STREAM, gen=77, base_seq=500)
            nic.configure(replace(SILENT, tx=fresh, rx=fresh))
            nic.run(100)
            nic.start()
            new = push(nic, rng, 2)
            nic.run(300)
            frames = [parsed(frame) for _, frame in nic.frames()]
            payloads = [
                b"".join(value.to_bytes(4, "little") for value in payload)
                for header, payload in frames
                if header.gen == 77 and header.type == PacketType.PA
            ]
            assert payloads == [*old[6 - (len(payloads) - 2) :], *new], "half a vector"
            for header, payload in frames:
                if header.gen == STREAM.gen and header.type == PacketType.PA:
                    assert len(payload) == LANES and b"".join(v.to_bytes(4, "little") for v in payload) in old


def test_reset_at_any_clock(rng: random.Random) -> None:
    """Reset comes in the middle of vectors and frames, in and out; afterwards everything works from the beginning."""
    for clocks in [*range(1, 30, 3), 200]:
        with nic_of(SILENT, rng) as nic:
            push(nic, rng, 20)
            for offset in range(4):
                nic.receive(sum_frame(nic.settings, (BASE + offset) % M32))
            nic.run(clocks)
            nic.reset()
            nic.start()
            nic.run(500)
            nic.frames()
            nic.vectors()
            before = nic.status()
            nic.receive(sum_frame(nic.settings, before.rx_ack))
            nic.run(100)
            assert len(nic.vectors()) == 1
            assert nic.stat("TX_VECTORS") == (before.tx_next - BASE) % M32


def test_bytes_frames_and_stalls_are_counted(rng: random.Random) -> None:
    with Nic(Role.WORKER, replace(SILENT, tx=WIDE, rx=WIDE), rng.getrandbits(32)) as nic:
        nic.start()
        nic.gaps(Gaps(net_stall=256))
        push(nic, rng, 3)
        nic.run(500)
        assert 400 < nic.stat("TX_LINK_CLOCKS") <= 500
        assert nic.stat("RX_HOST_CLOCKS") == 0
        nic.gaps(Gaps(host_stall=256))
        arriving = [sum_frame(nic.settings, (BASE + i) % M32, flags=Flag.SAT if i else 0) for i in range(3)]
        arriving.append(rng.randbytes(100))
        for frame in arriving:
            nic.receive(frame)
        nic.run(500)
        assert 400 < nic.stat("RX_HOST_CLOCKS") <= 500
        nic.gaps(Gaps())
        push(nic, rng, 200)
        for i in range(3, 203):
            arriving.append(sum_frame(nic.settings, (BASE + i) % M32))
            nic.receive(arriving[-1])
        nic.run(2000)
        for name in ("TX_LINK_CLOCKS", "RX_HOST_CLOCKS"):
            assert nic.stat(name) < 600, "beats that are taken do not wait"
        frames = [frame for _, frame in nic.frames()]
        types = [parsed(frame)[0].type for frame in frames]
        found = {name: nic.stat(name) for name in STATS_OF_FRAMES}
        assert found == {
            "TX_BYTES": sum(map(len, frames)), "TX_VECTORS": 203, "TX_HEARTBEATS": types.count(PacketType.HB),
            "RX_BYTES": sum(map(len, arriving)), "RX_FRAMES": 204, "RX_VECTORS": 203,
            "RX_SATURATED": 2, "RX_HEARTBEATS": 0,
        }  # fmt: skip
        assert len(nic.vectors()) == 203 and found["TX_HEARTBEATS"]
        nic.receive(merged_frame(nic.settings, BASE + 3, BASE + 1027))
        nic.run(100)
        assert nic.stat("RX_HEARTBEATS") == 1
