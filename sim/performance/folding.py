"""Folded mode: of hosts that behave alike, the first and the last of each switch stand for all.

Where nothing is lost and nobody straggles, hosts of one switch do the same at the same time, and so do racks under one
spine. A slot is full when the last one's vector has come; a merged heartbeat leaves when the first worker speaks and
when the last one moves the minimum. So the first and the last suffice, and every time is the frame mode's to the
picosecond, with as many events for 4096 hosts as for four.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from catchment.controlplane.topology import Topology
from catchment.sim.performance.cluster import Cluster
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
    if not cluster.alike:
        raise PerformanceError("hosts or links that differ do not behave alike: use --mode frame or flow")
    if straggle.sigma or straggle.slow:
        raise PerformanceError("stragglers do not behave like the others: use --mode frame or flow")


def fold(kind: str, cluster: Cluster) -> Cluster:
    """The cluster with the first and the last host of each switch, and the first and the last rack of a kind.

    Raises:
        PerformanceError: its hosts do not behave alike.
    """
    check_fold(kind, cluster)
    topology = cluster.topology
    kept = _racks(topology)
    racks = {rack: names for rack, names in topology.racks.items() if rack in kept}
    switches = {name: switch for name, switch in topology.switches.items() if topology.rack_of(name) in (None, *racks)}
    hosts = {name: host for name, host in topology.hosts.items() if name.startswith("opt")}
    for switch in switches:
        below = [n for n, host in topology.hosts.items() if host.link.switch == switch and n not in hosts]
        hosts.update({name: topology.hosts[name] for name in _ends(below)})
    for name in switches:
        _check_members(cluster, name)
    links = tuple(link for link in topology.links if link.a.switch in switches and link.b.switch in switches)
    ordered = {name: hosts[name] for name in topology.hosts if name in hosts}
    return replace(cluster, topology=Topology(topology.name, switches, ordered, links, topology.mtu, racks))


def _racks(topology: Topology) -> set[str]:
    """The first and the last rack, of all, of those with one host and of those with several.

    Of a heartbeat's time, a rack with several hosts sends two frames to the spine, a rack with one sends one.
    """
    counts = dict.fromkeys(topology.racks, 0)
    for host in topology.hosts.values():
        rack = topology.rack_of(host.link.switch)
        if rack is not None and not host.name.startswith("opt"):
            counts[rack] += 1
    alone = [rack for rack, count in counts.items() if count == 1]
    several = [rack for rack, count in counts.items() if count > 1]
    return {*_ends(list(counts)), *_ends(alone), *_ends(several)}


def _check_members(cluster: Cluster, switch: str) -> None:
    """See that all that are folded away have room at a switch, too."""
    ports = cluster.topology.ports(switch)
    members = sum(1 for peer in ports.values() if not getattr(peer, "name", "").startswith("opt"))
    if cluster.topology.rack_of(switch) is not None:
        members -= len(cluster.topology.wiring.trunks[switch])
    check_members(cluster.switch, switch, members)


def _ends(names: Sequence[str]) -> list[str]:
    return [names[0], names[-1]] if len(names) > 1 else list(names)
