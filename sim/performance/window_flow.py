"""Sums in switches in flow mode whose window is shorter than the way there and back.

A worker then waits for acknowledgements, which heartbeats bring: how long, no rate says. That is simulated in frames,
of a few windows and with a few hosts that stand for all (folding.py); what is longer goes on at the same rate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from catchment.sim.performance.cluster import Cluster, Node, rack_spine
from catchment.sim.performance.models import PICOS_PER_SECOND
from catchment.sim.performance.network import Network
from catchment.sim.performance.workload import SETTLED, Action, Workload

_WINDOWS = 8
"""Windows that are simulated; the second half of them gives the rate of what follows."""
_ROOT = "opt"


def small_cluster(cluster: Cluster, depth: int, host_byte: int, up_byte: int) -> Cluster:
    """Two hosts at each of one or two switches, and an optimizer node, with lines as slow as these.

    Args:
        depth: switches on the way to the top; of more than two, what the further ones take is in the lines' latency.
    """
    links, pipeline = cluster.links, cluster.switch.pipeline
    racks = [["a", "b"], ["c", "d"]][: min(depth, 2)]
    further = max(0, depth - 2)
    latency = links.latency + further * (links.latency + pipeline) // (len(racks) + 1)
    return replace(
        cluster, topology=rack_spine(racks=racks, spines=len(racks) - 1, above=[_ROOT], slots=cluster.switch.slots),
        links=replace(links, host_byte=host_byte, up_byte=up_byte, latency=latency), node=Node(), nodes={}, rails=(),
    )  # fmt: skip


def window_seconds(cluster: Cluster, slots: int, size: int, *, root: bool) -> float:
    """The time of a message of so many bytes of every host of a small cluster.

    Args:
        root: sums go to the optimizer node, then as many bytes down; else they go to all hosts.
    """
    payload = cluster.switch.vector_bytes
    # What goes down from an optimizer node has the switch's own slots for a window.
    frames, most = -(-size // payload), _WINDOWS * (max(slots, cluster.switch.slots) if root else slots)
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
