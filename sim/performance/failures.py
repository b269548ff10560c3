"""Failures of a cluster, at their times."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from catchment.sim.performance.cluster import Cluster, Failure
from catchment.sim.performance.hosts_that_differ import trunk_name
from catchment.sim.performance.models import ProgramModel
from catchment.sim.performance.network import Network
from catchment.sim.world import Faults

_SILENT = Faults(loss=1.0)
_Part = tuple[str, int, int]
"""A switch, a host or a line of a rail: which of them it is, the rail, and its number there."""
_Outage = tuple[int, int | None]
"""Times in ps, from when until when something is down; None: for good."""


def failures_of(cluster: Cluster, seed: int) -> list[Failure]:
    """The failures that a cluster names, and those that are drawn for a seed."""
    found = list(cluster.failures)
    for at, breakdown in enumerate(cluster.breakdowns):
        # The key's lower half alone is that of the stragglers' draws.
        numbers = np.random.Generator(np.random.Philox(key=seed + (at + 1 << 64)))
        for name in breakdown.names:
            began = _after(numbers, 0, breakdown.every)
            while began < breakdown.within:
                until = _after(numbers, began, breakdown.lasts)
                found.append(Failure(breakdown.kind, name, began, until))
                began = _after(numbers, until, breakdown.every)
    return found


def _after(numbers: np.random.Generator, start: int, mean: int) -> int:
    return start + 1 + round(numbers.exponential(mean))


def schedule_failures(networks: Sequence[Network], seed: int = 1) -> list[tuple[int, int]]:
    """Let everything that the cluster says fail, and come back, at its time.

    What several failures hold down at a time is back when the last of them ends.

    Args:
        networks: of the cluster's rails.
        seed: of what is drawn.

    Returns:
        From when until when, in ps, something is down that comes back.
    """
    held: dict[_Part, list[_Outage]] = {}
    for failure in failures_of(networks[0].cluster, seed):
        for part in _parts(networks, failure):
            held.setdefault(part, []).append((failure.at, failure.until))
    passing = []
    for part, outages in held.items():
        for began, until in _merged(outages):
            _turn(networks, part, began, down=True)
            if until is not None:
                _turn(networks, part, until, down=False)
                passing.append((began, until))
    return passing


def _merged(outages: Sequence[_Outage]) -> list[_Outage]:
    """The same times, in order; those that overlap or touch are one."""
    merged: list[_Outage] = []
    for began, until in sorted(outages, key=lambda outage: outage[0]):
        if not merged or (merged[-1][1] is not None and merged[-1][1] < began):
            merged.append((began, until))
        else:
            first, last = merged[-1]
            merged[-1] = first, None if last is None or until is None else max(last, until)
    return merged


def _turn(networks: Sequence[Network], part: _Part, at: int, *, down: bool) -> None:
    """Schedule that a part stops, or goes on."""
    kind, rail, number = part
    network = networks[rail]
    simulation, cluster = network.simulation, network.cluster
    if kind == "switch":
        simulation.fail_switch(at, number, down)
    elif kind == "line":
        simulation.fail_line(at, number, _SILENT if down else cluster.links.faults)
    elif isinstance(cluster.nic, ProgramModel):
        simulation.fail_program(at, number, down)
    else:
        simulation.fail_host(at, number, down)


def _parts(networks: Sequence[Network], failure: Failure) -> list[_Part]:
    """What stops with a failure."""
    first = networks[0]
    if failure.kind == "switch":
        return [("switch", 0, first.switches[failure.name])]
    if failure.kind == "host":
        return [("host", rail, network.hosts[failure.name]) for rail, network in enumerate(networks)]
    rail, lines = 0, list[int]()
    if failure.kind == "link":
        lines = list(first.host_lines[failure.name])
    elif failure.kind == "trunk":
        link = next(link for link in first.topology.links if trunk_name(link) == failure.name)
        lines = [first.switch_lines[end.switch, end.port] for end in (link.a, link.b)]
    else:
        rail = [each.name for each in first.cluster.rails].index(failure.name)
        lines = [line for both in networks[rail].host_lines.values() for line in both]
    return [("line", rail, line) for line in lines]
