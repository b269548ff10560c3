"""Reads what a cluster file says of failures: at times, or by distributions."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from catchment.controlplane.documents import Section
from catchment.controlplane.topology import Topology
from catchment.sim.performance.cluster import Breakdown, Failure, Rail
from catchment.sim.performance.cluster_values import quantity_at, some, time_at
from catchment.sim.performance.hosts_that_differ import trunk_name
from catchment.sim.performance.quantities import Dimension

_KINDS = ("link", "trunk", "switch", "host", "rail")
_MOST = 100_000
"""Failures that are drawn."""


def read_failures(
    sections: Sequence[Section], topology: Topology, rails: Sequence[Rail]
) -> tuple[tuple[Failure, ...], tuple[Breakdown, ...]]:
    """Failures at times, and those that are drawn.

    Raises:
        DocumentError: there is no such thing, or a time that makes no sense; with file and line.
    """
    there = {
        "link": list(topology.hosts), "host": list(topology.hosts), "switch": list(topology.switches),
        "trunk": [trunk_name(link) for link in topology.links], "rail": [rail.name for rail in rails],
    }  # fmt: skip
    failures: list[Failure] = []
    breakdowns = []
    for section in sections:
        section.finish(("what", "name", "at", "until", "every", "lasts", "within"))
        what, pattern = section.text("what", None, _KINDS), section.text("name")
        names = tuple(name for name in there[what] if fnmatchcase(name, pattern))
        if not names:
            raise section.error_at("name", f"no such {what}; there are {some(there[what])}")
        if "every" in section:
            breakdowns.append(_breakdown(section, what, names))
        else:
            failures += _failures(section, what, names)
    return tuple(failures), tuple(breakdowns)


def _failures(section: Section, what: str, names: Sequence[str]) -> list[Failure]:
    for key in ("lasts", "within"):
        if key in section:
            raise section.error_at(key, "is of failures that are drawn: give `every`, or `at` and `until`")
    at = time_at(section, "at", None)
    until = time_at(section, "until", None) if "until" in section else None
    if until is not None and until <= at:
        raise section.error_at("until", "comes before it fails")
    return [Failure(what, name, at, until) for name in names]


def _breakdown(section: Section, what: str, names: tuple[str, ...]) -> Breakdown:
    for key in ("at", "until"):
        if key in section:
            raise section.error_at(key, "is of failures at times: give `at`, or `every`, `lasts` and `within`")
    every = round(quantity_at(section, "every", Dimension.TIME, None))
    lasts, within = (time_at(section, key, None) for key in ("lasts", "within"))
    if every < 1 or lasts < 1:
        raise section.error_at("every", "failures and what they last take time: give more than 0")
    if len(names) * within / every > _MOST:
        raise section.error_at("every", f"more than {_MOST} failures: give a longer time, or a shorter `within`")
    return Breakdown(what, names, every, lasts, within)
