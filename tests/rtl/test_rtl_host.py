"""The host interface: every push and pull, good or bad, ends in the right bytes, the right record, and no others."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from host_bench import MAP, PAGE, RESET, UNMAP, Pace, mapped, record_at, run, step
from numpy.typing import NDArray

from catchment.rtl.generated.nic_regs import Status
from catchment.sim.golden import formats
from catchment.wire.generated.constants import DataType, Flag

pytestmark = pytest.mark.sampled(4)  # what it builds takes half a minute

BASE = 0x1_2340_0000
VIRTUAL = 0x7F12_3440_0000
RECORDS = 0x1F_0000  # offset of the completion records
FLOATS = (DataType.FP32, DataType.FP16, DataType.BF16)
ITEM = {DataType.BYTES: 1, DataType.INT32: 4, DataType.FP32: 4, DataType.FP16: 2, DataType.BF16: 2}
VALUES = {DataType.FP32: np.float32, DataType.FP16: np.float16, DataType.BF16: np.uint16, DataType.INT32: np.int32}
PACES = (
    Pace(),
    Pace(latency=1),
    Pace(latency=300, read_stall=20, address_stall=20),
    Pace(latency=60, read_stall=100, write_stall=100, address_stall=100, link_stall=100),
    Pace(latency=10, write_stall=220, address_stall=200),
    Pace(latency=10, link_stall=220),
)


@dataclass(frozen=True)
class Message:
    """A push from `source` and the pull to `target` that takes it."""

    source: int
    target: int
    length: int
    dtype: DataType
    exponent: int


def there_and_back(raw: bytes, dtype: DataType, exponent: int, workers: int) -> tuple[bytes, int, int]:
    """What a message is after the network, and how many of its values were cut and not finite."""
    if dtype == DataType.BYTES:
        return raw, 0, 0
    values = np.frombuffer(raw, VALUES[dtype])
    lanes = formats.quantize(values, dtype, exponent, workers)
    with np.errstate(over="ignore"):
        back = formats.dequantize(lanes.lanes, dtype, exponent, workers)
    return back.tobytes(), lanes.saturated, lanes.nonfinite


def noise(rng: random.Random, size: int = PAGE) -> NDArray[np.uint8]:
    return np.frombuffer(rng.randbytes(size), np.uint8).copy()


def messages(rng: random.Random, count: int) -> list[Message]:
    """Buffers that do not overlap, of all types and lengths."""
    place = 0
    out = []

    def room(length: int) -> int:
        nonlocal place
        place += rng.choice([0, 64, 128, 1024, 4096 - place % 4096])
        start = -(-place // 64) * 64
        place = start + length
        return start

    for _ in range(count):
        dtype = rng.choice([*FLOATS, DataType.INT32, DataType.BYTES])
        items = rng.choice([1, 2, 15, 16, 17, 31, 32, 33, 63, 64, 65, 128, 1024, rng.randrange(1, 3000)])
        length = items * ITEM[dtype]
        out.append(Message(room(length), room(length), length, dtype, rng.randrange(-20, 20)))
    assert place < RECORDS
    return out


def plan(rng: random.Random, jobs: list[Message]) -> list[tuple[int, ...]]:
    """Pushes and pulls in their orders, interleaved at random; record 2i is push i's, 2i + 1 pull i's."""
    pushes = [
        step(VIRTUAL + m.source, m.length, VIRTUAL + RECORDS + 64 * i, dtype=m.dtype, exponent=m.exponent, tag=i)
        for i, m in enumerate(jobs)
    ]
    pulls = [
        step(VIRTUAL + m.target, m.length, VIRTUAL + RECORDS + 64 * i + 32, dtype=m.dtype, pull=True, tag=i)
        for i, m in enumerate(jobs)
    ]
    steps = []
    while pushes or pulls:
        # A pull waits in its queue for its message, so neither may run away from the other by a whole queue.
        ahead = len(pulls) - len(pushes)
        from_pushes = bool(pushes) and (not pulls or (ahead < 12 and (ahead < -12 or rng.random() < 0.5)))
        row = list((pushes if from_pushes else pulls).pop(0))
        row[7] = rng.choice([0, 0, 0, 5, 200])
        steps.append(tuple(row))
    return steps


def check_order(writes: NDArray[Any], jobs: list[Message]) -> None:
    """A pull's record is issued after the answers of all its data."""
    for i, message in enumerate(jobs):
        first, end = BASE + message.target, BASE + message.target + message.length
        data = writes[(writes["address"] < end) & (writes["address"] + writes["bytes"] > first)]
        # Push and pull share the beat of their records.
        issued = writes[writes["address"] == BASE + RECORDS + 64 * i]["issued"]
        assert len(issued) == 2 and issued.max() > data["answered"].max()


