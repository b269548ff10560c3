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


def schedule_failures(networks: Sequence[Network], seed: int = 1) -> None:
    """Let everything that the cluster says fail, and come back, at its time.

    Args:
        networks: of the cluster's rails.
        seed: of what is drawn.
    """
    for failure in failures_of(networks[0].cluster, seed):
        for at, down in ((failure.at, True), (failure.until, False)):
            if at is not None:
                _schedule(networks, failure, at, down)


def _schedule(networks: Sequence[Network], failure: Failure, at: int, down: bool) -> None:
    first, simulation = networks[0], networks[0].simulation
    if failure.kind == "switch":
        simulation.fail_switch(at, first.switches[failure.name], down)
    elif failure.kind == "host":
        program = isinstance(first.cluster.nic, ProgramModel)
        stop = simulation.fail_program if program else simulation.fail_host
        for network in networks:
            stop(at, network.hosts[failure.name], down)
    else:
        network, lines = _lines(networks, failure)
        for line in lines:
            simulation.fail_line(at, line, _SILENT if down else network.cluster.links.faults)


def _lines(networks: Sequence[Network], failure: Failure) -> tuple[Network, list[int]]:
    """The network in which lines fail, and which."""
    if failure.kind == "link":
        return networks[0], list(networks[0].host_lines[failure.name])
    if failure.kind == "trunk":
        link = next(link for link in networks[0].topology.links if trunk_name(link) == failure.name)
        return networks[0], [networks[0].switch_lines[end.switch, end.port] for end in (link.a, link.b)]
    names = [rail.name for rail in networks[0].cluster.rails]
    network = networks[names.index(failure.name)]
    return network, [line for both in network.host_lines.values() for line in both]
