"""Topologies on this machine: network namespaces, veth links, switch processes (docs/howto/mininet.md)."""

from catchment.controlplane.networks.state import NetworkError
from catchment.sim.lab.mininet.dependency import enable

enable()

from catchment.sim.lab.mininet.network import MininetNetwork  # noqa: E402  Mininet must be on the path first

__all__ = ["MininetNetwork", "NetworkError"]
