"""Runs inside the simulator: the client of the slots, between a worker that stalls and a network that forges frames."""

from __future__ import annotations

import os
import random
from collections import Counter, deque
from itertools import pairwise
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, ReadOnly, RisingEdge

from catchment.rtl.harness.glm_worker import ROUNDS as LAYOUT
from catchment.rtl.harness.glm_worker import Rounds
from catchment.sim.cosim.glm.network import SlotJob, model_switch
from catchment.sim.world import Faults, Line, World
from catchment.sim.world.star import CLOCK_PICOS
from catchment.wire.generated.constants import HEADER_OFFSET, Flag, Header, PacketType

SEED = int(os.environ["CATCHMENT_SEED"])
BEAT = 64
ROUNDS = 150
PATIENCE = 100_000
LANES = 8
SLOTS = 16
"""The slots of the device that is built; more than acknowledgements have room for."""
BASE = (1 << 32) - 20
"""The first round, so that numbers pass the end of 32 bits."""
# Bytes of a frame that are compared or summed: any change is seen.
CHECKED = (*range(6), *range(12, 40))
WAYS = ("byte", "short", "long", "damaged", "noise")

Beat = tuple[int, int, int, int]  # data, keep, last, user


def beats_of(frame: bytes, damaged: bool = False) -> list[Beat]:
    parts = [frame[i : i + BEAT] for i in range(0, len(frame), BEAT)]
    last = len(parts) - 1
    return [
        (int.from_bytes(part, "little"), (1 << len(part)) - 1, int(i == last), int(damaged and i == last))
        for i, part in enumerate(parts)
    ]


def forged(frame: bytes, way: str, rng: random.Random) -> list[Beat]:
    """A frame that must not be heard, made from one that would be."""
    match way:
        case "byte":
            place = rng.choice(CHECKED)
            return beats_of(frame[:place] + bytes([frame[place] ^ rng.randrange(1, 256)]) + frame[place + 1 :])
        case "short":
            return beats_of(frame[: rng.randrange(1, len(frame))])
        case "long":
            return beats_of(frame + rng.randbytes(rng.choice([1, 32, 64, 200])))
        case "damaged":
            return beats_of(frame, damaged=True)
        case _:
            return beats_of(rng.randbytes(rng.randrange(1, 200)))


class Network:
    """The switch, and a line from it that loses and doubles frames; every third answer has a forged one before it.

    Forgeries take turns, so that each way is there for every seed.
    """

    def __init__(self, job: SlotJob, rng: random.Random) -> None:
        self._inject, self._rng = model_switch(job), rng
        self._turn = 0
        self._world = World(rng.getrandbits(64))
        self._line = Line(self._world, self._arrive, latency=10 * CLOCK_PICOS, faults=Faults(loss=0.15, duplicate=0.2))
        self._answers: deque[Beat] = deque()
        self.seen = Counter[str]()

    @property
    def empty(self) -> bool:
        """Nothing is on its way to the device."""
        return not self._answers and not self._world.pending

    def take(self, frame: bytes) -> None:
        """A frame of the device."""
        self.seen["sent"] += 1
        for _, answer in self._inject(0, frame):
            if self.seen["sent"] % 3 == 0:
                way = WAYS[self._turn % len(WAYS)]
                self._turn += 1
                self._answers += forged(answer, way, self._rng)
                self.seen[way] += 1
            self._line.send(answer)

    def _arrive(self, answer: bytes) -> None:
        self._answers += beats_of(answer)

    def next_beat(self) -> Beat | None:
        """What the device is offered in the next clock, or None in a pause."""
        self._world.run(self._world.now + CLOCK_PICOS)
        return self._answers.popleft() if self._answers and self._rng.random() < 0.9 else None

    def counts(self) -> Counter[str]:
        """Frames by what became of them; answers that arrived are `good`."""
        line = self._line.counts
        good = line["frames"] - line["lost"]
        return self.seen + Counter(lost=line["lost"], doubled=line["duplicated"], good=good)


