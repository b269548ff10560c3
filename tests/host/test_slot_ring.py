"""The slots' state machine against the golden switch on a network that loses, doubles, delays and forgets."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from faulty_lines import HOP, line_faults, some_line_faults

from catchment.host import _machines
from catchment.sim.golden.slot_model import SlotModel
from catchment.sim.golden.switch_core import Drop
from catchment.sim.golden.switch_frames import PAYLOAD_OFFSET
from catchment.sim.golden.switch_tables import Receiver, Worker
from catchment.sim.world import Faults, Line, World
from catchment.wire.generated.constants import HEADER_OFFSET, Flag, Header, Mode, PacketType

M32 = 1 << 32
GEN = 5
FRONT = bytes(HEADER_OFFSET)
LANES = 8
TIMES = (40, 20, 80)  # first, least and most of the retransmission timeout, in units of a hop


def vector(wid: int, seq: int) -> bytes:
    return b"".join(
        ((wid + 1) * 0x9E3779B1 + seq * 0x85EBCA77 + lane * 0xC2B2AE3D).__mod__(M32).to_bytes(4, "big")
        for lane in range(LANES)
    )


def total(workers: int, seq: int) -> bytes:
    parts = [vector(wid, seq) for wid in range(workers)]
    lanes = range(0, 4 * LANES, 4)
    return b"".join((sum(int.from_bytes(p[i : i + 4], "big") for p in parts) % M32).to_bytes(4, "big") for i in lanes)


@dataclass
class Member:
    """A worker: the machine, and what it has taken so far."""

    ring: object
    taken: dict[int, bytes] = field(default_factory=dict)


class Network:
    """Workers around one switch; time in units of a hop."""

    def __init__(
        self, rng: random.Random, faults: Faults, *, workers: int, rounds: int, slots: int, first: int,
        restart: float = 0.0,
    ) -> None:  # fmt: skip
        self.rng, self.restart, self.rounds, self.first = rng, restart, rounds, first
        self.switch = SlotModel(LANES, slots)
        self.switch.tables.groups[1] = tuple(range(workers))
        for wid in range(workers):
            full = (1 << workers) - 1
            self.switch.tables.jobs[(GEN, wid)] = Worker(Mode.ALLREDUCE, wid, 1 << wid, 0, slots - 1, full, 0, 1)
            self.switch.tables.receivers[(GEN, wid)] = Receiver(0, 0, 0, 0, 0)
        windows = [rng.randrange(1, slots + 1) for _ in range(workers)]
        self.members = [
            Member(_machines.SlotRing(first, window, slots, *TIMES, wid)) for wid, window in enumerate(windows)
        ]
        self.world = World(rng.getrandbits(64))
        self.up = [self._line(lambda frame, wid=wid: self.into_switch(wid, frame)) for wid in range(workers)]  # type: ignore[misc]
        self.down = [self._line(lambda frame, wid=wid: self.into_worker(wid, frame)) for wid in range(workers)]  # type: ignore[misc]
        self.set_faults(faults)

    def _line(self, arrive: Callable[[bytes], None]) -> Line:
        return Line(self.world, arrive, latency=HOP)

    def set_faults(self, faults: Faults) -> None:
        for line in (*self.up, *self.down):
            line.set_faults(faults)

    @property
    def now(self) -> int:
        """The time, in hops."""
        return self.world.now // HOP

    def at(self, delay: float, what: Callable[[], None]) -> None:
        self.world.after(round(delay * HOP), what)

    def step(self) -> None:
        assert self.world.step(), "nothing will happen any more"

    def send(self, wid: int, seq: int, kind: PacketType, again: bool) -> None:
        payload = vector(wid, seq) if kind == PacketType.PA else b""
        flags = Flag.RETX if again else Flag(0)
        header = Header(type=kind, gen=GEN, seq=seq, lanes=len(payload) // 4, flags=flags)
        self.up[wid].send(FRONT + header.pack() + payload)

    def into_switch(self, wid: int, frame: bytes) -> None:
        header = Header.unpack(frame, HEADER_OFFSET)
        try:
            output = self.switch.job_frame(self.switch.tables.jobs[(GEN, wid)], wid, header, frame)
        except Drop:
            return
        for to, out in output:
            self.down[to].send(out)

    def into_worker(self, wid: int, frame: bytes) -> None:
        member, header = self.members[wid], Header.unpack(frame, HEADER_OFFSET)
        ring = member.ring
        if header.type == PacketType.CNF:
            assert ring.on_confirmation(header.seq, self.now) != "impossible"
        else:
            event = ring.on_sum(header.seq, self.now)
            assert event != "impossible"
            if event == "taken":
                assert header.seq not in member.taken, "a sum was handed over twice"
                assert frame[PAYLOAD_OFFSET:] == total(len(self.members), header.seq), "a wrong sum"
                member.taken[header.seq] = frame[PAYLOAD_OFFSET:]
                self.send(wid, header.seq, PacketType.ACK, False)
        self.pump(wid)

    def pump(self, wid: int) -> None:
        ring = self.members[wid].ring
        while ring.open and (ring.next - self.first) % M32 < self.rounds:
            self.send(wid, ring.begin(self.now), PacketType.PA, False)

    def tick(self, wid: int) -> None:
        ring = self.members[wid].ring
        while (retry := ring.take_retry(self.now)) is not None:
            seq, partial, ack = retry
            assert partial or ack
            assert ack or ring.awaits_sum(seq)
            if partial:
                self.send(wid, seq, PacketType.PA, True)
            if ack:
                self.send(wid, seq, PacketType.ACK, True)
        self.at(5, lambda: self.tick(wid))

    def chaos(self) -> None:
        if self.rng.random() < self.restart:
            self.switch.restart()
        self.at(20, self.chaos)

    def done(self) -> bool:
        """Every sum is handed over; whoever still has an open confirmation waits for nobody's data."""
        return all(len(m.taken) == self.rounds for m in self.members)

    def run(self, limit: int = 2_000_000) -> None:
        for wid in range(len(self.members)):
            self.at(self.rng.random() * 30, lambda wid=wid: self.pump(wid))  # type: ignore[misc]
            self.at(5, lambda wid=wid: self.tick(wid))  # type: ignore[misc]
        self.at(20, self.chaos)
        while not self.done():
            self.step()
            assert self.now < limit, "no progress"


