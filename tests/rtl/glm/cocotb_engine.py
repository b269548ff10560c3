"""Runs inside the simulator: the engine alone against the golden model, every stream stalled, and reset in the middle.

What must have happened at the end is directed, not left to chance: each way to stall holds a stream back until its
condition is there.
"""

from __future__ import annotations

import os
import random
from collections import Counter, deque
from dataclasses import dataclass, replace
from typing import Any

import cocotb
import numpy as np
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, ReadOnly
from engine_case import MODEL_ROWS, SCALE_BITS, EngineCase, Shape, any_weights
from numpy.typing import NDArray

from catchment.wire.generated.glm_numbers import ACCUMULATOR_BITS, BANKS, ROW_LANES

SEED = int(os.environ["CATCHMENT_SEED"])
CHUNK_ROWS = 4
READ_CLOCKS = 4
LOSS_CLOCKS = 6
"""Clocks from room for scales to the scales, as in glm_worker."""
PATIENCE = 50_000


@dataclass(frozen=True, slots=True)
class Pace:
    """How often the streams move, and which of them is held back until the engine can do no more."""

    words: float = 1.0
    sums: float = 1.0
    scales: float = 1.0
    hold: str = ""


CALM = Pace()
STALLS = (Pace(words=0.4), Pace(sums=0.2), Pace(scales=0.1), Pace(0.7, 0.5, 0.5), Pace(0.9, 0.9, 0.9))
"""Every stream alone, and all of them."""


def packed(values: list[int], bits: int) -> int:
    """An array's bits, the first element lowest."""
    return sum((value & ((1 << bits) - 1)) << bits * i for i, value in enumerate(values))


def unpacked(value: int, bits: int, count: int) -> list[int]:
    """Signed elements, the lowest first."""
    parts = [value >> bits * i & ((1 << bits) - 1) for i in range(count)]
    return [part - (part >> bits - 1 << bits) for part in parts]


class Bench:
    """The engine and its four neighbours, a clock at a time; all that it does begins and ends at a falling edge."""

    def __init__(self, dut: Any, rng: random.Random) -> None:
        self.dut, self.rng = dut, rng
        self.seen: Counter[str] = Counter()

    async def begin(self) -> None:
        for name in (
            "start", "s_word_valid", "m_sums_ready", "s_scales_valid", "model_write", "s_word", "s_scales", "training",
            "model_row", "model_in",
        ):  # fmt: skip
            getattr(self.dut, name).value = 0
        Clock(self.dut.clk, 4, "ns").start()
        await FallingEdge(self.dut.clk)
        await self.reset(4)

    async def reset(self, clocks: int) -> None:
        """Inputs stay as they are meanwhile; all is quiet when it ends."""
        self.dut.rst.value = 1
        for _ in range(clocks):
            await FallingEdge(self.dut.clk)
        for name in ("rst", "s_word_valid", "m_sums_ready", "s_scales_valid"):
            getattr(self.dut, name).value = 0
        await ReadOnly()
        for name in ("busy", "m_sums_valid", "s_word_ready"):
            assert not getattr(self.dut, name).value, f"{name} after a reset"
        await FallingEdge(self.dut.clk)

    async def put(self, weights: NDArray[np.int64]) -> None:
        """The whole model, with gaps."""
        row = 0
        while row < MODEL_ROWS:
            write = self.rng.random() < 0.8
            self.dut.model_write.value = int(write)
            self.dut.model_row.value = row if write else self.rng.randrange(MODEL_ROWS)
            self.dut.model_in.value = packed([int(w) for w in weights[ROW_LANES * row : ROW_LANES * (row + 1)]], 32)
            row += write
            await FallingEdge(self.dut.clk)
        self.dut.model_write.value = 0

    async def weights(self) -> NDArray[np.int64]:
        """The whole model, a row a clock."""
        found: list[int] = []
        for clock in range(MODEL_ROWS + READ_CLOCKS):
            if clock >= READ_CLOCKS:
                found += unpacked(int(self.dut.model_out.value), 32, ROW_LANES)
            self.dut.model_row.value = clock % MODEL_ROWS
            await FallingEdge(self.dut.clk)
        return np.array(found)

    async def train(self, case: EngineCase, pace: Pace, until: str = "", times: int = 1) -> None:
        """Start, and every word in and every sum out: until the engine is done, or `until` has happened so often."""
        self.dut.training.value = case.shape.packed
        self.dut.start.value = 1
        await FallingEdge(self.dut.clk)
        self.dut.start.value = 0
        run = Run(self, case, pace)
        for _ in range(PATIENCE):
            event = await run.clock()
            times -= until in event
            if until and not times:
                self.seen[f"reset: {until}"] += 1
                return
            if "done" in event:
                assert not until, f"{case.shape} ended before {until}"
                run.check()
                return
        raise AssertionError(f"{case.shape} at {pace}: not done in {PATIENCE} clocks: {run}")


