"""Groups that carry out the same collectives at the same time."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from catchment.sim.performance.steps.graph import Collective, Kind, Trace

Ranks = tuple[int, ...]
Family = tuple[Ranks, ...]
Beside = Mapping[Ranks, Family]
"""A group -> all groups that do the same beside it, with it among them; a group that does so alone is left out."""
_Place = tuple[str, int, Collective, int]
"""A stream, how many of the rank's collectives come before on it, and kind and size of the collective there."""


def groups_beside(traces: Sequence[Trace]) -> Beside:
    """What traces say of it, or of those that say nothing: groups whose ranks have one collective at one place.

    A group that has several such families counts as one of the largest.
    """
    families = {family for trace in traces for family in trace.beside.values()}
    numbers: dict[Ranks, int] = {}
    at_places: defaultdict[_Place, set[int]] = defaultdict(set)
    for trace in traces:
        if not trace.beside:
            own = {name: numbers.setdefault(ranks, len(numbers)) for name, ranks in trace.groups.items()}
            for place, name in _places(trace):
                at_places[place].add(own[name])
    groups = tuple(numbers)
    families |= {tuple(groups[at] for at in sorted(each)) for each in set(map(frozenset, at_places.values()))}
    found: dict[Ranks, Family] = {}
    for family in sorted(families, key=len):
        if len(family) > 1:
            found |= dict.fromkeys(family, family)
    return found


def _places(trace: Trace) -> Iterator[tuple[_Place, str]]:
    """The place of each collective of a group, and the group's name."""
    before: Counter[str] = Counter()
    for task in trace.tasks:
        if task.kind is Kind.COLLECTIVE:
            if task.group:
                yield (task.stream, before[task.stream], task.collective, task.size), task.group
            before[task.stream] += 1