@pytest.mark.parametrize("workers", [1, 2, 3, 8])
@pytest.mark.parametrize("slots", [1, 2, 8])
def test_every_sum_once_and_right(rng: random.Random, workers: int, slots: int) -> None:
    for _ in range(6):
        first = rng.choice([rng.randrange(M32), M32 - 20])
        restart = rng.choice([0, 0.01])
        faults = some_line_faults(rng)
        Network(rng, faults, workers=workers, rounds=40, slots=slots, first=first, restart=restart).run()


def test_all_rounds_are_confirmed_once_the_network_is_kind(rng: random.Random) -> None:
    """Nothing stays open for ever: after the last sum the slots become free."""
    net = Network(rng, line_faults(loss=0.2, duplicate=0.2, tail=10), workers=3, rounds=30, slots=4, first=0)
    net.run()
    net.set_faults(line_faults())
    while not all(m.ring.idle for m in net.members):
        net.step()
        assert net.now < 500_000, "a round is never confirmed"


def ring(window: int = 2, first: int = 0) -> object:
    return _machines.SlotRing(first, window, window, *TIMES, 1)


def test_a_confirmation_of_another_round_frees_nothing() -> None:
    """The counterexample to the printed Algorithm 3: a repeated confirmation must not end the next round."""
    slots = ring(1, M32 - 1)
    assert slots.begin(0) == M32 - 1
    assert slots.on_sum(M32 - 1, 1) == "taken"
    assert slots.on_confirmation(M32 - 1, 2) == "taken"
    assert slots.begin(3) == 0
    assert slots.on_confirmation(M32 - 1, 4) == "repeated"
    assert slots.on_sum(0, 5) == "taken"
    assert slots.on_confirmation(M32 - 1, 6) == "repeated"
    assert not slots.open
    assert slots.on_confirmation(0, 7) == "taken"
    assert slots.open


