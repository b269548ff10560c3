"""The stateful part of the switch model: slots that remember every contribution, and the heartbeat table.

Where the P4 program keeps running sums and bits, this keeps the contributions themselves and adds them up when asked.
Protocol: docs/explanation/protocol.md; LuWu section 3.2.3.
"""

from __future__ import annotations

from dataclasses import dataclass, field

M32 = 1 << 32


def newer(a: int, b: int) -> bool:
    """Serial comparison: is `a` less than half the circle ahead of `b`?"""
    distance = (a - b) % M32
    return distance != 0 and distance < 1 << 31


def serial_min(values: list[int]) -> int:
    """The one that is ahead of none; `values` is not empty and spans less than half the circle."""
    smallest = values[0]
    for value in values[1:]:
        if newer(smallest, value):
            smallest = value
    return smallest


def _added(held: int, value: int) -> int:
    return (held + value) % M32


def _halves_added(held: int, value: int) -> int:
    upper, lower = (held >> 16) + (value >> 16), held % (1 << 16) + value % (1 << 16)
    return upper % (1 << 16) << 16 | lower % (1 << 16)


@dataclass(frozen=True, slots=True)
class Contribution:
    """What one PA puts in: `values` are unsigned 32-bit, `next_exp` is signed, None without EXPV.

    `packed`: each value is two 16-bit integers. `mixed`: of the sum of a rack, in which some are and some are not.
    """

    values: tuple[int, ...]
    next_exp: int
    next_exp_valid: bool
    saturated: bool
    packed: bool = False
    mixed: bool = False


@dataclass(slots=True)
class Slot:
    """One slot: the round it belongs to, and what each worker contributed to it."""

    gen: int = 0
    seq: int = 0
    workers: int = 0
    contributions: list[Contribution] = field(default_factory=list)

    def sums(self) -> tuple[int, ...]:
        """Lane by lane, modulo 2^32; each half of a packed contribution to the half of before, modulo 2^16."""
        total = [0] * len(self.contributions[0].values)
        for one in self.contributions:
            add = _halves_added if one.packed else _added
            total = [add(held, value) for held, value in zip(total, one.values, strict=True)]
        return tuple(total)

    def next_exp(self) -> int:
        return max(c.next_exp for c in self.contributions)

    def next_exp_valid(self) -> bool:
        return all(c.next_exp_valid for c in self.contributions)

    def saturated(self) -> bool:
        return any(c.saturated for c in self.contributions)

    def packed(self) -> bool:
        return any(c.packed for c in self.contributions)

    def mixed(self) -> bool:
        return self.packed() and any(c.mixed or not c.packed for c in self.contributions)


@dataclass(frozen=True, slots=True)
class Window:
    """An (ack, credit) of generation `gen`."""

    gen: int = 0
    ack: int = 0
    credit: int = 0


class SlotStore:
    """All slots.  `add` is the whole life of a PA."""

    def __init__(self, count: int) -> None:
        self.slots = [Slot() for _ in range(count)]

    def add(self, index: int, gen: int, seq: int, own: int, what: Contribution) -> tuple[Slot, bool] | None:
        """Put `what` into slot `index`; None if the slot has gone on.  The flag says that it was already in."""
        slot = self.slots[index]
        if slot.gen != gen or newer(seq, slot.seq):
            self.slots[index] = Slot(gen, seq, own, [what])
            return self.slots[index], False
        if slot.seq != seq:
            return None
        if slot.workers & own:
            slot.workers |= own
            return slot, True
        slot.workers |= own
        slot.contributions.append(what)
        return slot, False


class HeartbeatTable:
    """The last word of every worker bit of every job row, and the last minimum that was sent."""

    def __init__(self) -> None:
        self.heard: dict[tuple[int, int], Window] = {}
        self.last: dict[int, Window] = {}

    def hear(self, job: int, worker: int, said: Window) -> None:
        """`worker` (a bit) says `said`: serial maximum, or all of it in a new generation."""
        held = self.heard.get((job, worker), Window())
        if held.gen == said.gen:
            said = Window(
                said.gen,
                said.ack if newer(said.ack, held.ack) else held.ack,
                said.credit if newer(said.credit, held.credit) else held.credit,
            )
        self.heard[(job, worker)] = said

    def minimum(self, job: int, gen: int, members: int) -> Window | None:
        """The minimum over `members` (bits), None unless each has spoken in `gen`."""
        said = [self.heard.get((job, 1 << k), Window()) for k in range(members.bit_length()) if members >> k & 1]
        if not said or any(window.gen != gen for window in said):
            return None
        return Window(gen, serial_min([w.ack for w in said]), serial_min([w.credit for w in said]))

    def advance(self, job: int, now: Window) -> bool:
        """Remember `now` as sent if it is beyond what was sent last; says whether it was."""
        last = self.last.get(job, Window())
        if last.gen == now.gen and not newer(now.ack, last.ack) and not newer(now.credit, last.credit):
            return False
        self.last[job] = now
        return True