@pytest.mark.parametrize("pace", PACES)
def test_messages_of_all_types_and_lengths_arrive_whole(pace: Pace, rng: random.Random) -> None:
    memory = noise(rng)
    jobs = messages(rng, 60)
    workers = rng.choice([1, 2, 3, 8, 32])
    expected = memory.copy()
    results = []
    for message in jobs:
        raw = memory[message.source : message.source + message.length].tobytes()
        back, *counts = there_and_back(raw, message.dtype, message.exponent, workers)
        expected[message.target : message.target + message.length] = np.frombuffer(back, np.uint8)
        results.append(counts)
    outcome, writes = run(
        memory, BASE, mapped({VIRTUAL: BASE}) + plan(rng, jobs), seed=rng.getrandbits(32), pace=pace,
        headroom=formats.headroom(workers), queue=rng.choice([8, 64, 4096]),
    )  # fmt: skip
    assert outcome.completions == 2 * len(jobs)
    for i, (message, (saturated, nonfinite)) in enumerate(zip(jobs, results, strict=True)):
        push, pull = record_at(memory, RECORDS + 64 * i), record_at(memory, RECORDS + 64 * i + 32)
        for record in (push, pull):
            assert (record["status"], record["tag"], record["bytes"]) == (Status.OK, i, message.length)
            assert record["flags"] == (Flag.SAT if saturated else 0)
            assert record["exponent"] == message.exponent
        assert (push["saturated"], push["nonfinite"]) == (saturated, nonfinite)
    expected[RECORDS : RECORDS + 64 * len(jobs)] = memory[RECORDS : RECORDS + 64 * len(jobs)]
    assert np.array_equal(memory, expected), f"wrong from byte {np.flatnonzero(memory != expected)[0]:#x}"
    lanes = [-(-m.length // ITEM[m.dtype]) * (4 if m.dtype != DataType.BYTES else 1) for m in jobs]
    assert outcome.vectors == sum(-(-n // 256) for n in lanes)
    check_order(writes, jobs)


def test_a_large_message_leaves_a_vector_every_four_clocks_and_crosses_a_page(rng: random.Random) -> None:
    memory = noise(rng, 2 * PAGE)
    memory[:PAGE].view(np.float32)[:] = np.random.default_rng(rng.getrandbits(32)).normal(size=PAGE // 4)
    source, target, length = 0x4_0000, PAGE - 0x8_0000 - 64, 0x10_0000 - 4
    record = 0x10_0000
    # The second virtual page lies before the first in memory.
    pages = {VIRTUAL: BASE + PAGE, VIRTUAL + PAGE: BASE}
    swapped = np.concatenate([memory[PAGE:], memory[:PAGE]])
    raw = swapped[source : source + length].tobytes()
    outcome, _ = run(
        memory, BASE,
        [
            *mapped(pages),
            step(VIRTUAL + source, length, VIRTUAL + record, exponent=3),
            step(VIRTUAL + target, length, VIRTUAL + record + 32, pull=True),
        ],
        seed=1,
        pace=Pace(latency=100),
    )  # fmt: skip
    swapped = np.concatenate([memory[PAGE:], memory[:PAGE]])
    back, saturated, _ = there_and_back(raw, DataType.FP32, 3, 1)
    assert swapped[target : target + length].tobytes() == back
    assert record_at(swapped, record)["saturated"] == saturated
    assert record_at(swapped, record + 32)["status"] == Status.OK
    assert outcome.last_vector - outcome.first_vector < outcome.push_beats + 8, "bubbles"


GOOD = {"length": 512, "completion": VIRTUAL + RECORDS, "vaddr": VIRTUAL}
BAD = {
    "zero length": (Status.BAD_LENGTH, {"length": 0}),
    "part of an element": (Status.BAD_LENGTH, {"length": 513}),
    "part of a half": (Status.BAD_LENGTH, {"length": 511, "dtype": DataType.FP16}),
    "off a beat": (Status.BAD_ALIGNMENT, {"vaddr": VIRTUAL + 4}),
    "no type": (Status.BAD_TYPE, {"dtype": 5}),
    "no page": (Status.UNMAPPED, {"vaddr": VIRTUAL - PAGE}),
    "another page's entry": (Status.UNMAPPED, {"vaddr": VIRTUAL + PAGE * 1024}),
    "no second page": (Status.UNMAPPED, {"vaddr": VIRTUAL + PAGE - 64, "length": 68}),
    "beyond virtual addresses": (Status.UNMAPPED, {"vaddr": VIRTUAL | 1 << 48}),
    "around the end": (Status.UNMAPPED, {"vaddr": (1 << 64) - 64, "length": 128}),
    "no page for the completion": (None, {"completion": VIRTUAL - 64}),
    "a completion across its place": (None, {"completion": VIRTUAL + RECORDS + 16}),
    "a completion beyond virtual addresses": (None, {"completion": VIRTUAL + RECORDS | 1 << 60}),
}


@pytest.mark.parametrize("pull", [False, True])
@pytest.mark.parametrize("name", list(BAD))
def test_a_bad_request_moves_nothing_and_the_next_one_is_served(name: str, pull: bool, rng: random.Random) -> None:
    status, change = BAD[name]
    memory = noise(rng)
    before = memory.copy()
    bad = step(**{**GOOD, **change}, pull=pull, tag=7)  # type: ignore[arg-type]
    after = [
        step(VIRTUAL + 0x1000, 300, VIRTUAL + RECORDS + 64, dtype=DataType.BYTES),
        step(VIRTUAL + 0x2000, 300, VIRTUAL + RECORDS + 96, dtype=DataType.BYTES, pull=True),
    ]
    outcome, _ = run(memory, BASE, [*mapped({VIRTUAL: BASE}), bad, *after], seed=1)
    if status is None:
        assert outcome.unanswerable == 1 and outcome.completions == 2 and outcome.missed == 1
    else:
        record = record_at(memory, RECORDS)
        assert (record["status"], record["bytes"], record["tag"]) == (status, 0, 7)
        assert outcome.completions == 3 and outcome.missed == (status == Status.UNMAPPED)
    assert np.array_equal(memory[0x2000 : 0x2000 + 300], before[0x1000 : 0x1000 + 300])
    assert np.array_equal(memory[:0x2000], before[:0x2000])


@pytest.mark.parametrize("pull", [False, True])
@pytest.mark.parametrize("bad", [VIRTUAL + RECORDS + 8, VIRTUAL + RECORDS | 1 << 50, VIRTUAL + PAGE + 8])
def test_requests_behind_one_without_an_answer_get_their_own_pages(bad: int, pull: bool, rng: random.Random) -> None:
    memory = np.zeros(2 * PAGE, np.uint8)
    memory[:0x1000] = noise(rng, 0x1000)
    records = VIRTUAL + 2 * PAGE + RECORDS
    requests = [
        step(VIRTUAL + 64 * i, 64, at, dtype=DataType.BYTES, pull=pull, tag=i, force=True)
        for i, at in enumerate((records + 0x200, bad, records, records + 32))
    ]
    others = [
        step(VIRTUAL + 0x800 + 64 * i, 64, records + 0x100 + 32 * i, dtype=DataType.BYTES, pull=not pull, wait=400)
        for i in range(3)
    ]
    steps = [*mapped({VIRTUAL: BASE, VIRTUAL + 2 * PAGE: BASE + PAGE}), *requests, *others]
    outcome, _ = run(memory, BASE, steps, seed=1)
    assert outcome.unanswerable == 1
    for i, tag in enumerate((2, 3)):
        record = record_at(memory, PAGE + RECORDS + 32 * i)
        assert (record["status"], record["tag"]) == (Status.OK, tag)
    assert not memory[RECORDS : RECORDS + 0x100].any()


def test_a_full_queue_refuses_and_counts(rng: random.Random) -> None:
    memory = noise(rng)
    memory[RECORDS : RECORDS + 32 * 40] = 0xFF  # noise may look like a record that says OK
    pulls = [
        step(VIRTUAL + 64 * i, 64, VIRTUAL + RECORDS + 32 * i, dtype=DataType.BYTES, pull=True, tag=i, force=True)
        for i in range(40)
    ]
    pushes = [
        step(VIRTUAL + 0x1_0000, 64, VIRTUAL + RECORDS + 0x1000, dtype=DataType.BYTES, wait=400) for _ in range(40)
    ]
    outcome, _ = run(memory, BASE, [*mapped({VIRTUAL: BASE}), *pulls, *pushes], seed=1)
    served = [i for i in range(40) if record_at(memory, RECORDS + 32 * i)["status"] == Status.OK]
    assert 16 <= len(served) < 40
    assert outcome.refused == 40 - len(served)
    assert served == list(range(len(served)))


@pytest.mark.parametrize("pull", [False, True])
def test_memory_that_answers_with_an_error_fails_that_request_alone(pull: bool, rng: random.Random) -> None:
    memory = noise(rng)
    broken = 0x8000
    jobs = [Message(0x1_0000 * i, 0x1_0000 * i + 0x8000, 8192, DataType.INT32, 0) for i in range(3)]
    errors = (BASE + 0x1_0000 + broken * pull + 4096, BASE + 0x1_0000 + broken * pull + 4096 + 64)
    before = memory.copy()
    run(memory, BASE, mapped({VIRTUAL: BASE}) + plan(rng, jobs), seed=1, errors=errors)
    for i, message in enumerate(jobs):
        push, pulled = record_at(memory, RECORDS + 64 * i), record_at(memory, RECORDS + 64 * i + 32)
        assert push["status"] == (Status.BUS_ERROR if i == 1 and not pull else Status.OK)
        assert pulled["status"] == (Status.BUS_ERROR if i == 1 and pull else Status.OK)
        if i != 1:
            source = before[message.source : message.source + 8192]
            assert np.array_equal(memory[message.target : message.target + 8192], source)


@pytest.mark.parametrize("pull", [False, True])
def test_a_page_that_leaves_while_a_request_runs(pull: bool, rng: random.Random) -> None:
    memory = noise(rng, 2 * PAGE)
    away = VIRTUAL + PAGE
    length = 0x2_0000
    start = PAGE - 0x1_0000
    here, whole = VIRTUAL + start, VIRTUAL - PAGE + start
    source, target = (whole, here) if pull else (here, whole)
    records = RECORDS - 0x10_0000
    steps = [
        *mapped({VIRTUAL - PAGE: BASE, VIRTUAL: BASE, away: BASE + PAGE}),
        step(source, length, VIRTUAL + records, dtype=DataType.BYTES),
        step(target, length, VIRTUAL + records + 32, dtype=DataType.BYTES, pull=True),
        step(away, remap=UNMAP, wait=300),
        step(VIRTUAL, 64, VIRTUAL + RECORDS, dtype=DataType.BYTES, wait=9000),
    ]
    outcome, _ = run(memory, BASE, steps, seed=1, pace=Pace(latency=40, link_stall=200), queue=64)
    first, second = record_at(memory, records), record_at(memory, records + 32)
    assert {int(first["status"]), int(second["status"])} == {Status.OK, Status.UNMAPPED_LATER}
    assert (second if pull else first)["status"] == Status.UNMAPPED_LATER
    assert record_at(memory, RECORDS)["status"] == Status.OK
    assert outcome.completions == 3


MISFITS = {
    "longer by a vector": (512, DataType.FP32, 256, DataType.FP32, Status.LENGTH_MISMATCH),
    "longer by a byte": (257, DataType.BYTES, 256, DataType.BYTES, Status.LENGTH_MISMATCH),
    "longer within its last vector": (200, DataType.BYTES, 100, DataType.BYTES, Status.LENGTH_MISMATCH),
    "shorter by a vector": (256, DataType.FP32, 1024, DataType.FP32, Status.LENGTH_MISMATCH),
    "shorter by a byte": (900, DataType.BYTES, 901, DataType.BYTES, Status.LENGTH_MISMATCH),
    "shorter halves": (128 * 3, DataType.FP16, 128 * 5 + 2, DataType.FP16, Status.LENGTH_MISMATCH),
    "shorter by an odd number of beats": (128, DataType.FP16, 2048, DataType.BF16, Status.LENGTH_MISMATCH),
    "integers as floats": (512, DataType.INT32, 512, DataType.FP32, Status.TYPE_MISMATCH),
}


@pytest.mark.parametrize("name", list(MISFITS))
def test_a_message_that_does_not_fit_its_pull_fails_it_and_is_dropped(name: str, rng: random.Random) -> None:
    pushed, dtype, pulled, target_type, status = MISFITS[name]
    memory = noise(rng)
    before = memory.copy()
    steps = [
        step(VIRTUAL, pushed, VIRTUAL + RECORDS, dtype=dtype),
        step(VIRTUAL + 0x4000, 400, VIRTUAL + RECORDS + 32, dtype=DataType.BYTES),
        step(VIRTUAL + 0x8000, pulled, VIRTUAL + RECORDS + 64, dtype=target_type, pull=True),
        step(VIRTUAL + 0xC000, 400, VIRTUAL + RECORDS + 96, dtype=DataType.BYTES, pull=True),
    ]
    outcome, _ = run(memory, BASE, [*mapped({VIRTUAL: BASE}), *steps], seed=1)
    records = [record_at(memory, RECORDS + 32 * i) for i in range(4)]
    assert [int(r["status"]) for r in records] == [Status.OK, Status.OK, status, Status.OK]
    assert records[2]["bytes"] < pulled and outcome.completions == 4
    assert np.array_equal(memory[0xC000 : 0xC000 + 400], before[0x4000 : 0x4000 + 400])
    assert np.array_equal(memory[0x8000 + pulled : 0xC000], before[0x8000 + pulled : 0xC000])


def test_the_rest_of_a_pull_that_does_not_fit_is_steady_while_memory_waits(rng: random.Random) -> None:
    """The next message's beats come behind it; the module's own checks say whether a beat that waits has changed."""
    memory = noise(rng)
    steps = []
    for i in range(4):
        pulled = 256 if i % 2 else 64 * 300
        steps += [
            step(VIRTUAL + 0x1000 * i, 256, VIRTUAL + RECORDS + 64 * i, dtype=DataType.FP32),
            step(VIRTUAL + 0x8000 * (i + 1), pulled, VIRTUAL + RECORDS + 64 * i + 32, dtype=DataType.FP32, pull=True),
        ]
    run(memory, BASE, [*mapped({VIRTUAL: BASE}), *steps], seed=1, pace=Pace(write_stall=230, address_stall=220))
    statuses = [int(record_at(memory, RECORDS + 64 * i + 32)["status"]) for i in range(4)]
    assert statuses == [Status.LENGTH_MISMATCH, Status.OK] * 2


@pytest.mark.parametrize("pace", PACES[1:4])
def test_a_soft_reset_at_any_time_leaves_the_bus_clean_and_the_nic_usable(pace: Pace, rng: random.Random) -> None:
    for _ in range(4):
        memory = noise(rng)
        steps = mapped({VIRTUAL: BASE})
        for _ in range(6):
            jobs = messages(rng, 12)
            steps += plan(rng, jobs)
            steps += [step(remap=RESET, wait=rng.randrange(0, 700)), *mapped({VIRTUAL: BASE})]
        last = [
            step(VIRTUAL, 300, VIRTUAL + RECORDS + 0x8000, dtype=DataType.BYTES),
            step(VIRTUAL + 0x1E_0000, 300, VIRTUAL + RECORDS + 0x8020, dtype=DataType.BYTES, pull=True),
        ]
        outcome, _ = run(memory, BASE, [*steps, *last], seed=rng.getrandbits(32), pace=pace)
        assert outcome.not_idle_at_reset == 0
        assert [record_at(memory, RECORDS + 0x8000 + 32 * i)["status"] for i in range(2)] == [Status.OK] * 2
        assert np.array_equal(memory[0x1E_0000 : 0x1E_0000 + 300], memory[:300])


@pytest.mark.parametrize(("dtype", "pairs"), [(DataType.FP16, 0), (DataType.FP32, 2)], ids=["halves", "packed"])
def test_nothing_of_a_message_that_a_reset_cuts_is_in_the_next(dtype: DataType, pairs: int) -> None:
    """Resets at many clocks of messages of which two beats become one at one end, and one beat two at the other."""
    memory = np.zeros(PAGE, np.uint8)
    long, short, rounds, target = 8192, 200, 60, 0x10_0000
    memory[:long].view(VALUES[dtype])[:] = np.arange(long // ITEM[dtype]) % 64 / 64  # exact in lanes of any kind
    steps = []
    for i in range(rounds):
        steps += [
            *mapped({VIRTUAL: BASE}),
            step(VIRTUAL, long, VIRTUAL + RECORDS, dtype=dtype),
            step(VIRTUAL + target // 2, long, VIRTUAL + RECORDS + 32, dtype=dtype, pull=True),
            step(remap=RESET, wait=100 + 5 * i),
            *mapped({VIRTUAL: BASE}),
            step(VIRTUAL, short, VIRTUAL + RECORDS + 64, dtype=dtype),
            step(VIRTUAL + target + 256 * i, short, VIRTUAL + RECORDS + 96, dtype=dtype, pull=True),
            step(remap=RESET, wait=600),
        ]
    outcome, _ = run(memory, BASE, steps, seed=1, pace=Pace(link_stall=128), pairs=pairs)
    assert outcome.not_idle_at_reset == 0
    wrong = [i for i in range(rounds) if not np.array_equal(memory[target + 256 * i :][:short], memory[:short])]
    assert not wrong, f"{len(wrong)} of {rounds} messages"


def test_a_page_is_not_found_again_after_it_has_left(rng: random.Random) -> None:
    """The second request is for the same page as the first one, and nothing else was looked up in between."""
    memory = noise(rng, 2 * PAGE)
    other = VIRTUAL + PAGE
    steps = [
        *mapped({VIRTUAL: BASE, other: BASE + PAGE}),
        step(VIRTUAL, 64, other + RECORDS, dtype=DataType.BYTES),
        step(VIRTUAL, remap=UNMAP, wait=1000),
        step(VIRTUAL, 64, other + RECORDS + 32, dtype=DataType.BYTES, wait=2000),
    ]
    outcome, _ = run(memory, BASE, steps, seed=1)
    assert [int(record_at(memory, PAGE + RECORDS + 32 * i)["status"]) for i in range(2)] == [
        Status.OK, Status.UNMAPPED,
    ]  # fmt: skip
    assert outcome.missed == 1 and outcome.vectors == 1


def test_entries_that_share_an_index_replace_each_other(rng: random.Random) -> None:
    memory = noise(rng)
    other = VIRTUAL + 1024 * PAGE
    steps = [
        *mapped({VIRTUAL: BASE, other: BASE}),
        step(other, 64, other + RECORDS, dtype=DataType.BYTES),
        step(VIRTUAL, 64, other + RECORDS + 32, dtype=DataType.BYTES),
        step(VIRTUAL, completion=BASE, remap=MAP, wait=300),
        step(VIRTUAL, 64, VIRTUAL + RECORDS + 64, dtype=DataType.BYTES),
    ]
    run(memory, BASE, steps, seed=1)
    assert [int(record_at(memory, RECORDS + 32 * i)["status"]) for i in range(3)] == [
        Status.OK, Status.UNMAPPED, Status.OK,
    ]  # fmt: skip