class Run:
    """A training under way."""

    def __init__(self, bench: Bench, case: EngineCase, pace: Pace) -> None:
        self.bench, self.case, self.pace = bench, case, pace
        self.words, self.sums, self.scales = deque(case.words), deque(case.sums), deque(case.scales)
        self.owed = 0  # micro-batches whose sums were taken and whose scales have not begun
        self.line: deque[list[int] | None] = deque([None] * LOSS_CLOCKS)
        self.taken, self.cut, self.still = 0, 0, 0
        self.offered = self.let_go = False
        self.gaps: set[int] = set()  # words taken before each clock without one

    def __str__(self) -> str:
        return f"{len(self.words)} words, {len(self.sums)} sums, {len(self.scales)} scales to go, {self.owed} owed"

    def _free(self, stream: str, rate: float) -> bool:
        """A stream moves in this clock: by chance, or when it was held until nothing did, all at once."""
        if self.pace.hold == stream:
            return self.let_go
        return rate == 1.0 or self.bench.rng.random() < rate

    async def clock(self) -> set[str]:
        """One; what happened in it."""
        dut, rng = self.bench.dut, self.bench.rng
        self.offered = self.offered or (bool(self.words) and self._free("words", self.pace.words))
        # Beyond the last one words are offered all the same: none may be taken.
        dut.s_word_valid.value = int(self.offered or not self.words)
        dut.s_word.value = self.words[0] if self.offered else rng.getrandbits(512)
        dut.m_sums_ready.value = int(self._free("sums", self.pace.sums))
        arriving = self.line.popleft()
        dut.s_scales_valid.value = int(arriving is not None)
        dut.s_scales.value = packed(arriving, SCALE_BITS) if arriving else rng.getrandbits(SCALE_BITS * BANKS)
        await ReadOnly()
        event = self._look()
        self.still = 0 if event & {"word", "sums", "scales"} else self.still + 1
        # 40 clocks: longer than any way through the engine.
        self.let_go = self.still > 40 or (self.let_go and self.still < 30)
        self.bench.seen.update(event)
        await FallingEdge(dut.clk)
        return event

    def _look(self) -> set[str]:
        dut = self.bench.dut
        event = self._look_at_words() | self._look_at_sums() | self._give_scales()
        cut = int(dut.saturated.value)
        self.cut += cut
        event |= ({"cut"} if cut else set()) | ({"write"} if int(dut.write.value) else set())
        if not dut.busy.value and not self.sums:
            event.add("done")
        return event

    def _reads_after_an_update(self) -> bool:
        """The next word is the first of a chunk that the mini-batch before has to write first."""
        shape = self.case.shape
        micro_batch, place = divmod(self.taken, shape.micro_batch_words)
        first = micro_batch % shape.micro_batches % shape.batch == 0
        return bool(self.taken and self.words and first and place % shape.bits == 0)

    def _look_at_words(self) -> set[str]:
        dut, event = self.bench.dut, set[str]()
        reads = self._reads_after_an_update()
        wants = bool(dut.s_word_ready.value)
        if wants and self.offered:
            event |= {"word", "read beside a write"} if reads and int(dut.write.value) else {"word"}
            self.words.popleft()
            self.taken, self.offered = self.taken + 1, False
        else:
            assert not wants or self.words, "a word too many is asked for"
            event |= {"word missing"} if wants else {"word waits"} if self.offered else set()
            self.gaps.add(self.taken)
        if reads and not int(dut.ahead.credit_reg.value):
            event.add("credit awaited")
        if dut.replay_in_valid.value and not dut.replay_in_ready.value:
            event.add("replay full")
        return event

    def _look_at_sums(self) -> set[str]:
        dut, event = self.bench.dut, set[str]()
        if dut.m_sums_valid.value and dut.m_sums_ready.value:
            number = len(self.case.sums) - len(self.sums)
            found = unpacked(int(dut.m_sums.value), ACCUMULATOR_BITS, BANKS)
            assert self.sums and found == self.sums.popleft(), f"sums of micro-batch {number} of {self.case.shape}"
            self.owed += 1
            event.add("sums")
        elif dut.m_sums_valid.value:
            event.add("sums wait")
        if self.words and not int(dut.ahead.room_reg.value):
            event.add("no room for sums")
        return event

    def _give_scales(self) -> set[str]:
        room = bool(self.bench.dut.scales_room.value)
        if self.owed and room and self._free("scales", self.pace.scales):
            self.line.append(self.scales.popleft())
            self.owed -= 1
            return {"scales"}
        self.line.append(None)
        return {"no room for scales"} if self.owed and not room else set()

    def check(self) -> None:
        """The end leaves nothing, cuts were told, and without stalls no clock was lost within a mini-batch."""
        assert not (self.words or self.sums or self.scales or any(self.line)), str(self)
        assert self.cut == self.case.cut, f"{self.cut} weights were cut, not {self.case.cut}: {self.case.shape}"
        shape = self.case.shape
        # A micro-batch of more words may fill the queue between the directions.
        if self.pace == CALM and shape.bits >= CHUNK_ROWS and shape.micro_batch_words <= 30:
            begins = {
                (epoch * shape.micro_batches + first) * shape.micro_batch_words
                for epoch in range(shape.epochs)
                for first in range(0, shape.micro_batches, shape.batch)
            }
            late = self.gaps - begins - {shape.words}
            assert not late, f"words {sorted(late)} of {shape} did not follow at once"
            self.bench.seen["back to back"] += 1


