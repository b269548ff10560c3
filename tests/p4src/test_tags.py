"""Frames with tags: the golden model, luwu.p4 built with TAGS, and the endpoints' code give the same bits."""

from __future__ import annotations

import random

import pytest
from embedded_target import EmbeddedTarget
from frame_builder import job_frame, pack_values
from keyed_switch import KeyedSwitch, key_all
from register_view import register_view, slot_register_view
from scenarios import SLOT_STREAMS, SLOT_TYPES, STREAMS, WORKER_TYPES, Build, Traffic, base_tables, random_tables
from targets import compare

from catchment.host import _machines
from catchment.sim.golden import tags
from catchment.sim.golden.slot_model import SlotModel
from catchment.sim.golden.switch_core import SwitchCore
from catchment.sim.golden.switch_frames import PAYLOAD_OFFSET, vector
from catchment.wire.generated.constants import HEADER_OFFSET, KEY_FRAMES, UDP_PORT, DropReason, Flag, Header, PacketType
from catchment.wire.udp_frame import internet_checksum

LANES = 8
REDUCE, ALLREDUCE, LEAF = 10, 0xFFFE, 30  # generations in the scenario's tables
APART = 100  # of the index that a worker says from that of its row


def test_the_published_vector() -> None:
    """Appendix A of the paper: the key 00..0f, the message 00..0e."""
    message = bytes(range(15))
    words = [int.from_bytes(message[:8], "little"), int.from_bytes(message[8:], "little") | 15 << 56]
    assert tags.siphash(bytes(range(16)), words) == 0xA129CA6149BE45E5


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 32, 256, 1400])
def test_hosts_make_the_model_s_tags(size: int, rng: random.Random) -> None:
    for kind in PacketType:
        key, payload = rng.randbytes(16), rng.randbytes(size)
        header = Header.unpack(rng.randbytes(22))._replace(type=kind)
        data = header._replace(version=2).pack() + payload
        assert _machines.frame_tag(key, data) == tags.tag_of(key, header, payload)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("lanes", "program"), [(8, "luwu"), (64, "luwu"), (8, "p4sgd"), (64, "p4sgd")])
def test_the_program_equals_the_model(lanes: int, program: str, rng: random.Random) -> None:
    """Random frames with tags that are right, wrong or missing, in streams with and without keys; state included."""
    build = Build(lanes=lanes, program=program, tags=True)
    streams, types = (SLOT_STREAMS, SLOT_TYPES) if program == "p4sgd" else (STREAMS, WORKER_TYPES)
    for _ in range(3):
        target, model = EmbeddedTarget(build), build.model(lambda: 0)
        model.tables = random_tables(rng, streams)
        key = rng.randbytes(16)
        key_all(model.tables, key, {stream.gen for stream in streams if rng.random() < 0.8}, APART)
        traffic = Traffic(rng, lanes, streams, types)
        compare(target, model, [mixed(rng, model, key, *traffic.next()) for _ in range(1500)])
        assert model.drops[DropReason.BAD_TAG] and sum(model.refused.values())
        held = slot_register_view(model) if isinstance(model, SlotModel) else register_view(model)
        for name, cells in held.items():
            assert target.switch.read_registers(name) == cells, f"register {name}"


def mixed(rng: random.Random, model: SwitchCore, key: bytes, port: int, frame: bytes) -> tuple[int, bytes]:
    """A frame with a tag, mostly the right one."""
    ours = len(frame) >= PAYLOAD_OFFSET and int.from_bytes(frame[36:38], "big") == UDP_PORT
    if not ours or rng.random() < 0.1:
        return port, frame
    said = model.tables.tags.get((Header.unpack(frame, HEADER_OFFSET).gen, port))
    wid = said.wid if said is not None and rng.random() < 0.95 else rng.randrange(256)
    made = bytearray(tags.signed_frame(frame, key if rng.random() < 0.95 else rng.randbytes(16), wid=wid))
    if rng.random() < 0.1:
        made[rng.randrange(len(made))] ^= 1 << rng.randrange(8)
    if rng.random() < 0.05:
        del made[rng.randrange(HEADER_OFFSET, len(made)) :]
    return port, bytes(made)


