"""How an operation is split over rails, and which of them are used, in integers.

docs/explanation/rails.md says why; rail_costs.py has what rails cost. The C++ of the collectives must have the same
shares for the same costs, and the same verdicts after the same rounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import combinations

GRANULE = 4096
SLICE = 16 * 1024
MOST_RATIO = 5
MOST_TRIED = 2
WIRE_BYTES = 4
_NANOS_PER_MILLI = 10**6


class Policy(IntEnum):
    """What decides about the split: the cost model, or one of the baselines of Nezha's evaluation."""

    WATERFILL = 0
    PAPER = 1
    FIXED = 2
    SLICES = 3
    SINGLE = 4


@dataclass(frozen=True, slots=True)
class RailCost:
    """What a rail costs: `start_ns` before the first byte, then `bytes_per_ms` of the wire; 0: it is not to be used.

    `nominal` is the rate that the topology names, in any unit that the rails share. `beside` is the start and the rate
    of a part while other rails carry the others; None: as alone.
    """

    start_ns: int
    bytes_per_ms: int
    nominal: int = 0
    beside: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Share:
    """Elements `first` to `first + elements` of an operation, and the rail that carries them."""

    rail: int
    first: int
    elements: int


def start_and_rate(rail: RailCost, among: int) -> tuple[int, int]:
    """What a rail costs as one of `among` rails that carry an operation."""
    return rail.beside if among > 1 and rail.beside else (rail.start_ns, rail.bytes_per_ms)


def finish_ns(rails: Sequence[RailCost], chosen: Sequence[int], size: int) -> int | None:
    """The time at which `size` bytes over the `chosen` rails are there, all at once; None where one begins later.

    The sum of B_i (T - L_i) over the rails is the size (equations 5 and 6 of the paper, solved).
    """
    costs = [start_and_rate(rails[rail], len(chosen)) for rail in chosen]
    waited = sum(start * rate for start, rate in costs)
    finish = (size * _NANOS_PER_MILLI + waited) // sum(rate for _, rate in costs)
    return None if any(finish < start for start, _ in costs) else max(finish, 1)


