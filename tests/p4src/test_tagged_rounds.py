"""p4sgd.p4 built with TAGS: what an attacker without the key sends changes no round, in the model and the program."""

from __future__ import annotations

import pytest
from embedded_target import EmbeddedTarget
from frame_builder import job_frame, pack_values
from keyed_switch import KeyedSwitch
from scenarios import SLOT_STREAMS, Build, base_tables

from catchment.sim.golden import tags
from catchment.sim.golden.switch_frames import PAYLOAD_OFFSET, vector
from catchment.wire.generated.constants import HEADER_OFFSET, DropReason, Flag, Header, PacketType

LANES = 8
ALL, LEAF = 10, 30  # generations in the scenario's tables: three workers; two below a parent at port 9


class TaggedSlots(KeyedSwitch):
    """The scenario's switch with a key for two streams, and what its workers say."""

    def __init__(self, *, embedded: bool) -> None:
        build = Build(lanes=LANES, program="p4sgd", tags=True)
        keys = {gen: bytes([gen]) * 16 for gen in (ALL, LEAF)}
        super().__init__(build, base_tables(SLOT_STREAMS), keys, embedded=embedded)

    def say(self, kind: PacketType, worker: int, seq: int, values: list[int] | None = None, gen: int = ALL) -> bytes:
        """What worker 1, 2, ... sends, without a tag: its vector or its acknowledgement."""
        wid = worker - 1 if gen == ALL else worker - 7
        lanes, payload = (0, b"") if values is None else (LANES, pack_values(values))
        header = Header(type=kind, flags=Flag.ACKV, gen=gen, wid=wid, lanes=lanes, seq=seq, ack=seq, dtype=1)
        return job_frame(header, payload, port=worker)

    def signed(self, kind: PacketType, worker: int, seq: int, values: list[int] | None = None, gen: int = ALL) -> bytes:
        return tags.signed_frame(self.say(kind, worker, seq, values, gen), self.keys[gen])

    def opened(self, frame: bytes, gen: int = ALL) -> Header:
        read = tags.opened(self.keys[gen], frame[HEADER_OFFSET:])
        assert read is not None, "a wrong tag"
        return read[0]


@pytest.fixture(params=["model", "program"])
def switch(request: pytest.FixtureRequest) -> TaggedSlots:
    return TaggedSlots(embedded=request.param == "program")


def ramp(start: int) -> list[int]:
    return [start * 1000 + lane * 7 for lane in range(LANES)]


def forgeries(switch: TaggedSlots, frame: bytes) -> list[bytes]:
    """The frame as an attacker at worker 1's port would send it: forged, changed, untagged, in another's name."""
    good = tags.signed_frame(frame, switch.keys[ALL])
    made = [
        frame,
        tags.signed_frame(frame, b"guessed by heart"),
        tags.signed_frame(frame, switch.keys[LEAF]),
        tags.signed_frame(frame, switch.keys[ALL], wid=1),
    ]
    start = PAYLOAD_OFFSET - 8  # the acknowledged round, too
    return made + [bytes(b ^ (at == place) for at, b in enumerate(good)) for place in range(start, len(good))]


@pytest.mark.sampled(4)
def test_attacks_change_no_round_and_are_counted(switch: TaggedSlots) -> None:
    """Vectors and acknowledgements that are forged do not count; the sum, its copies and the confirmation are right."""
    attacks = forgeries(switch, switch.say(PacketType.PA, 1, 5, [9] * LANES))
    for frame in attacks:
        assert switch.inject(1, frame) == []
    for worker in (1, 2):
        assert switch.inject(worker, switch.signed(PacketType.PA, worker, 5, ramp(worker))) == []
    sums = switch.inject(3, switch.signed(PacketType.PA, 3, 5, ramp(3)))
    assert [port for port, _ in sums] == [1, 2, 3]
    for _, frame in sums:
        assert switch.opened(frame).type == PacketType.FA
        assert list(vector(frame, LANES)) == [6000 + lane * 21 for lane in range(LANES)]
    for worker in (2, 3):
        assert switch.inject(worker, switch.signed(PacketType.ACK, worker, 5)) == []
    late = forgeries(switch, switch.say(PacketType.ACK, 1, 5))
    for frame in late:
        assert switch.inject(1, frame) == [], "worker 1 has not acknowledged"
    confirmations = switch.inject(1, switch.signed(PacketType.ACK, 1, 5))
    assert [port for port, _ in confirmations] == [1, 2, 3]
    assert {(switch.opened(frame).type, switch.opened(frame).seq) for _, frame in confirmations} == {
        (PacketType.CNF, 5)
    }
    assert switch.drops() == {DropReason.BAD_TAG: len(attacks) + len(late)}


def test_what_a_leaf_passes_on_and_sends_up(switch: TaggedSlots) -> None:
    """A parent's sum keeps its tag, its confirmation gets one, what goes up has one; forged words go nowhere."""
    key = switch.keys[LEAF]
    assert switch.inject(7, switch.signed(PacketType.PA, 7, 2, ramp(1), LEAF)) == []
    [(port, up)] = switch.inject(8, switch.signed(PacketType.PA, 8, 2, ramp(2), LEAF))
    assert port == 9 and switch.opened(up, LEAF).wid == 17
    down = job_frame(Header(type=PacketType.FA, gen=LEAF, wid=3, lanes=LANES, seq=2), pack_values(ramp(4)), port=9)
    word = job_frame(Header(type=PacketType.CNF, gen=LEAF, wid=3, seq=2), port=9)
    for frame, kind in ((down, PacketType.FA), (word, PacketType.CNF)):
        left = switch.inject(9, tags.signed_frame(frame, key))
        assert [port for port, _ in left] == [7, 8]
        for _, copy in left:
            assert switch.opened(copy, LEAF).type == kind
    assert switch.inject(9, word) == []
    assert switch.inject(9, tags.signed_frame(word, bytes(16))) == []
    assert switch.drops() == {DropReason.BAD_TAG: 2}


def test_jobs_without_a_key_are_as_in_a_program_without_tags() -> None:
    """The same frames, bit for bit; a frame with a tag is refused there."""
    switch = TaggedSlots(embedded=False)
    plain, able = (EmbeddedTarget(Build(lanes=LANES, program="p4sgd", tags=has)) for has in (False, True))
    for target in (plain, able):
        target.load(base_tables(SLOT_STREAMS))
    frames = [(w, switch.say(PacketType.PA, w, seq, ramp(w))) for seq in range(3) for w in (1, 2, 3)]
    frames += [(w, switch.say(PacketType.ACK, w, seq)) for seq in range(3) for w in (1, 2, 3)]
    outputs = [[target.switch.inject(*one) for one in frames] for target in (plain, able)]
    assert outputs[0] == outputs[1] and sum(map(len, outputs[0])) == 18
    for target, reason in ((plain, DropReason.BAD_VERSION), (able, DropReason.BAD_TAG)):
        for kind, values in ((PacketType.PA, ramp(1)), (PacketType.ACK, None)):
            assert target.switch.inject(1, switch.signed(kind, 1, 3, values)) == []
        assert target.drops() == {reason: 2}