def shapes(rng: random.Random) -> list[tuple[Shape, Pace]]:
    """Each with its precision: three seeds in a row have all of 1 to 16."""
    found = [(Shape(rng.randrange(4, 11), rng.randrange(2, 4), 5, 2, 2), CALM)]
    for i, pace in enumerate(STALLS):
        batch = rng.randrange(1, 4)
        shape = Shape(2 + (5 * SEED + i) % 14, rng.randrange(2, 5), 2 * batch + 1, batch, rng.randrange(1, 3))
        found.append((shape, pace))
    # Held: sums of which eight fit, scales of which sixteen do, and words that fill the queue between the directions.
    found.append((Shape(rng.randrange(1, 4), rng.randrange(1, 3), 21, 20), Pace(hold="sums")))
    found.append((Shape(1, 1, 21, 20), Pace(hold="scales")))
    found.append((Shape(16, rng.randrange(2, 5), 9, 8), Pace(hold="scales")))
    # From where nearly all weights are cut to where few change.
    return [(replace(shape, shift=max(0, shape.bits + rng.randrange(-10, 18))), pace) for shape, pace in found]


MUST = (
    "word missing", "word waits", "replay full", "credit awaited", "sums wait", "no room for sums",
    "no room for scales", "read beside a write", "cut", "back to back",
)  # fmt: skip


@cocotb.test()
async def trainings_one_after_another(dut: Any) -> None:
    """Each training, at every pace, begins with the model before it: sums, cuts and weights are as golden."""
    rng = random.Random(SEED)
    bench = Bench(dut, rng)
    await bench.begin()
    weights = any_weights(rng, MODEL_ROWS * ROW_LANES)
    await bench.put(weights)
    assert (await bench.weights() == weights).all()
    for shape, pace in shapes(rng):
        case = EngineCase(shape, weights, rng)
        await bench.train(case, pace)
        weights = await bench.weights()
        wrong = np.flatnonzero(weights != case.expected)
        assert not len(wrong), f"{shape} at {pace}: {len(wrong)} weights, the first is {wrong[0]}"
    dut._log.info("coverage: %s", dict(bench.seen))
    assert all(bench.seen[what] for what in MUST), [what for what in MUST if not bench.seen[what]]


@cocotb.test()
async def reset_in_the_middle(dut: Any) -> None:
    """Reset comes while words, sums, scales and writes are under way: the next training is exact, as ever."""
    rng = random.Random(SEED)
    bench = Bench(dut, rng)
    await bench.begin()
    for until in ("word", "sums", "scales", "write"):
        weights = any_weights(rng, MODEL_ROWS * ROW_LANES)
        await bench.put(weights)
        shape = Shape(rng.randrange(1, 17), rng.randrange(2, 5), 6, 2, 1, 24)
        most = {"word": shape.words, "write": 3 * CHUNK_ROWS * shape.chunks}.get(until, shape.micro_batches)
        case = EngineCase(shape, weights, rng)
        await bench.train(case, rng.choice([CALM, *STALLS]), until, rng.randint(1, most))
        await bench.reset(rng.choice([1, 2, rng.randrange(3, 40)]))
        weights = any_weights(rng, MODEL_ROWS * ROW_LANES)
        await bench.put(weights)
        case = EngineCase(Shape(rng.randrange(1, 17), rng.randrange(1, 5), 3, 2, 1, 24), weights, rng)
        await bench.train(case, CALM)
        assert (await bench.weights() == case.expected).all(), (until, case.shape)
    assert all(bench.seen[f"reset: {until}"] for until in ("word", "sums", "scales", "write"))
