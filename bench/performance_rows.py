"""Judges the simulator against what the co-simulation gave: one row a comparison, each with its bound."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import mean

from bench.performance_points import Lost, Played, Point
from catchment.wire.generated.constants import PacketType

Play = Callable[[Point], Played]
_LAST = (1 << 10) - 1
SIZES = (1024, 4096, 16384, 1 << 18, 1 << 20)
LONG = (1 << 18, 1 << 20)
"""Sizes whose difference is a stretch of steady traffic."""
LOSSY = (0.001, 0.005)
SEEDS = range(1, 21)
CALM = Point((2,), 1 << 18)
LOSSES: dict[str, Lost] = {
    "a vector of one worker": Lost("w0", True, PacketType.PA, 300),
    "a sum": Lost("opt", False, PacketType.FA, 300),
    "a worker's last vector": Lost("w0", True, PacketType.PA, _LAST),
    "the last sum": Lost("opt", False, PacketType.FA, _LAST),
    "a heartbeat of the root": Lost("opt", True, PacketType.HB, 0),
    "parameters for one worker": Lost("w0", False, PacketType.PARAM, 200),
    "its last parameters": Lost("w0", False, PacketType.PARAM, _LAST),
}
HEARTBEAT_NS = 7044
"""The time between two heartbeats of a NIC. A timeout runs from the last progress, which they bring: where a message's
last frame is lost, the phase of the heartbeats decides up to so much, and the machine begins in another phase."""


@dataclass(frozen=True, slots=True)
class Row:
    """A comparison.

    Attributes:
        simulated, expected: ns, frames, or what `what` says.
        bound: how far they may be apart, in the same unit.
    """

    what: str
    simulated: float
    expected: float
    bound: float

    @property
    def holds(self) -> bool:
        """Whether it is within its bound."""
        return abs(self.simulated - self.expected) <= self.bound


def points() -> list[Point]:
    """All points that `rows` needs."""
    plain = [Point((workers,), size) for workers in (2, 4, 8) for size in SIZES]
    wide = [Point((4,), size, 1024) for size in (4096, *LONG)]
    trees = [Point((4, 4), 1 << 17), Point((2, 2, 2), 1 << 18)]
    lost = [replace(CALM, lost=one) for one in LOSSES.values()]
    lossy = [replace(CALM, loss=loss, seed=seed) for loss in LOSSY for seed in SEEDS]
    return [*plain, *wide, *trees, *lost, *lossy]


def rows(expected: Mapping[Point, Played], play: Play) -> list[Row]:
    """Compare every point."""
    played = {point: play(point) for point in expected}
    found: list[Row] = []
    for point, truth in expected.items():
        if point.lost is None and point.loss == 0:
            found += _calm(point, played[point], truth)
        if point.size == LONG[1]:
            found += _steady(point, played, expected)
    for name, lost in LOSSES.items():
        found.append(_lost(name, replace(CALM, lost=lost), played, expected))
    for loss in LOSSY:
        chosen = [point for point in expected if point.loss == loss]
        if chosen:
            found += _mean(loss, [played[p] for p in chosen], [expected[p] for p in chosen])
    return found


def _calm(point: Point, got: Played, truth: Played) -> list[Row]:
    bound = 0.02 if point.size >= 65536 else 0.05
    where = f"{'+'.join(map(str, point.workers))} workers, {point.size} B in frames of {point.vector_bytes} B"
    times = [
        Row(f"{where}: gradients, ns", got.up, truth.up, bound * truth.up),
        Row(f"{where}: parameters, ns", got.down, truth.down, bound * truth.down),
    ]
    counts = [Row(f"{where}: {kind} frames", got.frames[kind], count, 0) for kind, count in truth.frames.items()]
    return times + counts


def _steady(point: Point, got: Mapping[Point, Played], truth: Mapping[Point, Played]) -> list[Row]:
    """What a worker sends or gets a second in between: within 0.5 %; of heartbeats 10 %, or one of each host's."""
    shorter = replace(point, size=LONG[0])
    where = f"{'+'.join(map(str, point.workers))} workers, frames of {point.vector_bytes} B"

    def goodput(played: Mapping[Point, Played], time: Callable[[Played], float]) -> float:
        return 8 * (LONG[1] - LONG[0]) / (time(played[point]) - time(played[shorter]))

    def up(played: Played) -> float:
        return played.up

    def down(played: Played) -> float:
        return played.down

    found = []
    for what, time in (("gradients", up), ("parameters", down)):
        expected = goodput(truth, time)
        found.append(Row(f"{where}: goodput of {what}, Gb/s", goodput(got, time), expected, 0.005 * expected))
    beats, right = (played[point].heartbeats - played[shorter].heartbeats for played in (got, truth))
    return [*found, Row(f"{where}: heartbeats", beats, right, max(0.1 * right, len(point.names) + 1))]


def _lost(name: str, point: Point, got: Mapping[Point, Played], truth: Mapping[Point, Played]) -> Row:
    """The extra time that a lost frame costs: within 1 us or 10 %; where a timeout repairs it, a heartbeat."""

    def extra(played: Mapping[Point, Played]) -> float:
        return played[point].up + played[point].down - played[CALM].up - played[CALM].down

    bound = max(1000.0, 0.1 * extra(truth), HEARTBEAT_NS if "last" in name else 0)
    return Row(f"lost: {name}, ns more", extra(got), extra(truth), bound)


def _mean(loss: float, got: Sequence[Played], truth: Sequence[Played]) -> list[Row]:
    up, down = mean(p.up for p in truth), mean(p.down for p in truth)
    share = f"{100 * loss:g} % lost, mean of {len(truth)} seeds"
    return [
        Row(f"{share}: gradients and parameters, ns", mean(p.up + p.down for p in got), up + down, 0.05 * (up + down))
    ]