@pytest.fixture(params=["model", "program"])
def switch(request: pytest.FixtureRequest) -> KeyedSwitch:
    keys = {gen: bytes([gen % 256]) * 16 for gen in (REDUCE, ALLREDUCE, LEAF)}
    embedded = request.param == "program"
    return KeyedSwitch(Build(lanes=LANES, tags=True), base_tables(), keys, embedded=embedded, apart=APART)


def vector_of(worker: int, seq: int, values: list[int], gen: int = REDUCE) -> bytes:
    header = Header(type=PacketType.PA, gen=gen, wid=APART + worker - 1, lanes=LANES, seq=seq, dtype=1)
    return job_frame(header, pack_values(values), port=worker)


def ramp(start: int) -> list[int]:
    return [start * 1000 + lane * 7 for lane in range(LANES)]


def test_attacks_change_no_sum_and_are_counted(switch: KeyedSwitch) -> None:
    """Everything right but the tag: forged, changed, of another job, without one, in another member's name."""
    key = switch.keys[REDUCE]
    good = tags.signed_frame(vector_of(1, 5, ramp(1)), key)
    forged = vector_of(1, 5, [9] * LANES)
    attacks = [
        tags.signed_frame(forged, b"guessed by heart"),
        tags.signed_frame(forged, switch.keys[ALLREDUCE]),
        forged,
        tags.signed_frame(vector_of(1, 6, ramp(1)), key)[:-8] + good[-8:],
        tags.signed_frame(vector_of(1, 5, ramp(2)), key)[:-8] + good[-8:],
        tags.signed_frame(vector_of(1, 5, ramp(1)), key, wid=101),
    ]
    attacks += [bytes(b ^ (at == place) for at, b in enumerate(good)) for place in range(PAYLOAD_OFFSET, len(good))]
    for frame in attacks:
        assert switch.inject(1, frame) == []
    # Worker 1's own frame, right in every bit, at another port with that host's addresses.
    again = job_frame(Header.unpack(good, HEADER_OFFSET)._replace(version=1), good[PAYLOAD_OFFSET:-8], port=2)
    assert switch.inject(2, tags.signed_frame(again, key)) == []
    assert switch.drops() == {DropReason.BAD_TAG: len(attacks) + 1}
    assert switch.refused() == {(1, DropReason.BAD_TAG): len(attacks), (2, DropReason.BAD_TAG): 1}
    sum_of_three(switch, good)


def test_replayed_frames_change_no_sum(switch: KeyedSwitch) -> None:
    """A vector that was recorded counts once; in its slot's next round and in the next epoch it is refused."""
    key = switch.keys[REDUCE]
    good = tags.signed_frame(vector_of(1, 5, ramp(1)), key)
    for _ in range(3):
        assert switch.inject(1, good) == []
    sum_of_three(switch, good)
    switch.inject(2, tags.signed_frame(vector_of(2, 9, ramp(2)), key))  # the slot of 5, four later
    assert switch.inject(1, good) == []
    assert switch.drops() == {DropReason.OLD_SEQ: 1}
    renewed = tags.signed_frame(vector_of(1, 5, ramp(1), gen=LEAF), key)
    assert switch.inject(1, renewed) == []
    assert switch.drops() == {DropReason.OLD_SEQ: 1, DropReason.BAD_TAG: 1}


def sum_of_three(switch: KeyedSwitch, first: bytes) -> None:
    """The sum of workers 1 to 3 at 5 is right, and so is its tag."""
    key = switch.keys[REDUCE]
    assert switch.inject(1, first) == []
    assert switch.inject(2, tags.signed_frame(vector_of(2, 5, ramp(2)), key)) == []
    [(port, frame)] = switch.inject(3, tags.signed_frame(vector_of(3, 5, ramp(3)), key))
    assert port == 4 and list(vector(frame, LANES)) == [6000 + lane * 21 for lane in range(LANES)]
    read = tags.opened(key, frame[HEADER_OFFSET:])
    assert read is not None and read[0].type == PacketType.FA
    assert internet_checksum(frame[14:34]) == 0 and len(frame) == len(first)


