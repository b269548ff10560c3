"""Workers with slot rings below a tree of golden switches that run p4sgd.p4; time in units of a hop."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from faulty_lines import HOP

from catchment.host import _machines
from catchment.sim.golden.slot_model import SlotModel
from catchment.sim.golden.switch_core import Drop
from catchment.sim.golden.switch_frames import PAYLOAD_OFFSET
from catchment.sim.golden.switch_tables import Receiver, Root, Worker
from catchment.sim.world import Faults, Line, World
from catchment.wire.generated.constants import HEADER_OFFSET, DropReason, Flag, Header, Mode, PacketType

M32 = 1 << 32
GEN = 5
FRONT = bytes(HEADER_OFFSET)
LANES = 8
TIMES = (40, 20, 80)  # first, least and most of the retransmission timeout, in units of a hop

Shape = int | Sequence["Shape"]
"""A switch with so many workers, or with these switches below it."""


def vector(wid: int, seq: int) -> bytes:
    """What a worker contributes to a round."""
    return b"".join(
        ((wid + 1) * 0x9E3779B1 + seq * 0x85EBCA77 + lane * 0xC2B2AE3D).__mod__(M32).to_bytes(4, "big")
        for lane in range(LANES)
    )


def total(workers: int, seq: int) -> bytes:
    """A round's sum."""
    parts = [vector(wid, seq) for wid in range(workers)]
    lanes = range(0, 4 * LANES, 4)
    return b"".join((sum(int.from_bytes(p[i : i + 4], "big") for p in parts) % M32).to_bytes(4, "big") for i in lanes)


@dataclass
class Member:
    """A worker: the machine, the line to its switch, and what it has taken so far.

    `enter` takes a frame of it into the switch at once; `neighbours` are the workers of that switch.
    """

    ring: object
    up: Line
    enter: Callable[[bytes], None]
    neighbours: int
    taken: dict[int, bytes] = field(default_factory=dict)