class Sent:
    """What a device's frames say: their flags, and the oldest round whose sum it lacks."""

    def __init__(self, first: int, slots: int) -> None:
        self._said, self._slots = first, slots
        self._acknowledged, self._begun = set[int](), set[int]()

    def check(self, frame: bytes, cut: list[bool]) -> None:
        """Every frame says it, never less than before; an acknowledgement counts every round that was acknowledged.

        `cut` has, of the rounds that have begun, whether a lane was cut: each frame with lanes says so, no other.
        """
        header = Header.unpack(frame, HEADER_OFFSET)
        assert header.flags & Flag.ACKV, header
        assert (header.ack - self._said) % (1 << 32) < SLOTS, f"round {self._said} was here, then {header}"
        self._said = header.ack
        saturated = bool(header.flags & Flag.SAT)
        if header.type == PacketType.ACK:
            self._acknowledged.add(header.seq)
            assert header.ack not in self._acknowledged and not saturated, header
        else:
            assert (header.seq - header.ack) % (1 << 32) < self._slots, header
            assert bool(header.flags & Flag.RETX) == (header.seq in self._begun), header
            self._begun.add(header.seq)
            assert saturated == cut[(header.seq - BASE) % (1 << 32)], header


def drive_network(dut: Any, beat: Beat | None) -> None:
    dut.s_axis_tvalid.value = int(beat is not None)
    if beat is not None:
        dut.s_axis_tdata.value, dut.s_axis_tkeep.value, dut.s_axis_tlast.value, dut.s_axis_tuser.value = beat


async def begin(dut: Any, rounds: Rounds) -> None:
    for name in ("s_valid", "s_lanes", "s_saturated", "m_ready", "m_axis_tready", "s_axis_tvalid", "s_axis_tuser"):
        getattr(dut, name).value = 0
    dut.rounds.value = LAYOUT.pack(rounds.values(False))
    Clock(dut.clk, 4, "ns").start()
    dut.rst.value = 1
    for _ in range(4):
        await RisingEdge(dut.clk)
    dut.rst.value = 0
    dut.rounds.value = LAYOUT.pack(rounds.values())
    await RisingEdge(dut.clk)


def sent(dut: Any, frame: bytearray) -> bytes | None:
    """The frame whose last beat leaves in this clock; the beats before are kept in `frame`."""
    if not (dut.m_axis_tvalid.value and dut.m_axis_tready.value):
        return None
    frame += int(dut.m_axis_tdata.value).to_bytes(BEAT, "little")[: int(dut.m_axis_tkeep.value).bit_length()]
    if not dut.m_axis_tlast.value:
        return None
    whole = bytes(frame)
    frame.clear()
    return whole


def counts_of(counts: int) -> list[int]:
    """Reason, refused, unasked, confirmed, sums, repeated, begun."""
    return [counts & 15, *(counts >> 4 + 32 * i & 0xFFFF_FFFF for i in range(6))]


def check_counts(counts: int, seen: Counter[str]) -> None:
    reason, refused, unasked, confirmed, sums, repeated, begun = counts_of(counts)
    assert (begun, sums, confirmed) == (ROUNDS, ROUNDS, ROUNDS)
    assert refused == sum(seen[way] for way in WAYS), dict(seen)
    assert reason and repeated and unasked
    assert all(seen[what] for what in (*WAYS, "lost", "doubled", "good")), dict(seen)


@cocotb.test()
async def every_round_once_in_order(dut: Any) -> None:
    """Sums come back in order, each once; what is forged is refused, and counted, one by one."""
    rng = random.Random(SEED)
    job = SlotJob(1, slots=8, base_seq=BASE, rto=400)
    network = Network(job, rng)
    await begin(dut, job.rounds(0))
    to_send = deque((rng.getrandbits(32 * LANES), rng.random() < 0.3) for _ in range(ROUNDS))
    expected = to_send.copy()
    cut = [saturated for _, saturated in to_send]
    frame, clocks, offered, frames = bytearray(), 0, False, Sent(BASE, job.slots)
    while expected or not int(dut.idle.value) or not network.empty:
        clocks += 1
        assert clocks < PATIENCE, f"{len(expected)} rounds are left: {dict(network.seen)}"
        await FallingEdge(dut.clk)
        offered = offered or (bool(to_send) and rng.random() < 0.7)
        dut.s_valid.value = int(offered)
        if offered:
            dut.s_lanes.value, dut.s_saturated.value = to_send[0]
        dut.m_ready.value = int(rng.random() < 0.6)
        dut.m_axis_tready.value = int(rng.random() < 0.8)
        drive_network(dut, network.next_beat())
        await ReadOnly()
        assert dut.s_axis_tready.value
        if offered and dut.s_ready.value:
            to_send.popleft()
            offered = False
        if dut.m_valid.value and dut.m_ready.value:
            found = int(dut.m_lanes.value), bool(dut.m_saturated.value)
            assert found == expected.popleft(), f"round {ROUNDS - len(expected) - 1}"
        if (whole := sent(dut, frame)) is not None:
            frames.check(whole, cut)
            network.take(whole)
    for _ in range(8):
        await RisingEdge(dut.clk)
    check_counts(int(dut.counts.value), network.counts())
    dut._log.info("coverage: %s", dict(network.counts()))


