"""Topology files: switches, hosts and links (see docs/control-plane.md)."""

from controlplane.topology.build import racks, star
from controlplane.topology.errors import TopologyError
from controlplane.topology.model import AUTO_ADDRESS, Host, Link, PortRef, Switch, Target
from controlplane.topology.network import Topology

__all__ = [
    "AUTO_ADDRESS",
    "Host",
    "Link",
    "PortRef",
    "Switch",
    "Target",
    "Topology",
    "TopologyError",
    "racks",
    "star",
]
