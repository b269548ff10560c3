"""Topologies on this machine: network namespaces, veth links, switch processes (docs/mininet.md)."""

from controlplane.networks import NetworkError
from sim.mininet.dependency import enable

enable()

from sim.mininet.network import MininetNetwork  # noqa: E402  Mininet must be on the path first

__all__ = ["MininetNetwork", "NetworkError"]
