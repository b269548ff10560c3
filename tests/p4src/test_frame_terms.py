"""Keys that follow one another: which of two keys a frame has, in the golden model and in the compiled programs."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from embedded_target import EmbeddedTarget
from frame_builder import job_frame, pack_values
from keyed_switch import key_all
from scenarios import SLOT_STREAMS, SLOT_TYPES, STREAMS, WORKER_TYPES, Build, Traffic, base_tables, random_tables
from switch_rows import rows
from targets import compare

from catchment.sim.golden import tags
from catchment.sim.golden.switch_core import SwitchCore
from catchment.sim.golden.switch_frames import PAYLOAD_OFFSET, vector
from catchment.sim.golden.switch_tables import TagKey
from catchment.wire.generated.constants import HEADER_OFFSET, UDP_PORT, DropReason, Flag, Header, PacketType

LANES = 8
REDUCE, ALLREDUCE = 10, 0xFFFE  # generations in the scenario's tables
EVEN, ODD, LATER = b"key of an even t", b"key of an odd te", b"the key thereaft"
TERM = 64


@pytest.mark.sampled(4)
@pytest.mark.parametrize("program", ["luwu", "p4sgd"])
def test_the_program_equals_the_model(program: str, rng: random.Random) -> None:
    """Random frames under the key of their term, under the other one, or under neither."""
    build = Build(lanes=LANES, program=program, tags=True)
    streams, types = (SLOT_STREAMS, SLOT_TYPES) if program == "p4sgd" else (STREAMS, WORKER_TYPES)
    for _ in range(3):
        target, model = EmbeddedTarget(build), build.model(lambda: 0)
        model.tables = random_tables(rng, streams)
        key_all(model.tables, EVEN, {stream.gen for stream in streams})
        for place, one in model.tables.tags.items():
            model.tables.tags[place] = replace(one, odd=ODD, term_bit=1 << rng.randrange(4))
        traffic = Traffic(rng, LANES, streams, types)
        compare(target, model, [signed(rng, model, *traffic.next()) for _ in range(1500)])
        assert model.drops[DropReason.BAD_TAG] and sum(model.refused.values())


def signed(rng: random.Random, model: SwitchCore, port: int, frame: bytes) -> tuple[int, bytes]:
    """A frame with a tag, mostly the right one."""
    if len(frame) < PAYLOAD_OFFSET or int.from_bytes(frame[36:38], "big") != UDP_PORT:
        return port, frame
    header = Header.unpack(frame, HEADER_OFFSET)
    said = model.tables.tags.get((header.gen, port))
    if said is None:
        return port, frame
    key = said.of(header) if rng.random() < 0.9 else rng.choice((EVEN, ODD, LATER))
    return port, tags.signed_frame(frame, key, wid=said.wid)


@pytest.fixture(params=["model", "program"])
def switch(request: pytest.FixtureRequest) -> SwitchCore | EmbeddedTarget:
    build = Build(lanes=LANES, tags=True)
    model = build.model()
    model.tables = base_tables()
    if request.param == "model":
        return model
    target = EmbeddedTarget(build)
    target.load(model.tables)
    return target


def give(switch: SwitchCore | EmbeddedTarget, even: bytes, odd: bytes) -> None:
    """The switch's rows get these keys."""
    tables = base_tables()
    for gen in (REDUCE, ALLREDUCE):
        key_all(tables, even, {gen})
    tables.tags = {place: TagKey(one.key, one.wid, odd, TERM) for place, one in tables.tags.items()}
    if not isinstance(switch, EmbeddedTarget):
        switch.tables = tables
        return
    known = {(entry.match["gen"], entry.match["port"]) for entry in switch.switch.entries("tags")}
    for row in rows(tables):
        if row.table == "tags":
            write = switch.switch.modify if (row.match["gen"], row.match["port"]) in known else switch.switch.insert
            write("tags", row.match, row.action, **row.params)


def sent(switch: SwitchCore | EmbeddedTarget, port: int, frame: bytes) -> list[tuple[int, bytes]]:
    return switch.switch.inject(port, frame) if isinstance(switch, EmbeddedTarget) else switch.inject(port, frame)


def refused(switch: SwitchCore | EmbeddedTarget) -> int:
    drops = switch.drops() if isinstance(switch, EmbeddedTarget) else switch.drops
    return drops.get(DropReason.BAD_TAG, 0)


def vector_of(worker: int, seq: int, key: bytes) -> bytes:
    header = Header(type=PacketType.PA, gen=REDUCE, wid=worker - 1, lanes=LANES, seq=seq, dtype=1)
    values = [worker * 1000 + seq + lane for lane in range(LANES)]
    return tags.signed_frame(job_frame(header, pack_values(values), port=worker), key)


def test_a_recorded_frame_is_refused_once_its_key_has_gone(switch: SwitchCore | EmbeddedTarget) -> None:
    """A sum leaves under its own number's key; with the next key in place of the oldest, what had that is refused."""
    give(switch, EVEN, ODD)
    recorded = []
    for seq, key in ((TERM - 1, EVEN), (TERM, ODD)):
        for worker in (1, 2):
            recorded.append(vector_of(worker, seq, key))
            assert sent(switch, worker, recorded[-1]) == []
        [(port, frame)] = sent(switch, 3, vector_of(3, seq, key))
        assert port == 4 and list(vector(frame, LANES)) == [6000 + 3 * (seq + lane) for lane in range(LANES)]
        assert tags.opened(key, frame[HEADER_OFFSET:]) is not None
    assert refused(switch) == 0
    assert sent(switch, 1, vector_of(1, TERM + 1, EVEN)) == [] and refused(switch) == 1, "the key of another term"
    give(switch, LATER, ODD)
    for worker in (1, 2):
        assert sent(switch, worker, recorded[worker - 1]) == [] and refused(switch) == 1 + worker
    again = vector_of(1, 2 * TERM - 1, ODD), vector_of(1, 2 * TERM, LATER)
    for frame in again:
        assert sent(switch, 1, frame) == [] and refused(switch) == 3
    assert sent(switch, 1, recorded[2]) == [] and refused(switch) == 3, "its key is in use: it only comes too late"


def test_words_are_of_the_term_that_they_acknowledge(switch: SwitchCore | EmbeddedTarget) -> None:
    """The least that the ranks have may be of another term than the word that makes the switch say it."""
    give(switch, EVEN, ODD)

    def beat(worker: int, ack: int, key: bytes) -> list[tuple[int, bytes]]:
        header = Header(
            type=PacketType.HB, flags=Flag.ACKV, gen=ALLREDUCE, wid=worker, seq=TERM, ack=ack, credit=ack + 2
        )
        return sent(switch, 5 + worker, tags.signed_frame(job_frame(header, port=5 + worker), key))

    beat(1, TERM - 1, EVEN)
    for ack, key in ((TERM + 1, ODD), (TERM - 1, EVEN)):
        out = beat(0, ack, key)
        assert out
        for _, frame in out:
            read = tags.opened(EVEN, frame[HEADER_OFFSET:])
            assert read is not None and read[0].type == PacketType.MH and read[0].ack == TERM - 1
    before = refused(switch)
    assert beat(1, TERM + 1, EVEN) == [] and refused(switch) == before + 1
    out = beat(1, TERM + 1, ODD) or beat(0, TERM + 1, ODD)
    assert out and all(tags.opened(ODD, frame[HEADER_OFFSET:]) is not None for _, frame in out)
