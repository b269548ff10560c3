"""The endpoint's C++ state machines against slow models with unbounded integers, across the 32-bit wrap."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from functools import partial

import pytest
from faulty_lines import HOP, line_faults
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from catchment.host import _machines
from catchment.sim.world import Line, World

M32 = 1 << 32
BASES = st.one_of(st.integers(0, M32 - 1), st.integers(M32 - 40, M32 - 1), st.just(0))


def newer(a: int, b: int) -> bool:
    return 0 < (a - b) % M32 < 1 << 31


@settings(deadline=None)
@given(a=st.integers(0, M32 - 1), ahead=st.integers(0, M32 - 1))
def test_serial_arithmetic(a: int, ahead: int) -> None:
    b = (a + ahead) % M32
    assert _machines.newer(b, a) == newer(b, a)
    if ahead != 1 << 31:
        assert {_machines.later(a, b), _machines.earlier(a, b)} == {a, b}
        assert not newer(_machines.earlier(a, b), _machines.later(a, b))


class Sender(RuleBasedStateMachine):
    """ma, next, end and credit as plain integers that never wrap."""

    @initialize(base=BASES, window=st.integers(1, 9), more=st.sampled_from([0, 0, 1, 5]))
    def start(self, base: int, window: int, more: int) -> None:
        self.window, self.slots = window, window + more
        self.machine = _machines.SenderWindow(base, window, self.slots)
        self.ma = self.next = self.end = base + M32  # room for what is older than the base
        self.credit = self.ma + window
        self.answered: set[int] = set()  # since the last timeout

    def limit(self) -> int:
        return min(self.credit, self.ma + self.window)

    @rule(frames=st.integers(0, 12))
    def queue(self, frames: int) -> None:
        self.machine.queue(frames)
        self.end += frames

    @rule(most=st.integers(1, 12))
    def take(self, most: int) -> None:
        for _ in range(most):
            taken = self.machine.take()
            if taken is None:
                assert self.next == self.end or self.next == self.limit()
                return
            seq, again = taken
            if again:
                assert seq in {s % M32 for s in range(self.ma, self.next)}, "resent what nobody may need"
            else:
                assert self.next < min(self.end, self.limit())
                assert seq == self.next % M32
                self.next += 1

    @rule(back=st.integers(-20, 3), room=st.integers(0, 15))
    def hear(self, back: int, room: int) -> None:
        """An ack around what is true: stale, current, or of frames that were never sent."""
        ack = self.next + back
        credit = ack + room
        outcome = self.machine.on_ack(ack % M32, credit % M32)
        if ack > self.next or room > self.slots:
            assert outcome == "impossible"
            return
        before = self.credit
        self.credit = max(self.credit, credit)
        if ack > self.ma:
            assert outcome == "advanced"
            self.ma = ack
        else:
            assert outcome == ("credit" if self.credit != before else "nothing")

    @rule()
    def time_out(self) -> None:
        self.machine.on_timeout()
        if self.ma != self.next:
            self.answered.clear()
        if self.ma != self.next:
            assert self.machine.take() == (self.ma % M32, True)

    def resent(self) -> list[int]:
        """Take all that is to be sent again, and the new frame that ends the list, if there is one."""
        seqs = []
        while (taken := self.machine.take()) is not None and taken[1]:
            seqs.append(taken[0])
            assert len(seqs) <= self.window
        self.next += taken is not None
        return seqs

    @rule(back=st.integers(-12, 3))
    def asked(self, back: int) -> None:
        """A receiver lacks a frame: it is resent if it is in flight, and once until the next timeout."""
        self.resent()
        seq = self.next + back
        due = self.ma <= seq < self.next and seq not in self.answered
        self.machine.on_missing(seq % M32)
        assert self.resent() == ([seq % M32] if due else [])
        if due:
            self.answered.add(seq)

    @invariant()
    def same(self) -> None:
        if not hasattr(self, "machine"):
            return
        machine = self.machine
        seen = (machine.acked, machine.next, machine.end, machine.credit)
        assert seen == (self.ma % M32, self.next % M32, self.end % M32, self.credit % M32)
        assert machine.outstanding == (self.ma < self.next)
        assert machine.idle == (self.ma == self.end)
        assert machine.starved == (self.next < self.end and self.next >= self.limit())


class Consumer(RuleBasedStateMachine):
    """The set of frames that were taken, and how many were handed over."""

    @initialize(base=BASES, depth=st.integers(1, 11))
    def start(self, base: int, depth: int) -> None:
        self.depth = depth
        self.machine = _machines.ConsumerWindow(base, depth)
        self.consumed = self.ack = self.highest = base + M32
        self.held: set[int] = set()  # beyond ack

    @rule(offset=st.integers(-15, 15), direct=st.booleans())
    def arrive(self, offset: int, direct: bool) -> None:
        seq = self.ack + offset
        verdict = self.machine.classify(seq % M32)
        if seq < self.ack or seq in self.held:
            assert verdict == "duplicate"
            return
        if seq >= self.consumed + self.depth:
            assert verdict == "outside"
            return
        assert verdict == ("next" if offset == 0 else "ahead")
        if direct and offset == 0 and self.consumed == self.ack:
            self.machine.pass_on()
            self.consumed += 1
        else:
            places = {self.machine.place(s % M32) for s in [*range(self.consumed, self.ack), *self.held]}
            assert self.machine.place(seq % M32) not in places, "two frames in one place of the ring"
            skipped = self.machine.hold(seq % M32)
            assert skipped == (self.highest % M32, max(self.highest, seq) % M32)
        self.highest = max(self.highest, seq + 1)
        self.held.add(seq)
        while self.ack in self.held:
            self.held.remove(self.ack)
            self.ack += 1

    @precondition(lambda self: self.consumed != self.ack)
    @rule()
    def hand_over(self) -> None:
        self.machine.consume()
        self.consumed += 1

    @rule(seq=st.integers(0, M32 - 1))
    def anything(self, seq: int) -> None:
        if (seq - self.consumed) % M32 >= self.depth:
            assert self.machine.classify(seq) in ("duplicate", "outside")

    @invariant()
    def same(self) -> None:
        if not hasattr(self, "machine"):
            return
        machine = self.machine
        assert (machine.ack, machine.consumed) == (self.ack % M32, self.consumed % M32)
        assert machine.credit == (self.consumed + self.depth) % M32
        assert machine.ready == (self.consumed != self.ack)
        for seq in range(self.ack - 2, self.consumed + self.depth + 2):
            wanted = self.ack <= seq < self.consumed + self.depth and seq not in self.held
            assert machine.missing(seq % M32) == wanted


TestSender = Sender.TestCase
TestConsumer = Consumer.TestCase
TestSender.settings = TestConsumer.settings = settings(deadline=None, max_examples=100, stateful_step_count=50)


class Network:
    """W senders, a switch with T slots that remembers who is in, and one consumer, on lines with faults.

    A frame's bytes are the numbers in it, each of 32 bits.
    """

    def __init__(self, rng: random.Random, workers: int, slots: int, base: int) -> None:
        self.rng, self.slots = rng, slots
        self.senders = [_machines.SenderWindow(base, slots, slots) for _ in range(workers)]
        self.consumer = _machines.ConsumerWindow(base, slots)
        self.full = set(range(workers))
        self.table: dict[int, tuple[int, set[int]]] = {}
        self.delivered: list[int] = []
        self.world = World(rng.getrandbits(64))
        self.faults = line_faults(loss=0.2, duplicate=0.2)
        self.up = [self.line(partial(self.add, wid)) for wid in range(workers)]
        self.to_consumer = self.line(self.arrive)
        self.down = [self.line(partial(self.hear, sender)) for sender in self.senders]

    def line(self, deliver: Callable[[bytes], None]) -> Line:
        return Line(self.world, deliver, latency=HOP, faults=self.faults)

    def add(self, wid: int, frame: bytes) -> None:
        [seq] = numbers_in(frame)
        held = self.table.get(seq % self.slots)
        if held is None or newer(seq, held[0]):
            held = self.table[seq % self.slots] = (seq, set())
        elif seq != held[0]:
            return
        held[1].add(wid)
        if held[1] == self.full:
            self.to_consumer.send(frame)

    def hear(self, sender: _machines.SenderWindow, frame: bytes) -> None:
        ack, credit, missing = numbers_in(frame)
        outcome = sender.on_ack(ack, credit)
        assert outcome != "impossible"
        sender.on_missing(missing)

    def arrive(self, frame: bytes) -> None:
        [seq] = numbers_in(frame)
        consumer = self.consumer
        if consumer.classify(seq) in ("next", "ahead"):
            assert self.table[seq % self.slots][0] == seq, "the slot was reused before everyone had its sum"
            first, last = consumer.hold(seq)
            while first != last:
                self.ask(first)
                first = (first + 1) % M32

    def ask(self, seq: int) -> None:
        for line in self.down:
            line.send(frame_of(self.consumer.ack, self.consumer.credit, seq))

    def step(self) -> None:
        """One member does something, and a part of a hop's time passes."""
        choice = self.rng.random()
        if choice < 0.5:
            wid = self.rng.randrange(len(self.senders))
            taken = self.senders[wid].take()
            if taken is not None:
                self.up[wid].send(frame_of(taken[0]))
        elif choice < 0.67:
            self.rng.choice(self.senders).on_timeout()
        elif choice < 0.85 and self.consumer.ready:
            self.delivered.append(self.consumer.consumed)
            self.consumer.consume()
        else:
            self.ask(self.rng.choice([self.consumer.ack, self.rng.randrange(M32)]))
        self.world.run(self.world.now + self.rng.randrange(HOP))


