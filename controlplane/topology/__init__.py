"""Topology files: switches, hosts and links (see docs/reference/topology.md)."""

from catchment.controlplane.topology.build import racks, star
from catchment.controlplane.topology.errors import TopologyError
from catchment.controlplane.topology.model import AUTO_ADDRESS, BY_PORTS, Host, Link, PortRef, Ring, Switch, Target
from catchment.controlplane.topology.network import Topology

__all__ = [
    "AUTO_ADDRESS",
    "BY_PORTS",
    "Host",
    "Link",
    "PortRef",
    "Ring",
    "Switch",
    "Target",
    "Topology",
    "TopologyError",
    "racks",
    "star",
]