class Network:
    """One job; its workers' indices go from left to right over the whole tree."""

    def __init__(
        self, rng: random.Random, faults: Faults, *, shape: Shape, rounds: int, slots: int, first: int,
        restart: float = 0.0, forge: float = 0.0,
    ) -> None:  # fmt: skip
        self.rng, self.restart, self.rounds, self.first, self.slots = rng, restart, rounds, first, slots
        self.forge, self.drops = forge, Counter[DropReason]()
        self.world = World(rng.getrandbits(64))
        self.switches: list[SlotModel] = []
        self.lines: list[Line] = []
        self.members: list[Member] = []
        self._switch(shape, None, 0)
        self.set_faults(faults)

    def _switch(self, shape: Shape, above: Callable[[bytes], None] | None, index: int) -> Callable[[bytes], None]:
        """Make a switch, and what is below it; returns what takes the frames from above."""
        switch, count = SlotModel(LANES, self.slots), shape if isinstance(shape, int) else len(shape)
        self.switches.append(switch)
        mode = Mode.LEAF if above else Mode.ALLREDUCE
        switch.tables.groups[1] = tuple(range(count))
        downwards: list[Line] = []
        if above is not None:
            switch.tables.jobs[(GEN, count)] = Root(mode, 0, 1)
        for port in range(count + (above is not None)):
            switch.tables.receivers[(GEN, port)] = Receiver(0, 0, 0, 0, 0)

        def take(port: int, frame: bytes) -> None:
            try:
                out = switch.job_frame(
                    switch.tables.jobs[(GEN, port)], port, Header.unpack(frame, HEADER_OFFSET), frame
                )
            except Drop as drop:
                self.drops[drop.reason] += 1
                return
            for to, sent in out:
                (upwards if to == count else downwards[to]).send(sent)

        upwards = self._line(above or (lambda frame: None))
        for port in range(count):
            switch.tables.jobs[(GEN, port)] = Worker(
                mode, port, 1 << port, 0, self.slots - 1, (1 << count) - 1, 0, 1, count, index
            )

            def enter(frame: bytes, port: int = port) -> None:
                take(port, frame)

            if isinstance(shape, int):
                downwards.append(self._line(self._member(enter, count)))
            else:
                downwards.append(self._line(self._switch(shape[port], enter, port)))
        return lambda frame: take(count, frame)

    def _member(self, enter: Callable[[bytes], None], neighbours: int) -> Callable[[bytes], None]:
        wid, window = len(self.members), self.rng.randrange(1, self.slots + 1)
        ring = _machines.SlotRing(self.first, window, self.slots, *TIMES, wid)
        self.members.append(Member(ring, self._line(enter), enter, neighbours))
        return lambda frame: self.into_worker(wid, frame)

    def _line(self, arrive: Callable[[bytes], None]) -> Line:
        self.lines.append(Line(self.world, arrive, latency=HOP))
        return self.lines[-1]

    def set_faults(self, faults: Faults) -> None:
        for line in self.lines:
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
        flags = Flag.ACKV | (Flag.RETX if again else Flag(0))
        lacks: int = self.members[wid].ring.lacks  # type: ignore[attr-defined]
        header = Header(type=kind, gen=GEN, seq=seq, lanes=len(payload) // 4, flags=flags, ack=lacks)
        self.members[wid].up.send(FRONT + header.pack() + payload)

    def send_forged(self) -> None:
        """Garbage in a worker's name, of a round that no worker has begun nor may begin next.

        It may also say that the worker is that far, where other workers of its switch say what they lack.
        """
        begun = max((member.ring.next - self.first) % M32 for member in self.members)  # type: ignore[attr-defined]
        seq = (self.first + begun + self.slots + self.rng.randrange(1 << 29)) % M32
        kind = self.rng.choice([PacketType.PA, PacketType.ACK])
        payload = self.rng.randbytes(4 * LANES) if kind == PacketType.PA else b""
        flags = self.rng.choice([Flag(0), Flag.ACKV]) if self.members[0].neighbours > 1 else Flag(0)
        header = Header(type=kind, gen=GEN, seq=seq, lanes=len(payload) // 4, flags=flags, ack=seq)
        self.members[0].enter(FRONT + header.pack() + payload)

    def into_worker(self, wid: int, frame: bytes) -> None:
        member, header = self.members[wid], Header.unpack(frame, HEADER_OFFSET)
        ring = member.ring
        if header.type == PacketType.CNF:
            event = ring.on_confirmation(header.seq, self.now)  # type: ignore[attr-defined]
            # Before a bound is known, a forged acknowledgement of a far round may be confirmed to its sender's address.
            begun = (header.seq - self.first) % M32 < (ring.next - self.first) % M32  # type: ignore[attr-defined]
            assert event != "impossible" if begun or not self.forge else event == "impossible"
        else:
            assert header.type == PacketType.FA
            event = ring.on_sum(header.seq, self.now)  # type: ignore[attr-defined]
            assert event != "impossible"
            if event == "taken":
                assert header.seq not in member.taken, "a sum was handed over twice"
                assert frame[PAYLOAD_OFFSET:] == total(len(self.members), header.seq), "a wrong sum"
                member.taken[header.seq] = frame[PAYLOAD_OFFSET:]
                self.send(wid, header.seq, PacketType.ACK, False)
        self.pump(wid)

    def pump(self, wid: int) -> None:
        ring = self.members[wid].ring
        while ring.open and (ring.next - self.first) % M32 < self.rounds:  # type: ignore[attr-defined]
            self.send(wid, ring.begin(self.now), PacketType.PA, False)  # type: ignore[attr-defined]

    def tick(self, wid: int) -> None:
        ring = self.members[wid].ring
        while (retry := ring.take_retry(self.now)) is not None:  # type: ignore[attr-defined]
            seq, partial, ack = retry
            assert partial or ack
            assert ack or ring.awaits_sum(seq)  # type: ignore[attr-defined]
            if partial:
                self.send(wid, seq, PacketType.PA, True)
            if ack:
                self.send(wid, seq, PacketType.ACK, True)
        self.at(5, lambda: self.tick(wid))

    def chaos(self) -> None:
        if self.rng.random() < self.restart:
            self.rng.choice(self.switches).restart()
        if self.rng.random() < self.forge:
            self.send_forged()
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
