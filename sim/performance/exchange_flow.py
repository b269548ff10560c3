"""All-to-alls in flow mode: every host sends each other one its part, and the fullest line says how long that takes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise, permutations

import numpy as np

from catchment.sim.performance.errors import PerformanceError
from catchment.sim.performance.flow_lines import FlowModel, on_wire
from catchment.sim.performance.models import PICOS_PER_SECOND
from catchment.sim.performance.planning import middles_between, plan_tree


def exchange_seconds(model: FlowModel, hosts: Sequence[str], size: int) -> float:
    """The time in which each of these hosts sends every other one its part of so many bytes.

    What goes from a switch to another takes all the ways there are over one switch between them, to equal shares.

    Raises:
        PerformanceError: switches of hosts are further apart than over one switch between them.
    """
    topology, payload = model.cluster.topology, model.cluster.switch.vector_bytes
    load = np.zeros(len(model.byte))
    of_host = on_wire(size * (len(hosts) - 1) // len(hosts), payload)
    for host in hosts:
        load[[model.up[host], model.down[host]]] = of_host
    ports = {
        (here, peer.switch): port for here, trunks in topology.wiring.trunks.items() for port, peer in trunks.items()
    }
    below = Counter(topology.hosts[host].link.switch for host in hosts)
    for start, end in permutations(below, 2):
        ways = [(start, *middle, end) for middle in middles_between(topology, start, end)]
        if not ways:
            raise PerformanceError(f"an all-to-all: no switch joins {start} to {end}, on which are some of its hosts")
        sent = below[start] * below[end] * on_wire(size // len(hosts), payload) / len(ways)
        for way in ways:
            for here, there in pairwise(way):
                load[model.between[here, ports[here, there]]] += sent
    tree = plan_tree(topology, hosts, None)
    latency = model.latency(payload, model.climbs(tree, hosts), model.descents(tree, hosts))
    return latency + float((load * np.array(model.byte)).max()) / PICOS_PER_SECOND
