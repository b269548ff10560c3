"""Sums in switches in flow mode whose window is shorter than the way there and back.

A worker then waits for acknowledgements, which heartbeats bring: how long, no rate says. That is simulated in frames,
of a few windows and with a few hosts that stand for all (folding.py); what is longer goes on at the same rate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from catchment.sim.performance.cluster import Cluster, Node, rack_spine
from catchment.sim.performance.models import PICOS_PER_SECOND
from catchment.sim.performance.network import Network
from catchment.sim.performance.workload import SETTLED, Action, Workload

_WINDOWS = 8
"""Windows that are simulated; the second half of them gives the rate of what follows."""
_LEAST = 1024
"""Frames that are simulated at least: heartbeats and short windows meet only now and then."""
_ROOT = "opt"


@dataclass(frozen=True, slots=True)
class Slowest:
    """The time of a byte on lines of a tree, in ps.

    Attributes:
        host, up: on the line of a host, and on the slowest between its switch and the top; of one switch, 0.
    """

    host: float
    up: float


def small_cluster(cluster: Cluster, depth: int, racks: Sequence[Slowest], fast: float, root: float) -> Cluster:
    """A few hosts at each of one or two switches, and an optimizer node, with lines as slow as these.

    The first host has the fastest line: it speaks first, and two others, which are as slow as the slowest, last.

    Args:
        depth: switches on the way to the top; of more than two, what the further ones take is in the lines' latency.
        racks: one for each switch with hosts.
        fast, root: the time of a byte on the fastest host's line, and on the optimizer node's, in ps.
    """
    links, pipeline = cluster.links, cluster.switch.pipeline
    names = [[f"r{at}{host}" for host in "abc"] for at in range(len(racks))]
    further = max(0, depth - 2)
    latency = links.latency + further * (links.latency + pipeline) // (len(racks) + 1)
    topology = rack_spine(racks=names, spines=len(racks) - 1, above=[_ROOT], slots=cluster.switch.slots)
    byte = {_ROOT: root}
    for rack, (first, *others) in zip(racks, names, strict=True):
        byte |= {first: fast} | dict.fromkeys(others, rack.host)
    hosts = {name: replace(host, rate=_rate(byte[name])) for name, host in topology.hosts.items()}
    trunks = tuple(replace(link, rate=_rate(rack.up)) for link, rack in zip(topology.links, racks, strict=False))
    return replace(
        cluster, topology=replace(topology, hosts=hosts, links=trunks), links=replace(links, latency=latency),
        node=Node(), nodes={}, rails=(),
    )  # fmt: skip


def _rate(byte: float) -> int:
    """Bits a second of a line on which a byte takes so long."""
    return round(8 * PICOS_PER_SECOND / round(byte))


def window_seconds(cluster: Cluster, slots: int, size: int, *, root: bool) -> float:
    """The time of a message of so many bytes of every host of a small cluster.

    Args:
        root: sums go to the optimizer node, then as many bytes down; else they go to all hosts.
    """
    payload = cluster.switch.vector_bytes
    # What goes down from an optimizer node has the switch's own slots for a window.
    window = max(slots, cluster.switch.slots) if root else slots
    frames, most = -(-size // payload), max(_LEAST, _WINDOWS * window)
    workers = [name for name in cluster.hosts if name != _ROOT]
    if frames <= most:
        return _in_frames(cluster, workers, slots, frames * payload, root=root)
    half, whole = (_in_frames(cluster, workers, slots, each * payload, root=root) for each in (most // 2, most))
    return whole + (frames - most) * (whole - half) / (most - most // 2)


def _in_frames(cluster: Cluster, workers: Sequence[str], slots: int, size: int, *, root: bool) -> float:
    network, workload = Network(cluster), Workload()
    network.simulation.carry_trains()
    settled = workload.add(Action.DELAY, amount=SETTLED)
    starts = [[settled] for _ in workers]
    if root:
        _, sums = workload.transfer(network.reduce(workers, _ROOT, slots=slots), size, each_after=starts)
        _, pulls = workload.transfer(network.broadcast(_ROOT, workers), size, sums)
    else:
        _, pulls = workload.transfer(network.allreduce(workers, slots=slots), size, each_after=starts)
    over = workload.add(Action.JOIN, after=pulls)
    times = workload.run(network)
    return float(times[over, 1] - times[settled, 1]) / PICOS_PER_SECOND
