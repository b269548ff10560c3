"""The slots' state machine against the golden switch on a network that loses, doubles, delays and forgets."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise

import pytest

from catchment.host import _machines
from catchment.sim.golden.slot_model import SlotModel
from catchment.sim.golden.switch_core import Drop
from catchment.sim.golden.switch_frames import HEADER_OFFSET, PAYLOAD_OFFSET
from catchment.sim.golden.switch_tables import Receiver, Worker
from catchment.wire.generated.constants import Flag, Header, Mode, PacketType

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
class Weather:
    loss: float = 0.0
    duplicate: float = 0.0
    tail: float = 1.0
    restart: float = 0.0

    @staticmethod
    def random(rng: random.Random) -> Weather:
        return Weather(
            rng.choice([0, 0.01, 0.1, 0.3]), rng.choice([0, 0.1, 0.3]), rng.choice([1, 10, 80]), rng.choice([0, 0.01])
        )


@dataclass
class Member:
    """A worker: the machine, and what it has taken so far."""

    ring: object
    taken: dict[int, bytes] = field(default_factory=dict)


class Network:
    """Workers around one switch; time in units of a hop."""

    def __init__(
        self, rng: random.Random, weather: Weather, *, workers: int, rounds: int, slots: int, first: int
    ) -> None:
        self.rng, self.weather, self.rounds, self.first = rng, weather, rounds, first
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
        self.now = 0
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._count = 0

    def at(self, delay: float, what: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._events, (self.now + max(1, round(delay)), self._count, what))

    def hop(self, arrive: Callable[[], None]) -> None:
        for _ in range(2 if self.rng.random() < self.weather.duplicate else 1):
            if self.rng.random() >= self.weather.loss:
                slow = self.rng.expovariate(1 / self.weather.tail) if self.rng.random() < 0.2 else self.rng.random()
                self.at(1 + slow, arrive)

    def send(self, wid: int, seq: int, kind: PacketType, again: bool) -> None:
        payload = vector(wid, seq) if kind == PacketType.PA else b""
        flags = Flag.RETX if again else Flag(0)
        header = Header(type=kind, gen=GEN, seq=seq, lanes=len(payload) // 4, flags=flags)
        self.hop(lambda: self.into_switch(wid, header, payload))

    def into_switch(self, wid: int, header: Header, payload: bytes) -> None:
        frame = FRONT + header.pack() + payload
        try:
            output = self.switch.job_frame(self.switch.tables.jobs[(GEN, wid)], wid, header, frame)
        except Drop:
            return
        for to, out in output:
            self.hop(lambda to=to, out=out: self.into_worker(to, out))  # type: ignore[misc]

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
        if self.rng.random() < self.weather.restart:
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
            self.now, _, what = heapq.heappop(self._events)
            assert self.now < limit, "no progress"
            what()


@pytest.mark.parametrize("workers", [1, 2, 3, 8])
@pytest.mark.parametrize("slots", [1, 2, 8])
def test_every_sum_once_and_right(rng: random.Random, workers: int, slots: int) -> None:
    for _ in range(6):
        first = rng.choice([rng.randrange(M32), M32 - 20])
        Network(rng, Weather.random(rng), workers=workers, rounds=40, slots=slots, first=first).run()


def test_all_rounds_are_confirmed_once_the_network_is_kind(rng: random.Random) -> None:
    """Nothing stays open for ever: after the last sum the slots become free."""
    net = Network(rng, Weather(loss=0.2, duplicate=0.2, tail=10), workers=3, rounds=30, slots=4, first=0)
    net.run()
    net.weather = Weather()
    while not all(m.ring.idle for m in net.members):
        net.now, _, what = heapq.heappop(net._events)
        assert net.now < 500_000, "a round is never confirmed"
        what()


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
    """Who waits for a confirmation sends its vector again after a while: others may lack the sum."""
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


def test_a_switch_that_becomes_slow_is_measured_anew() -> None:
    """From a fifth of a millisecond to forty: after a few rounds nothing is sent twice any more."""
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