@cocotb.test()
async def sums_while_nothing_can_be_sent(dut: Any) -> None:
    """More sums than acknowledgements have room for: those that find none are sent when their rounds' time is up."""
    rng = random.Random(SEED)
    job = SlotJob(1, slots=SLOTS, rto=400)
    inject, answers = model_switch(job), deque[Beat]()
    await begin(dut, job.rounds(0))
    to_send = deque(rng.getrandbits(32 * LANES) for _ in range(SLOTS))
    expected = to_send.copy()
    frame, frames = bytearray(), 0
    for _ in range(PATIENCE):
        await FallingEdge(dut.clk)
        sums = counts_of(int(dut.counts.value))[4]
        if not to_send and not expected and int(dut.idle.value):
            break
        dut.s_valid.value = int(bool(to_send))
        if to_send:
            dut.s_lanes.value = to_send[0]
        dut.m_ready.value = 1
        # Every round begins; then all their sums arrive while the MAC takes nothing.
        dut.m_axis_tready.value = int(frames < SLOTS or sums == SLOTS)
        drive_network(dut, answers.popleft() if answers and frames >= SLOTS else None)
        await ReadOnly()
        if to_send and dut.s_ready.value:
            to_send.popleft()
        if dut.m_valid.value:
            assert int(dut.m_lanes.value) == expected.popleft()
        if (whole := sent(dut, frame)) is not None:
            frames += 1
            answers += [beat for _, answer in inject(0, whole) for beat in beats_of(answer)]
    _, refused, _, confirmed, sums, repeated, begun = counts_of(int(dut.counts.value))
    assert (begun, sums, confirmed, refused) == (SLOTS, SLOTS, SLOTS, 0) and not expected
    # Eight wait in the queue, one at its end; the frame on its way is another.
    assert repeated >= SLOTS - 10, "no acknowledgement was without room"


@cocotb.test()
async def a_stream_that_ends_leaves_nothing_to_the_next(dut: Any) -> None:
    """Streams end with rounds in every state, answers under way and a sum that nobody takes; the next has its own."""
    rng = random.Random(SEED)
    await begin(dut, SlotJob(1, gen=1, slots=SLOTS).rounds(0))
    waiting, frame = Counter[str](), bytearray()
    for gen in range(2, 30):
        job = SlotJob(1, gen=gen, slots=SLOTS, base_seq=rng.getrandbits(32), rto=400)
        await RisingEdge(dut.clk)
        dut.rounds.value = LAYOUT.pack(job.rounds(0).values(False))
        await ReadOnly()
        sent(dut, frame)  # a beat of the stream before may leave
        await RisingEdge(dut.clk)
        dut.rounds.value = LAYOUT.pack(job.rounds(0).values())
        inject, answers = model_switch(job), deque[Beat]()
        begun, handed, clocks = deque[int](), 0, rng.randrange(40, 120)
        # Whoever takes sums stalls until near the end, and at the end of every other stream, too.
        patient = clocks - 20 if gen % 2 else clocks
        lanes = rng.getrandbits(32 * LANES)
        for clock in range(clocks):
            await FallingEdge(dut.clk)
            dut.s_valid.value, dut.s_lanes.value = 1, lanes
            dut.m_ready.value = int(clock >= patient)
            dut.m_axis_tready.value = int(rng.random() < 0.9)
            drive_network(dut, answers.popleft() if answers and rng.random() < 0.5 else None)
            await ReadOnly()
            if dut.m_valid.value and dut.m_ready.value:
                assert int(dut.m_lanes.value) == begun.popleft(), f"stream {gen}"
                handed += 1
            if dut.s_ready.value:
                begun.append(lanes)
                lanes = rng.getrandbits(32 * LANES)
            if (whole := sent(dut, frame)) is not None:
                header = Header.unpack(whole, HEADER_OFFSET)
                began = (header.seq - job.base_seq) % (1 << 32) < len(begun) + handed
                assert header.gen != gen or began, f"stream {gen} has no round of {header}"
                for _, answer in inject(0, whole):
                    answers += beats_of(answer)
        waiting["sum"] += int(dut.m_valid.value)
        waiting["handed"] += handed
        waiting["answer"] += len(answers) > 0
    assert all(waiting[what] > 5 for what in ("sum", "handed", "answer")), waiting