def test_heartbeats_and_what_a_leaf_passes_on(switch: KeyedSwitch) -> None:
    """The root's heartbeat leaves as another type with a tag of its own; sums and parameters keep their tags."""
    plain = job_frame(Header(type=PacketType.HB, flags=Flag.ACKV, gen=REDUCE, ack=3, credit=7), port=4)
    assert switch.inject(4, plain) == []
    for port, frame in switch.inject(4, tags.signed_frame(plain, switch.keys[REDUCE])):
        read = tags.opened(switch.keys[REDUCE], frame[HEADER_OFFSET:])
        assert port in (1, 2, 3) and read is not None
        assert (read[0].type, read[0].ack, read[0].credit) == (PacketType.MH, 3, 7)
    down = job_frame(Header(type=PacketType.FA, gen=LEAF, wid=3, lanes=LANES, seq=1), pack_values(ramp(4)), port=9)
    left = switch.inject(9, tags.signed_frame(down, switch.keys[LEAF]))
    assert len(left) == 8
    for _, frame in left:
        read = tags.opened(switch.keys[LEAF], frame[HEADER_OFFSET:])
        assert read is not None and read[1] == pack_values(ramp(4))
    assert switch.drops() == {DropReason.BAD_TAG: 1}


def beat(switch: KeyedSwitch, port: int, ack: int) -> bytes:
    """A heartbeat of a peer of the all-reduce."""
    header = Header(type=PacketType.HB, flags=Flag.ACKV, gen=ALLREDUCE, wid=95 + port, ack=ack, credit=ack + 2)
    return tags.signed_frame(job_frame(header, port=port), switch.keys[ALLREDUCE])


def said(switch: KeyedSwitch, frame: bytes) -> int:
    """What the switch merges when worker 0 sends this."""
    [(_, out), _] = switch.inject(5, frame)
    read = tags.opened(switch.keys[ALLREDUCE], out[HEADER_OFFSET:])
    assert read is not None and read[0].type == PacketType.MH
    return read[0].ack


def test_no_recorded_frame_counts_as_long_as_the_key_serves(switch: KeyedSwitch, rng: random.Random) -> None:
    """A recorded heartbeat is older than all up to the last number of a key; with numbers beyond it would not be."""
    recorded: list[bytes] = []
    for ack in sorted({0, KEY_FRAMES, *(rng.randrange(KEY_FRAMES) for _ in range(40))}):
        recorded.append(beat(switch, 6, ack))
        switch.inject(6, recorded[-1])
        for replayed in (recorded[0], *rng.choices(recorded, k=4)):
            switch.inject(6, replayed)
        assert said(switch, beat(switch, 5, ack + 10)) == ack
    beyond = KEY_FRAMES + (1 << 23)
    switch.inject(6, beat(switch, 6, beyond))
    assert said(switch, beat(switch, 5, beyond + 10)) == beyond
    switch.inject(6, recorded[0])
    assert said(switch, beat(switch, 5, beyond + 10)) == beyond + 10, "what worker 1 lacks goes for acknowledged"


def test_streams_without_a_key_are_as_in_a_program_without_tags() -> None:
    """The same frames, bit for bit; a frame with a tag is refused there."""
    plain, able = (EmbeddedTarget(Build(lanes=LANES, tags=tags)) for tags in (False, True))
    for target in (plain, able):
        target.load(base_tables())
    frames = [(port, vector_of(port, seq, ramp(port))) for seq in range(4) for port in (1, 2, 3)]
    assert [plain.switch.inject(*one) for one in frames] == [able.switch.inject(*one) for one in frames]
    for target, reason in ((plain, DropReason.BAD_VERSION), (able, DropReason.BAD_TAG)):
        assert target.switch.inject(1, tags.signed_frame(vector_of(1, 9, ramp(1)), bytes(16))) == []
        assert target.drops() == {reason: 1}
