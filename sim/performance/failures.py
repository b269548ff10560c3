"""Failures of a cluster, at their times."""

from __future__ import annotations

from collections.abc import Sequence

from catchment.sim.performance.cluster import Failure
from catchment.sim.performance.models import ProgramModel
from catchment.sim.performance.network import Network
from catchment.sim.world import Faults

_SILENT = Faults(loss=1.0)


def schedule_failures(networks: Sequence[Network]) -> None:
    """Let everything that the cluster says fail, and come back, at its time; `networks`: of its rails."""
    for failure in networks[0].cluster.failures:
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
    names = [rail.name for rail in networks[0].cluster.rails]
    network = networks[names.index(failure.name)]
    return network, [line for both in network.host_lines.values() for line in both]