@cocotb.test()
async def a_reset_in_the_middle_of_frames_leaves_nothing_of_them(dut: Any) -> None:
    """Half of a sum has arrived and half of a frame has left; then a frame is heard at once, and one leaves whole."""
    job = SlotJob(1, slots=SLOTS, rto=4000)
    for _ in range(2):
        await begin(dut, job.rounds(0))
        inject, frame, answers = model_switch(job), bytearray(), deque[Beat]()
        frames = clocks = 0
        offered = True
        while frames < 2 or not int(dut.idle.value):
            clocks += 1
            assert clocks < 400, "the round waits to be repeated"
            await FallingEdge(dut.clk)
            dut.s_valid.value, dut.s_lanes.value, dut.m_ready.value = int(offered), 5, 1
            dut.m_axis_tready.value = 1
            drive_network(dut, answers.popleft() if answers else None)
            await ReadOnly()
            offered = offered and not dut.s_ready.value
            if (whole := sent(dut, frame)) is not None:
                frames += 1
                answers += [beat for _, answer in inject(0, whole) for beat in beats_of(answer)]
        assert frames == 2, "partial activations and an acknowledgement"
        assert counts_of(int(dut.counts.value))[1:] == [0, 0, 1, 1, 0, 1]
        # The next round is cut on both ways.
        await FallingEdge(dut.clk)
        dut.s_valid.value = 1
        drive_network(dut, (0, (1 << BEAT) - 1, 0, 0))
        await RisingEdge(dut.clk)
        await FallingEdge(dut.clk)
        drive_network(dut, None)
        await ReadOnly()
        assert dut.m_axis_tvalid.value and not dut.m_axis_tlast.value
        await RisingEdge(dut.clk)


async def times_of_one_round(dut: Any, rto: int, clocks: int) -> list[int]:
    """Clocks at which a round's frame leaves when nobody answers."""
    await begin(dut, SlotJob(1, slots=SLOTS, rto=rto).rounds(0))
    frame, found = bytearray(), list[int]()
    offered = True
    for clock in range(clocks):
        await FallingEdge(dut.clk)
        dut.s_valid.value = int(offered)
        dut.s_lanes.value = 1
        dut.m_axis_tready.value = 1
        await ReadOnly()
        if offered and dut.s_ready.value:
            offered = False
        if sent(dut, frame) is not None:
            found.append(clock)
    return found


@cocotb.test()
async def a_round_waits_twice_as_long_each_time(dut: Any) -> None:
    """The wait grows up to eight times; a few clocks pass until a round is looked at."""
    times = await times_of_one_round(dut, 200, 5600)
    waits = [after - before for before, after in pairwise(times)]
    assert len(waits) >= 5
    assert all(least <= wait <= least + 24 for wait, least in zip(waits, [200, 400, 800, 1600, 1600], strict=False))


@cocotb.test()
@cocotb.parametrize(rto=[(1 << 32) - 1, 1 << 31, (1 << 29) + 1])
async def no_timeout_wraps(dut: Any, rto: int) -> None:
    """A time that, doubled, is longer than 32 bits stays long."""
    assert len(await times_of_one_round(dut, rto, 6000)) == 1


@cocotb.test()
async def the_least_time_is_64_clocks(dut: Any) -> None:
    times = await times_of_one_round(dut, 0, 600)
    assert len(times) > 1
    assert times[1] - times[0] >= 64
