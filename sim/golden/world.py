"""Obvious models of the world (docs/explanation/world.md): draws, faults of a line, a line, the order of events."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import Protocol

M64 = (1 << 64) - 1
SHORTEST, FCS, PREAMBLE, GAP = 60, 4, 8, 12


def philox(key: int, stream: int, number: int, part: int) -> list[int]:
    """One block of Philox4x64-10: four draws of 64 bits."""
    x0, x1, x2, x3 = number, part, 0, 0
    for turn in range(10):
        k0 = (key + turn * 0x9E3779B97F4A7C15) & M64
        k1 = (stream + turn * 0xBB67AE8584CAA73B) & M64
        a, b = 0xD2E7470EE14C6C93 * x0, 0xCA5A826395121157 * x2
        x0, x1, x2, x3 = (b >> 64) ^ x1 ^ k0, b & M64, (a >> 64) ^ x3 ^ k1, a & M64
    return [x0, x1, x2, x3]


def fraction(draw: int) -> float:
    """A draw as a number from 0 to below 1."""
    return (draw >> 11) / (1 << 53)


def scaled(draw: int, most: int) -> int:
    """A draw as a whole number from 0 to `most`."""
    return draw * (most + 1) >> 64


class Burst(Protocol):
    """Losses in bursts: probabilities that a line becomes bad, good again, and loses a frame while it is bad."""

    @property
    def enter(self) -> float: ...
    @property
    def leave(self) -> float: ...
    @property
    def loss(self) -> float: ...


class Faults(Protocol):
    """Probabilities per frame, and times in picoseconds: what sim/world/faults.py states."""

    @property
    def loss(self) -> float: ...
    @property
    def damage(self) -> float: ...
    @property
    def duplicate(self) -> float: ...
    @property
    def reorder(self) -> float: ...
    @property
    def replay(self) -> float: ...
    @property
    def burst(self) -> Burst: ...
    @property
    def delay(self) -> int: ...
    @property
    def jitter(self) -> int: ...


@dataclass(frozen=True)
class Fate:
    """What happens to a frame: a delay for each copy that arrives, and whether an earlier frame comes again."""

    damaged: bool
    delays: tuple[int, ...]
    replays: bool


@dataclass
class FaultModel:
    """The fates of a line's frames, by their numbers: any can be asked for at any time.

    Args:
        targeted: numbers of the frames that are lost whatever is drawn.
    """

    seed: int
    line: int
    faults: Faults
    targeted: frozenset[int] = frozenset()

    def bad(self, number: int) -> bool:
        """Whether the line is in a burst when a frame is sent, from the draws of all frames up to it."""
        state = False
        for frame in range(number + 1):
            draw = fraction(philox(self.seed, self.line, frame, 0)[1])
            state = draw < (1 - self.faults.burst.leave if state else self.faults.burst.enter)
        return state

    def fate(self, number: int) -> Fate:
        """What happens to the line's frame `number`."""
        faults = self.faults
        loss, _, damage, duplicate = (fraction(draw) for draw in philox(self.seed, self.line, number, 0))
        lossy = max(faults.loss, faults.burst.loss) if self.bad(number) else faults.loss
        lost = number in self.targeted or loss < lossy
        copies = 0 if lost else 2 if duplicate < faults.duplicate else 1
        delays = []
        for copy in range(copies):
            reorder, hold, jitter, _ = philox(self.seed, self.line, number, 2 + copy)
            held = scaled(hold, faults.delay) if fraction(reorder) < faults.reorder else 0
            delays.append(held + scaled(jitter, faults.jitter))
        replays = fraction(philox(self.seed, self.line, number, 1)[0]) < faults.replay
        return Fate(not lost and damage < faults.damage, tuple(delays), replays)


@dataclass
class LineModel:
    """A line: what was sent waits until all before it is through."""

    byte: int
    latency: int
    faults: FaultModel
    queue_bytes: int | None = None
    sent: list[bytes] = field(default_factory=list)
    free_at: int = 0

    def send(self, frame: bytes, ready: int) -> list[tuple[int, bytes]]:
        """The arrivals (time of the last bit, frame) that come of it."""
        backlog = max(0, self.free_at - ready) // self.byte if self.byte else 0
        if self.queue_bytes is not None and backlog + len(frame) > self.queue_bytes:
            return []
        length = PREAMBLE + max(len(frame), SHORTEST) + FCS
        start = max(ready, self.free_at)
        self.free_at = start + (length + GAP) * self.byte
        last = start + self.latency + length * self.byte
        number = len(self.sent)
        fate = self.faults.fate(number)
        arrivals = [] if fate.damaged else [(last + delay, frame) for delay in fate.delays]
        if fate.replays and self.sent:
            earlier = self.sent[-512:]
            which = scaled(philox(self.faults.seed, self.faults.line, number, 1)[1], len(earlier) - 1)
            # The oldest of more than 512 has been replaced in its place.
            first = len(self.sent) - len(earlier)
            by_place = sorted(range(first, len(self.sent)), key=lambda one: one % 512)
            arrivals.append((last, self.sent[by_place[which]]))
        self.sent.append(frame)
        return arrivals


@dataclass
class EventsModel:
    """Events in the order (time, source, number)."""

    _heap: list[tuple[int, int, int, object]] = field(default_factory=list)
    _numbers: dict[int, int] = field(default_factory=dict)

    def schedule(self, source: int, at: int, what: object) -> None:
        """Add an event of a source."""
        number = self._numbers[source] = self._numbers.get(source, -1) + 1
        heapq.heappush(self._heap, (at, source, number, what))

    def step(self, end: int) -> tuple[int, object] | None:
        """Take the next event before `end`: its time and what it is."""
        if not self._heap or self._heap[0][0] >= end:
            return None
        at, _, _, what = heapq.heappop(self._heap)
        return at, what