def frame_of(*numbers: int) -> bytes:
    return struct.pack(f"!{len(numbers)}I", *numbers)


def numbers_in(frame: bytes) -> tuple[int, ...]:
    return struct.unpack(f"!{len(frame) // 4}I", frame)


@pytest.mark.parametrize(("workers", "slots"), [(1, 1), (2, 1), (2, 2), (3, 4), (5, 16)])
def test_together_they_deliver_everything_once_and_in_order(workers: int, slots: int, rng: random.Random) -> None:
    base, frames = M32 - 37, 100
    network = Network(rng, workers, slots, base)
    for sender in network.senders:
        sender.queue(frames)
    steps = 0
    while not all(sender.idle for sender in network.senders) or len(network.delivered) < frames:
        network.step()
        steps += 1
        assert steps < 2_000_000, "no progress"
    assert network.delivered == [(base + index) % M32 for index in range(frames)]


MS = 1_000_000


def test_retransmit_timer_follows_the_round_trip_and_backs_off() -> None:
    timer = _machines.RetransmitTimer(5 * MS, 1 * MS, 10 * MS, 3)
    assert not timer.expired(10**15)
    now = 0
    for seq in range(100):
        timer.on_sent(seq, now)
        now += 400_000
        timer.on_progress(seq + 1, True, now)
    assert timer.round_trip == pytest.approx(400_000, rel=0.01)
    assert timer.timeout == 1 * MS
    waits = []
    for _ in range(8):
        waits.append(timer.deadline - now)
        assert not timer.expired(timer.deadline - 1)
        now = timer.deadline
        assert timer.expired(now)
        timer.on_expired(now)
    assert all(
        base * MS <= wait <= base * MS * 5 // 4 for base, wait in zip([1, 2, 4, 8, 10, 10, 10, 10], waits, strict=True)
    )
    timer.on_progress(100, False, now)
    assert timer.timeout == 10 * MS, "which transmission was that?"
    timer.on_sent(100, now)
    timer.on_progress(101, False, now + 400_000)
    assert timer.timeout == 1 * MS
    assert not timer.expired(10**15)


