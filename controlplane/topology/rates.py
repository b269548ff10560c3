"""Rates of NICs and links, as what keeps the ports of embedded switches to them."""

from __future__ import annotations

from catchment.controlplane.topology.model import Host
from catchment.controlplane.topology.network import Topology

QUEUE_BYTES = 256 * 1024
"""Waits at most in front of a port with a rate."""


def port_faults(topology: Topology, switch: str) -> dict[int, str]:
    """Port -> what keeps it to its rate, as `softswitch --fault` takes it and tells it back; of ports that have one.

    A NIC has its rate in both directions; a link between switches at the end that sends.
    """
    found = {}
    for port, peer in topology.ports(switch).items():
        if isinstance(peer, Host):
            if peer.rate:
                found[port] = f"rate={_kilobits(peer.rate)},queue={QUEUE_BYTES},seed=0"
        elif rate := next(link.rate for link in topology.links if peer in (link.a, link.b)):
            found[port] = f"out.rate={_kilobits(rate)},out.queue={QUEUE_BYTES},seed=0"
    return found


def _kilobits(rate: int) -> str:
    return f"{rate / 1000:.9g}kbit"
