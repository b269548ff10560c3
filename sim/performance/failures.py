"""Failures of a cluster, at their times."""

from __future__ import annotations

from catchment.sim.performance.models import ProgramModel
from catchment.sim.performance.network import Network
from catchment.sim.world import Faults

_SILENT = Faults(loss=1.0)


def schedule_failures(network: Network) -> None:
    """Let everything that the cluster says fail, and come back, at its time."""
    simulation, links = network.simulation, network.cluster.links
    for failure in network.cluster.failures:
        for at, down in ((failure.at, True), (failure.until, False)):
            if at is None:
                continue
            if failure.kind == "switch":
                simulation.fail_switch(at, network.switches[failure.name], down)
            elif failure.kind == "host":
                program = isinstance(network.cluster.nic, ProgramModel)
                stop = simulation.fail_program if program else simulation.fail_host
                stop(at, network.hosts[failure.name], down)
            else:
                for line in network.host_lines[failure.name]:
                    simulation.fail_line(at, line, _SILENT if down else links.faults)