@pytest.mark.parametrize("window", [1, 4, 64])
@pytest.mark.parametrize("round_trip", [8, 30, 100, 450])
def test_a_slow_switch_is_measured_and_gets_every_frame_once(window: int, round_trip: int) -> None:
    """Were its answers always later than the longest timeout, it would get everything many times, for ever."""
    timer = _machines.RetransmitTimer(5 * MS, 1 * MS, 10 * MS, 3)
    frames = max(400, 12 * window)
    now = sent = acked = 0
    answers: list[tuple[int, int]] = []
    late_repeats = repeats = 0
    while acked < frames:
        while sent < min(acked + window, frames):
            timer.on_sent(sent, now)
            answers.append((now + round_trip * MS + sent * 1000, sent + 1))
            sent += 1
        now = min(answers[0][0], timer.deadline)
        if answers[0][0] <= now:
            acked = answers.pop(0)[1]
            timer.on_progress(acked, acked != sent, now)
        else:
            timer.on_expired(now)
            repeats += 1
            late_repeats += acked >= 8 * window
    assert repeats < max(30, round_trip // 5), "one in 10 ms until the first answer"
    assert late_repeats == 0
    assert timer.round_trip == pytest.approx(round_trip * MS, rel=0.5)


def test_retransmitted_frames_are_not_timed() -> None:
    timer = _machines.RetransmitTimer(5 * MS, 1 * MS, 10 * MS, 3)
    timer.on_sent(0, 0)
    timer.on_expired(6 * MS)
    timer.on_progress(1, False, 100 * MS)
    assert timer.round_trip == 0


def test_workers_do_not_resend_at_the_same_instant() -> None:
    deadlines = set()
    for wid in range(32):
        timer = _machines.RetransmitTimer(5 * MS, 1 * MS, 10 * MS, wid)
        timer.on_sent(0, 0)
        deadlines.add(timer.deadline)
    assert len(deadlines) > 28


def heartbeat(depth: int = 64) -> _machines.Heartbeat:
    beat = _machines.Heartbeat(0, depth, 300, 2000, 8000)
    assert beat.due(0), "the switch merges only once it has heard everyone"
    beat.on_sent(0, depth, 0)
    return beat


def test_heartbeat_after_a_quarter_of_the_window() -> None:
    beat = heartbeat()
    beat.on_window(15, 64, 10)
    assert not beat.due(10)
    beat.on_window(16, 64, 10)
    assert beat.due(10)
    beat.on_sent(16, 64, 10)
    assert not beat.due(10)
    beat.on_window(16, 80, 11)
    assert beat.due(11)


def test_heartbeat_soon_after_any_change_and_rarer_when_idle() -> None:
    beat = heartbeat()
    beat.on_window(1, 64, 100)
    assert beat.deadline == 400
    beat.on_sent(1, 64, 400)
    gaps, now = [], 400
    for _ in range(4):
        gaps.append(beat.deadline - now)
        now = beat.deadline
        beat.on_sent(1, 64, now)
    assert gaps == [2000, 4000, 8000, 8000]


def test_heartbeat_at_once_for_duplicates_and_the_end_of_a_message() -> None:
    beat = heartbeat()
    assert not beat.due(1000)
    beat.on_duplicate()
    assert beat.due(1000)
    beat.on_sent(0, 64, 1000)
    assert not beat.due(1001)
    beat.on_message_end()
    assert not beat.due(1001), "nothing to say"
    beat.on_window(1, 65, 1001)
    assert beat.due(1001)


def test_a_window_that_comes_twice_is_answered_by_few_heartbeats() -> None:
    beat = heartbeat()
    beat.on_round_trip(4000)
    sent = 0
    for now in range(10, 2010, 10):
        beat.on_duplicate()
        if beat.due(now):
            beat.on_sent(0, 64, now)
            sent += 1
    assert sent == 2


def test_a_frame_that_carries_a_heartbeat_does_not_put_off_the_next_one() -> None:
    """Retransmissions more often than heartbeats are due: nobody answers an old one, a heartbeat of worker 0 is."""
    beat = heartbeat()
    due = beat.deadline
    for _ in range(10):
        beat.on_carried(0, 64)
    assert beat.deadline == due
    beat.on_window(20, 84, 1)
    assert beat.due(1)
    beat.on_carried(20, 84)
    assert not beat.due(1), "it was said"
    assert beat.deadline == due


def test_heartbeats_of_a_slow_link_are_apart_by_a_share_of_its_round_trip() -> None:
    """Frames there are further apart than the delay: beside each there would be a heartbeat."""
    beat = heartbeat()
    beat.on_round_trip(40_000)
    beat.on_sent(1, 64, 0)
    assert beat.deadline == 20_000
    beat.on_window(2, 64, 100)
    assert beat.deadline == 10_100
    beat.on_window(17, 64, 100)
    assert beat.due(100), "a quarter of the window has moved"
    beat.on_sent(17, 64, 100)
    beat.on_round_trip(200)
    beat.on_window(18, 64, 200)
    assert beat.deadline == 500, "no sooner on a fast link"
    beat.on_round_trip(10**12)
    assert beat.deadline == 20_100, "the round trip of a rank that was late holds nothing back"
    beat.on_sent(18, 64, 20_000_000)
    assert beat.deadline == 320_000_000
    beat.on_sent(18, 64, 400_000_000)
    assert beat.deadline == 700_000_000, "no sooner where nothing moved, either"


@pytest.mark.parametrize("late", [True, False])
def test_what_was_late_is_not_sent_again_however_acks_return(late: bool) -> None:
    """Acks return one by one on a slow link, which looks as if what was resent had been lost."""
    window = _machines.SenderWindow(0, 16, 16)
    window.queue(16)
    assert [window.take() for _ in range(16)] == [(seq, False) for seq in range(16)]
    window.on_timeout()
    assert window.take() == (0, True)
    if late:
        window.on_late()
    again = []
    for ack in range(1, 9):
        window.on_ack(ack, 16)
        while (taken := window.take()) is not None:
            again.append(taken[0])
    assert (again == []) == late
