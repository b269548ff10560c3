"""Block scaling in the host interface: each vector leaves with the exponent that comes back, and nothing is cut."""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np
import pytest
from host_bench import PAGE, Pace, mapped, record_at, run, step
from numpy.typing import NDArray

from catchment.rtl.generated.nic_regs import Status
from catchment.sim.golden import block_messages, formats
from catchment.sim.golden.lane_formats import LaneFormat
from catchment.wire.generated.constants import DataType, Flag

BASE, VIRTUAL = 0x1_2340_0000, 0x7F12_3440_0000
TARGET, RECORDS = 0x10_0000, 0x1F_0000
LANES = 64
FLOATS = (DataType.FP32, DataType.FP16, DataType.BF16)
WORDS = {DataType.FP32: np.uint32, DataType.FP16: np.uint16, DataType.BF16: np.uint16, DataType.INT32: np.uint32}
VALUES = {DataType.FP32: np.float32, DataType.FP16: np.float16, DataType.BF16: np.uint16, DataType.INT32: np.int32}


@dataclass(frozen=True)
class Message:
    """Elements as words of their type; block-scaled, or with a given exponent."""

    words: NDArray[np.unsignedinteger]
    dtype: DataType
    block: bool
    exponent: int

    @property
    def values(self) -> NDArray[np.generic]:
        return self.words.view(VALUES[self.dtype])

    def vectors(self, form: LaneFormat) -> int:
        return -(-self.words.size // (2 * LANES if form.packed else LANES))


KINDS = ("random", "near", "zeros", "denormals")


def elements(rng: random.Random, dtype: DataType, count: int, kind: str) -> NDArray[np.unsignedinteger]:
    """Words of a kind: all bits random, one exponent a vector, mostly zeros, denormals."""
    numbers = np.random.default_rng(rng.getrandbits(64))
    bits = np.iinfo(WORDS[dtype]).bits
    words = numbers.integers(0, 1 << bits, count, WORDS[dtype])
    fraction = {DataType.FP32: 23, DataType.FP16: 10, DataType.BF16: 7}.get(dtype, 0)
    if kind == "denormals":
        words &= WORDS[dtype]((1 << fraction) - 1)
    elif kind == "near" and fraction:
        places = numbers.integers(0, (1 << bits - 1 - fraction) - 1, -(-count // LANES))
        words = words & WORDS[dtype](~(((1 << bits - 1 - fraction) - 1) << fraction) & (1 << bits) - 1)
        words |= (np.repeat(places, LANES)[:count] << fraction).astype(WORDS[dtype])
    elif kind == "zeros":
        words[numbers.random(count) < 0.99] = 0
    return words


def messages(rng: random.Random, count: int, *, packed: bool) -> list[Message]:
    """Every float type with every kind of words comes first, in any order; then any that the lanes take."""
    pairs = [(dtype, kind) for dtype in FLOATS for kind in KINDS]
    rng.shuffle(pairs)
    while len(pairs) < count:
        pairs.append((rng.choice(FLOATS if packed else [*FLOATS, DataType.INT32]), rng.choice(KINDS)))
    out = []
    for i, (dtype, kind) in enumerate(pairs[:count]):
        # A vector of random words has all exponents.
        size = 1024 if kind == "random" else rng.choice([1, 63, 64, 65, 127, 128, 129, 640, rng.randrange(1, 3000)])
        block = dtype != DataType.INT32 and (i == 0 or rng.random() < 0.7)
        out.append(Message(elements(rng, dtype, size, kind), dtype, block, rng.randrange(-20, 20)))
    return out


def expected(message: Message, form: LaneFormat) -> tuple[bytes, int, int, int, int]:
    """Bytes, saturated, nonfinite, the record's exponent of the pull, and of what is needed."""
    if message.dtype == DataType.INT32:
        return message.words.tobytes(), 0, 0, message.exponent, -128
    vector = 2 * LANES if form.packed else LANES
    needs = block_messages.needs(message.values, message.dtype, vector)
    used = needs if message.block else [message.exponent] * len(needs)
    out, saturated, nonfinite = b"", 0, 0
    for i, exponent in enumerate(used):
        part = message.values[i * vector : (i + 1) * vector]
        quantized = form.quantize(part, message.dtype, exponent)
        out += form.dequantize(quantized.lanes, message.dtype, exponent, len(part)).tobytes()
        saturated, nonfinite = saturated + quantized.saturated, nonfinite + quantized.nonfinite
    return out, saturated, nonfinite, max(used), max(needs)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("packed", [False, True], ids=["whole", "packed"])
@pytest.mark.parametrize("slots", [1, 4, 32, 511])
@pytest.mark.parametrize("pace", [Pace(), Pace(latency=60, read_stall=100, write_stall=100, link_stall=100)])
def test_messages_of_both_kinds_arrive_whole(slots: int, pace: Pace, packed: bool, rng: random.Random) -> None:
    memory = np.zeros(PAGE, np.uint8)
    sent, steps, at = messages(rng, 24, packed=packed), [], 0
    workers = rng.choice([1, 2, 3, 64])
    form = LaneFormat(workers, packed)
    places = []
    for i, message in enumerate(sent):
        raw = message.words.tobytes()
        memory[at : at + len(raw)] = np.frombuffer(raw, np.uint8)
        completion = VIRTUAL + RECORDS + 64 * i
        common = {"dtype": message.dtype, "tag": i, "block": message.block}
        steps.append(step(VIRTUAL + at, len(raw), completion, exponent=message.exponent, **common))
        steps.append(step(VIRTUAL + TARGET + at, len(raw), completion + 32, pull=True, **common))
        places.append((at, len(raw)))
        at += -(-len(raw) // 64) * 64
    outcome, _ = run(
        memory, BASE, mapped({VIRTUAL: BASE}) + steps, seed=rng.getrandbits(32), pace=pace,
        headroom=formats.headroom(workers), slots=slots, pairs=packed * (2 if workers != 3 else 1),
    )  # fmt: skip
    assert outcome.completions == 2 * len(sent)
    for i, (message, (at, length)) in enumerate(zip(sent, places, strict=True)):
        raw, saturated, nonfinite, exponent, needed = expected(message, form)
        push, pull = record_at(memory, RECORDS + 64 * i), record_at(memory, RECORDS + 64 * i + 32)
        assert (push["status"], pull["status"]) == (Status.OK, Status.OK)
        assert (push["saturated"], push["nonfinite"], push["needed"]) == (saturated, nonfinite, needed), i
        assert pull["exponent"] == exponent
        assert pull["flags"] == (Flag.SAT if saturated else 0)
        assert memory[TARGET + at : TARGET + at + length].tobytes() == raw, i
        if message.block and not nonfinite and np.abs(formats.exact(message.values, message.dtype)[0]).max() < 2.0**127:
            assert saturated == 0
    vectors = [message.vectors(form) for message in sent]
    told = (min(count, slots) for count, message in zip(vectors, sent, strict=True) if message.block)
    assert outcome.vectors == sum(vectors) + sum(told)


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_vector_of_one_least_denormal_is_not_zero(dtype: DataType) -> None:
    """Cases of an even place and an odd one, and of either sign."""
    memory = np.zeros(PAGE, np.uint8)
    sign = 1 << np.iinfo(WORDS[dtype]).bits - 1
    steps = []
    for i, (place, word) in enumerate(((0, 1), (1, 1), (30, sign | 1), (31, sign | 1))):
        words = memory[0x1000 * i :].view(WORDS[dtype])
        words[place] = word
        (needed,) = block_messages.needs(words[:LANES].view(VALUES[dtype]), dtype, LANES)
        assert needed > -128
        steps.append(step(VIRTUAL + 0x1000 * i, words[:LANES].nbytes, VIRTUAL + RECORDS + 32 * i, dtype=dtype))
    run(memory, BASE, mapped({VIRTUAL: BASE}) + steps, seed=1)
    records = [record_at(memory, RECORDS + 32 * i) for i in range(4)]
    assert [(int(record["status"]), record["needed"]) for record in records] == [(Status.OK, needed)] * 4


def test_what_cannot_be_block_scaled_is_refused(rng: random.Random) -> None:
    cases = ((0, DataType.FP32, 0), (1024, DataType.FP32, 0), (8, DataType.INT32, 0), (8, DataType.BYTES, 0))
    for slots, dtype, pairs in (*cases, (512, DataType.FP32, 1), (1024, DataType.BF16, 1)):
        memory = np.frombuffer(rng.randbytes(PAGE), np.uint8).copy()
        before = memory.copy()
        steps = [
            step(VIRTUAL, 512, VIRTUAL + RECORDS, dtype=dtype, block=True),
            step(VIRTUAL + TARGET, 512, VIRTUAL + RECORDS + 32, dtype=dtype, pull=True, block=True),
        ]
        outcome, _ = run(memory, BASE, mapped({VIRTUAL: BASE}) + steps, seed=1, slots=slots, pairs=pairs)
        assert [int(record_at(memory, RECORDS + 32 * i)["status"]) for i in range(2)] == [Status.BAD_SCALING] * 2
        assert outcome.vectors == 0
        assert np.array_equal(memory[:RECORDS], before[:RECORDS])


def test_a_pull_of_what_nobody_announced_fails_and_the_next_is_served(rng: random.Random) -> None:
    memory = np.frombuffer(rng.randbytes(PAGE), np.uint8).copy()
    steps = [
        step(VIRTUAL, 1000, VIRTUAL + RECORDS),
        step(VIRTUAL + TARGET, 1000, VIRTUAL + RECORDS + 32, pull=True, block=True),
        step(VIRTUAL + 0x4000, 1000, VIRTUAL + RECORDS + 64, dtype=DataType.INT32),
        step(VIRTUAL + TARGET + 0x4000, 1000, VIRTUAL + RECORDS + 96, dtype=DataType.INT32, pull=True),
    ]
    run(memory, BASE, mapped({VIRTUAL: BASE}) + steps, seed=1, slots=8)
    statuses = [int(record_at(memory, RECORDS + 32 * i)["status"]) for i in range(4)]
    assert statuses == [Status.OK, Status.EXPONENT_MISMATCH, Status.OK, Status.OK]
    assert np.array_equal(memory[TARGET + 0x4000 :][:1000], memory[0x4000:][:1000])


def test_a_large_block_scaled_message_keeps_up_with_the_line(rng: random.Random) -> None:
    """A vector of 256 bytes takes 6.9 clocks of a link of 100 Gb/s; here it takes five."""
    memory = np.zeros(PAGE, np.uint8)
    count = 0x10_0000 // 4
    memory[: 4 * count].view(np.float32)[:] = np.random.default_rng(rng.getrandbits(32)).normal(size=count)
    steps = [
        step(VIRTUAL, 4 * count - 0x2_0000, VIRTUAL + RECORDS, block=True),
        step(VIRTUAL + TARGET, 4 * count - 0x2_0000, VIRTUAL + RECORDS + 32, pull=True, block=True),
    ]
    outcome, _ = run(memory, BASE, mapped({VIRTUAL: BASE}) + steps, seed=1, slots=512, pace=Pace(latency=100))
    assert record_at(memory, RECORDS + 32)["status"] == Status.OK
    assert outcome.last_vector - outcome.first_vector < 5 * outcome.vectors + 600


def test_packed_lanes_take_sixteen_elements_a_clock(rng: random.Random) -> None:
    """A vector of 256 bytes is 128 elements and so eight clocks, of which a link of 100 Gb/s leaves 6.9."""
    memory = np.zeros(PAGE, np.uint8)
    size = 0xE_0000
    memory[:size].view(np.float16)[:] = np.random.default_rng(rng.getrandbits(32)).normal(size=size // 2)
    steps = [
        step(VIRTUAL, size, VIRTUAL + RECORDS, dtype=DataType.FP16),
        step(VIRTUAL + TARGET, size, VIRTUAL + RECORDS + 32, dtype=DataType.FP16, pull=True),
    ]
    outcome, _ = run(memory, BASE, mapped({VIRTUAL: BASE}) + steps, seed=1, pairs=2, pace=Pace(latency=100))
    assert record_at(memory, RECORDS + 32)["status"] == Status.OK
    assert outcome.vectors == size // 256
    assert outcome.last_vector - outcome.first_vector < 8 * outcome.vectors + 600
