"""The simulator's switch beside the slow model of luwu.p4, on random frames: what leaves, where, and what is in it."""

from __future__ import annotations

import random

import pytest

from catchment.sim.golden.switch_core import Drop
from catchment.sim.golden.switch_model import SwitchModel
from catchment.sim.golden.switch_tables import Receiver, Root, Worker
from catchment.sim.performance._performance import Simulation
from catchment.wire.generated.constants import Flag, Header, Mode, PacketType

GEN, UP, GROUP, BEFORE = 7, 99, 1, 42
SLOTS = 8
Answer = tuple[int, int, int, int, int, int, int]


class Golden:
    """One stream at one switch: worker w on port w, what is above on port UP."""

    def __init__(self, mode: Mode, members: int) -> None:
        self.model = SwitchModel(lanes=1, slots=SLOTS)
        self.model.tables.groups[GROUP] = list(range(members))
        full = (1 << members) - 1
        self.rows: dict[int, Worker | Root] = {
            w: Worker(mode, w, 1 << w, 0, SLOTS - 1, full, 0, GROUP, UP, 0) for w in range(members)
        }
        self.rows[UP] = Root(mode, 0, GROUP)
        for port in self.rows:
            self.model.tables.receivers[GEN, port] = Receiver(0, 0, 0, 0, 0)

    def play(self, port: int, header: Header, value: int) -> list[Answer]:
        """What leaves, by port."""
        frame = bytes(BEFORE) + header.pack() + value.to_bytes(4, "big")
        try:
            out = self.model.job_frame(self.rows[port], port, header, frame)
        except Drop:
            return []
        answers = []
        for to, bytes_ in out:
            left = Header.unpack(bytes_, BEFORE)
            carries = left.type in (PacketType.PA, PacketType.FA)
            start = BEFORE + len(header.pack())
            total = int.from_bytes(bytes_[start : start + 4], "big") if carries else 0
            answers.append((to, int(left.type), left.seq, left.ack, left.credit, int(left.flags), total))
        return sorted(answers)


class Simulated:
    """The same stream in the simulator; a frame that leaves by a port names it as its target."""

    def __init__(self, mode: Mode, members: int) -> None:
        self.simulation = Simulation(1)
        at = self.simulation.add_switch(pipeline=0, frame=0)
        slots = 0 if mode is Mode.BCAST else SLOTS
        branch = self.simulation.add_branch(at, mode=int(mode), members=members, slots=slots, data_bytes=68)
        self.rows = {w: self.simulation.add_row(branch, wid=w, from_root=False) for w in range(members)}
        self.rows[UP] = self.simulation.add_row(branch, wid=0, from_root=True)
        for port in self.rows:
            line = self.simulation.add_line(byte=0, latency=0, queue_bytes=0, faults=None)
            connect = self.simulation.set_up if port == UP else self.simulation.add_down
            connect(branch, line=line, to_switch=False, target=port)

    def play(self, port: int, header: Header, value: int) -> list[Answer]:
        """What leaves, by port."""
        numbers = (header.seq, header.ack, header.credit)
        answers = self.simulation.play(
            self.rows[port], carries=int(header.type), numbers=numbers, flags=int(header.flags), value=value
        )
        windowed = []
        for to, kind, seq, ack, credit, flags, total in answers:
            known = flags & Flag.ACKV or kind == PacketType.PARAM
            sums = total if kind in (PacketType.PA, PacketType.FA) else 0
            windowed.append((to, kind, seq, ack if known else 0, credit if known else 0, flags, sums))
        return sorted(windowed)


FROM_ABOVE = {
    Mode.REDUCE: [PacketType.HB],
    Mode.BCAST: [PacketType.PARAM],
    Mode.LEAF: [PacketType.PARAM, PacketType.FA, PacketType.MH],
}


def random_header(rng: random.Random, mode: Mode, port: int, newest: int) -> Header:
    seq = max(0, newest + rng.randrange(-4, 3))
    if port == UP:
        kind = rng.choice(FROM_ABOVE[mode])
    else:
        kind = rng.choice([PacketType.PA, PacketType.PA, PacketType.PA, PacketType.HB])
    flags = Flag.ACKV if kind in (PacketType.HB, PacketType.MH) or rng.random() < 0.7 else Flag(0)
    for flag in (Flag.RETX, Flag.LAST):
        flags |= flag if rng.random() < 0.2 else Flag(0)
    if mode is Mode.REDUCE and kind is PacketType.PA:
        flags &= ~Flag.ACKV
    ack = rng.randrange(max(1, newest)) if flags & Flag.ACKV else 0
    return Header(**{
        **Header.unpack(bytes(64), 0)._asdict(), "version": 1, "type": kind, "gen": GEN, "seq": seq, "flags": flags,
        "ack": ack, "credit": ack + rng.randrange(SLOTS) if flags & Flag.ACKV else 0, "lanes": 1,
    })  # fmt: skip


@pytest.mark.parametrize("mode", [Mode.REDUCE, Mode.BCAST, Mode.ALLREDUCE, Mode.LEAF])
def test_the_switch_answers_as_the_slow_model(mode: Mode, rng: random.Random) -> None:
    answered = 0
    for _ in range(30):
        members = rng.randrange(1, 6)
        golden, simulated = Golden(mode, members), Simulated(mode, members)
        for step in range(150):
            port = UP if rng.random() < 0.1 and mode is not Mode.ALLREDUCE else rng.randrange(members)
            header = random_header(rng, mode, port, 1 + step // (2 * members))
            value = rng.getrandbits(32) if header.type == PacketType.PA else 0
            expected = golden.play(port, header, value)
            assert simulated.play(port, header, value) == expected, (mode, members, step, port, header)
            answered += len(expected)
    assert answered > 200
