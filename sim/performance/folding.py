"""Folded mode: of hosts that behave alike, the first and the last of each switch stand for all.

Where nothing is lost and no time is drawn, hosts of one kind at one switch do the same at the same time, and so do
racks of one kind under one spine. A slot is full when the last one's vector has come; a merged heartbeat leaves when
the first worker speaks and when the last one moves the minimum. So the first and the last of each kind suffice, and
every time is the frame mode's to the picosecond, with as many events for 4096 hosts as for four.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import fields, replace

from catchment.controlplane.topology import Topology
from catchment.sim.performance.cluster import Cluster, Node
from catchment.sim.performance.errors import PerformanceError
from catchment.sim.performance.models import ProgramModel
from catchment.sim.performance.planning import check_members

FOLDS = ("allreduce", "luwu")
"""Collectives in which every host does the same."""


def check_fold(kind: str, cluster: Cluster) -> None:
    """See that hosts behave alike.

    Raises:
        PerformanceError: they do not; why.
    """
    if kind not in FOLDS:
        raise PerformanceError(f"folded mode has no {kind!r}; it has {', '.join(FOLDS)}: use --mode frame or flow")
    troubles, straggle = cluster.links.faults, cluster.node.straggle
    if cluster.fails or troubles.loss or troubles.duplicate or troubles.reorder:
        raise PerformanceError("hosts with faults or failures do not behave alike: use --mode frame")
    if isinstance(cluster.nic, ProgramModel):
        raise PerformanceError("endpoints in software have timers of their own: use --mode frame")
    if straggle.sigma:
        raise PerformanceError("hosts whose times are drawn do not behave alike: use --mode frame or flow")


def fold(kind: str, cluster: Cluster) -> Cluster:
    """The cluster with the first and the last host of each kind at each switch, and the first and the last such rack.

    Raises:
        PerformanceError: its hosts do not behave alike.
    """
    check_fold(kind, cluster)
    topology = cluster.topology
    for name in topology.switches:
        _check_members(cluster, name)
    hosts = {name for name in topology.hosts if name.startswith("opt")}
    hosts.update(name for below in _below(topology).values() for name in _ends_of_kinds(cluster, below))
    kept = _racks(cluster, hosts)
    racks = {rack: names for rack, names in topology.racks.items() if rack in kept}
    switches = {name: switch for name, switch in topology.switches.items() if topology.rack_of(name) in (None, *racks)}
    links = tuple(link for link in topology.links if link.a.switch in switches and link.b.switch in switches)
    ordered = {n: host for n, host in topology.hosts.items() if n in hosts and host.link.switch in switches}
    return replace(cluster, topology=Topology(topology.name, switches, ordered, links, topology.mtu, racks))


def weights(cluster: Cluster, folded: Cluster) -> dict[str, float]:
    """How many hosts each worker of the folded cluster stands for."""
    alike = Counter(host_kind(cluster, name) for name in _workers(cluster))
    left = Counter(host_kind(cluster, name) for name in _workers(folded))
    return {name: alike[kind] / left[kind] for name in _workers(folded) for kind in [host_kind(cluster, name)]}


def host_kind(cluster: Cluster, name: str) -> Hashable:
    """Equal for hosts that are the same, and compute as long."""
    node = cluster.node_of(name)
    of_node = tuple(getattr(node, each.name) for each in fields(Node) if each.name != "straggle")
    return cluster.topology.hosts[name].rate, cluster.node.straggle.slow.get(name, 1.0), of_node


def _workers(cluster: Cluster) -> list[str]:
    return [name for name in cluster.hosts if not name.startswith("opt")]


def _below(topology: Topology) -> dict[str, list[str]]:
    """Switch -> its workers."""
    below: dict[str, list[str]] = {name: [] for name in topology.switches}
    for name, host in topology.hosts.items():
        if not name.startswith("opt"):
            below[host.link.switch].append(name)
    return below


def _ends_of_kinds(cluster: Cluster, names: Sequence[str]) -> list[str]:
    kinds: dict[Hashable, list[str]] = {}
    for name in names:
        kinds.setdefault(host_kind(cluster, name), []).append(name)
    return [name for alike in kinds.values() for name in _ends(alike)]


def _racks(cluster: Cluster, hosts: set[str]) -> set[str]:
    """The first and the last rack, of all and of each kind; `hosts`: that stand for those of their switch.

    Racks are of one kind when the hosts that are left are, in their order, and the links upwards. So a rack of one host
    is never like one of several: of a heartbeat's time, it sends one frame to the spine, the other two.
    """
    topology = cluster.topology
    members: dict[str, list[Hashable]] = {rack: [] for rack in topology.racks}
    for name, host in topology.hosts.items():
        rack = topology.rack_of(host.link.switch)
        if rack is not None and name in hosts and not name.startswith("opt"):
            members[rack].append((topology.racks[rack].index(host.link.switch), host_kind(cluster, name)))
    for link in topology.links:
        for end, other in ((link.a, link.b), (link.b, link.a)):
            rack = topology.rack_of(end.switch)
            if rack is not None:
                members[rack].append((topology.racks[rack].index(end.switch), other.switch, link.rate))
    kinds: dict[Hashable, list[str]] = {}
    for rack, kind in members.items():
        kinds.setdefault(tuple(kind), []).append(rack)
    return {*_ends(list(members)), *(rack for alike in kinds.values() for rack in _ends(alike))}


def _check_members(cluster: Cluster, switch: str) -> None:
    """See that all that are folded away have room at a switch, too."""
    ports = cluster.topology.ports(switch)
    members = sum(1 for peer in ports.values() if not getattr(peer, "name", "").startswith("opt"))
    if cluster.topology.rack_of(switch) is not None:
        members -= len(cluster.topology.wiring.trunks[switch])
    check_members(cluster.switch, switch, members)


def _ends(names: Sequence[str]) -> list[str]:
    return [names[0], names[-1]] if len(names) > 1 else list(names)