def test_what_was_never_begun_is_refused() -> None:
    slots = ring(4)
    slots.begin(0)
    assert slots.on_sum(1, 1) == "impossible"
    assert slots.on_confirmation(0, 1) == "impossible"
    assert slots.on_confirmation(M32 - 1, 1) == "repeated"
    assert slots.on_sum(1 << 31, 1) == "impossible"


def test_slots_free_in_any_order_but_are_used_in_turn() -> None:
    slots = ring(3)
    assert [slots.begin(0) for _ in range(3)] == [0, 1, 2]
    for seq in (2, 1):
        assert (slots.on_sum(seq, 1), slots.on_confirmation(seq, 2)) == ("taken", "taken")
    assert not slots.open
    assert (slots.on_sum(0, 3), slots.on_confirmation(0, 3)) == ("taken", "taken")
    assert slots.idle and slots.oldest == 3


def test_a_switch_that_forgot_is_told_again() -> None:
    """A worker that waits for a confirmation sends its vector again after a while: others may lack the sum."""
    slots = ring(1)
    slots.begin(0)
    slots.on_sum(0, 1)
    now, seen = 1, []
    while len(seen) < 5:
        now += 10
        retry = slots.take_retry(now)
        if retry is not None:
            seen.append(retry)
        assert now < 10_000
    assert seen[0] == (0, False, True)
    assert seen[-1] == (0, True, True)


def asked_for(slots: object, now: int, until: int) -> list[int]:
    """The rounds whose vectors or acknowledgements are sent again in this time."""
    seen = []
    for at in range(now, until, 5):
        while (retry := slots.take_retry(at)) is not None:  # type: ignore[attr-defined]
            seen.append(retry[0])
    return seen


def test_a_sum_does_not_wait_for_a_confirmation() -> None:
    """A worker that has all its sums may compute, and acknowledge nothing; others ask for lost sums still."""
    slots = ring(4)
    for _ in range(3):
        slots.begin(0)
    slots.on_sum(0, 1)  # round 0 is never confirmed
    assert asked_for(slots, 2, 20_000)[-20:].count(1) > 5
    slots.on_sum(1, 20_000)
    assert asked_for(slots, 20_001, 40_000)[-20:].count(2) > 5


def test_a_switch_that_becomes_slow_is_measured_anew() -> None:
    """The switch slows down from 0.2 ms to 40: after a few rounds nothing is sent twice any more."""
    slots = _machines.SlotRing(0, 1, 1, 5_000_000, 1_000_000, 50_000_000, 1)
    now, repeats = 0, []
    for round_trip in [200_000] * 50 + [40_000_000] * 60:
        seq = slots.begin(now)
        repeated = 0
        for event in (slots.on_sum, slots.on_confirmation):
            answer = now + round_trip
            while slots.deadline < answer:
                now = slots.deadline
                repeated += slots.take_retry(now) is not None
            now = answer
            assert event(seq, now) == "taken"
        repeats.append(repeated)
    assert repeats[:50] == [0] * 50
    assert sum(repeats[50:]) > 0, "nothing was late: this test tests nothing"
    assert repeats[-30:] == [0] * 30


def test_who_asks_in_vain_asks_ever_more_seldom() -> None:
    """Up to eight times the limit: else workers that repeat could alone be more than a slow switch takes."""
    most = 50_000_000
    slots = _machines.SlotRing(0, 1, 1, 5_000_000, 1_000_000, most, 1)
    slots.begin(0)
    times = [0]
    while len(times) < 40:
        times.append(slots.deadline)
        slots.take_retry(times[-1])
    waits = [after - before for before, after in pairwise(times)]
    assert max(waits[:8]) <= 1.25 * most
    assert all(8 * most <= wait <= 10 * most for wait in waits[-8:])