def split(rails: Sequence[RailCost], together_ns: Sequence[int], policy: Policy, elements: int) -> list[Share]:
    """The shares of `elements`, in their order; `together_ns[k - 1]` is what using k rails at once costs besides."""
    usable = [rail for rail, cost in enumerate(rails) if cost.bytes_per_ms]
    size = elements * WIRE_BYTES
    if elements == 0:
        return []
    if policy is Policy.SLICES:
        firsts = range(0, elements, SLICE)
        return [
            Share(usable[turn % len(usable)], first, min(SLICE, elements - first)) for turn, first in enumerate(firsts)
        ]
    if policy is Policy.FIXED:
        return _by_weight({rail: max(rails[rail].nominal, 1) for rail in usable}, elements)
    alone, _, single = min(_ends(rails, together_ns, size, 1))
    if policy is Policy.PAPER:
        near = [rail for rail in usable if _alone(rails[rail], size) <= MOST_RATIO * alone]
        if len(near) > 1:
            times = {rail: _alone(rails[rail], size // len(near)) for rail in near}
            shares = _by_weight({rail: sum(times.values()) - times[rail] for rail in near}, elements)
            finish = max(_alone(rails[share.rail], share.elements * WIRE_BYTES) for share in shares)
            if finish + together_ns[len(near) - 1] < alone:
                return shares
    chosen = min(_ends(rails, together_ns, size, len(usable)))[2] if policy is Policy.WATERFILL else single
    return _filled(rails, chosen, elements)


def tried(
    rails: Sequence[RailCost],
    together_ns: Sequence[int],
    policy: Policy,
    elements: int,
    *,
    sample: int,
    turn: int,
) -> list[Share]:
    """The shares of an operation that tries what is not the best, the `turn`th of its size; empty: there is nothing.

    In turn: each rail alone, and the best set of several, as far as they are not what `policy` uses and take no more
    than MOST_TRIED times as long as the best; then `sample` elements (0: none) over an idle rail, beside the others.
    """
    if elements == 0:
        return []
    usable = [rail for rail, cost in enumerate(rails) if cost.bytes_per_ms]
    most = len(usable) if policy in (Policy.WATERFILL, Policy.PAPER) and elements > GRANULE else 1
    size = elements * WIRE_BYTES
    used = {share.rail for share in split(rails, together_ns, policy, elements)}
    bound = MOST_TRIED * min(_ends(rails, together_ns, size, most))[0]
    options: list[tuple[int, ...]] = [
        (rail,) for rail in usable if used != {rail} and _alone(rails[rail], size) <= bound
    ]
    if len(used) == 1:
        options += [
            chosen for end, _, chosen in sorted(_ends(rails, together_ns, size, most, least=2))[:1] if end <= bound
        ]
    kept = (elements - sample) // GRANULE * GRANULE
    beside = split(rails, together_ns, policy, kept) if sample and kept >= 0 else []
    idle = [rail for rail in usable if rail not in {share.rail for share in beside}] if beside else []
    places = len(options) + bool(idle)
    if places == 0:
        return []
    if turn % places < len(options):
        return _filled(rails, options[turn % places], elements)
    return [*beside, Share(idle[turn // places % len(idle)], kept, elements - kept)]


def _filled(rails: Sequence[RailCost], chosen: Sequence[int], elements: int) -> list[Share]:
    """The shares with which all `chosen` rails end together."""
    finish_at = finish_ns(rails, chosen, elements * WIRE_BYTES)
    assert finish_at is not None
    costs = {rail: start_and_rate(rails[rail], len(chosen)) for rail in chosen}
    carried = {rail: rate * (finish_at - start) // _NANOS_PER_MILLI for rail, (start, rate) in costs.items()}
    return _by_weight(carried, elements)


def _alone(rail: RailCost, size: int) -> int:
    return rail.start_ns + size * _NANOS_PER_MILLI // rail.bytes_per_ms


def _ends(
    rails: Sequence[RailCost], together_ns: Sequence[int], size: int, most: int, least: int = 1
) -> list[tuple[int, int, tuple[int, ...]]]:
    """The end of each set of rails, and how many rails: the smallest is the best set.

    Of equals that is the one with fewer rails, then with the lower numbers.
    """
    usable = [rail for rail, cost in enumerate(rails) if cost.bytes_per_ms]
    return [
        (finish + together_ns[count - 1], count, chosen)
        for count in range(least, min(most, len(usable)) + 1)
        for chosen in combinations(usable, count)
        if (finish := finish_ns(rails, chosen, size)) is not None
    ]


def _by_weight(weights: dict[int, int], elements: int) -> list[Share]:
    """Whole granules by weight, those left over to the rail with the largest (of equals the first).

    The last rail takes what is no whole granule.
    """
    if not any(weights.values()):
        weights = {min(weights): 1}
    whole = sum(weights.values())
    granules = {rail: elements * weight // whole // GRANULE for rail, weight in weights.items()}
    most = max(weights, key=lambda rail: (weights[rail], -rail))
    granules[most] += elements // GRANULE - sum(granules.values())
    used = [rail for rail in sorted(granules) if granules[rail]] or [most]
    shares, first = [], 0
    for rail in used:
        end = elements if rail == used[-1] else first + granules[rail] * GRANULE
        shares.append(Share(rail, first, end - first))
        first = end
    return shares


@dataclass(frozen=True, slots=True)
class Record:
    """What a rank says in a round: operations that it has split, its clock, and what it sees of the rails.

    `suspected` and `settled` are bits of rails: those over which it has not heard everybody, and those over which all
    earlier rounds have come.
    """

    planned: int
    clock_ms: int
    suspected: int
    settled: int


class RailHealth:
    """Which rails all ranks use after the same rounds."""

    PROBATION_MS = 300
    LONGEST_PROBATION_MS = 60_000
    SOON_MS = 10_000
    MOST_WAITING = 64

    def __init__(self, rails: int) -> None:
        self.up = set(range(rails))
        self._rails = range(rails)
        self._good_since: dict[int, int] = {}
        self._needed: dict[int, int] = {}
        self._returned_at: dict[int, int] = {}
        self._waiting = [0] * rails

    def learn(self, records: Sequence[Record]) -> tuple[int, int]:
        """Learn from a round; from which operation on `up` holds, and over which rails (bits) the next round goes."""
        now = records[0].clock_ms
        suspected = {rail for rail in self._rails if any(record.suspected >> rail & 1 for record in records)}
        settled = {rail for rail in self._rails if all(record.settled >> rail & 1 for record in records)}
        before = set(self.up)
        if self.up - suspected:
            self.up -= suspected
        elif rescue := settled - suspected - self.up:
            self.up = rescue
        self._returned_at |= dict.fromkeys(self.up - before, now)
        self._waiting = [0 if rail in settled else rounds + 1 for rail, rounds in enumerate(self._waiting)]
        for rail in before - self.up:
            returned_at = self._returned_at.get(rail)
            soon = returned_at is not None and now - returned_at < self.SOON_MS
            self._needed[rail] = min(2 * self._needed[rail], self.LONGEST_PROBATION_MS) if soon else self.PROBATION_MS
            self._good_since.pop(rail, None)
        for rail in set(self._rails) - before - self.up:
            if rail not in settled or rail in suspected:
                self._good_since.pop(rail, None)
            elif now - self._good_since.setdefault(rail, now) >= self._needed[rail]:
                self.up.add(rail)
                self._returned_at[rail] = now
        asked = self.up | {rail for rail, rounds in enumerate(self._waiting) if rounds < self.MOST_WAITING}
        return max(record.planned for record in records), sum(1 << rail for rail in asked)

    def state(self, rail: int) -> int:
        """0: in use, 1: down, 2: on probation."""
        return 0 if rail in self.up else 2 if rail in self._good_since else 1
