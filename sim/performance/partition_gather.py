"""All-gathers of a partition group between nodes: in one ring, and in two stages (MiCS, section 3.3).

A node is a rack of hosts, each a device with a line of its own, so that what leaves the rack's switch upwards is what
the node sends to others: frames of the frame mode, counted on the lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from catchment.sim.performance.baselines import PAYLOAD, Ends, Hop, ring_gather, ring_hops
from catchment.sim.performance.cluster import Cluster, rack_spine
from catchment.sim.performance.errors import PerformanceError
from catchment.sim.performance.models import FRAME_OVERHEAD, LinkModel
from catchment.sim.performance.network import Network
from catchment.sim.performance.workload import SETTLED, Action, Workload
from catchment.wire.generated.constants import PacketType

_CHUNK = 64 * PAYLOAD
_LINKS = LinkModel(up_byte=LinkModel().host_byte // 8)
"""A node's link is no slower than eight of its devices', so that timeouts find nothing that is merely late."""


@dataclass(frozen=True, slots=True)
class Sent:
    """Bytes of frames, with their headers, that the busiest node sends to others.

    Attributes:
        data: of chunks, those that were sent again included.
        everything: acknowledgements and heartbeats of what the node receives included.
    """

    data: int
    everything: int


def sent_between_nodes(devices: int, node_size: int, *, staged: bool, chunk: int = _CHUNK) -> Sent:
    """Simulate the gather of `devices` chunks in a group, and count.

    Args:
        devices: of the partition group, p.
        node_size: devices of each node, k.
        staged: along the lanes first, then inside each node; else in one ring.
        chunk: bytes of each device's part.

    Raises:
        PerformanceError: nodes do not divide the group, or there is one alone.
    """
    if node_size < 1 or devices % node_size or devices // node_size < 2:
        raise PerformanceError(f"{devices} devices are no two or more whole nodes of {node_size}")
    nodes = [[f"n{node}d{lane}" for lane in range(node_size)] for node in range(devices // node_size)]
    cluster = Cluster(rack_spine(racks=nodes, spines=1), links=_LINKS)
    network, workload = Network(cluster), Workload()
    settled = workload.add(Action.DELAY, amount=SETTLED)
    if staged:
        # Hops exist before anything runs: a stream begins with the simulation.
        lanes = [ring_hops(network, lane) for lane in zip(*nodes, strict=True)]
        inside = [ring_hops(network, node) for node in nodes] if node_size > 1 else []
        _two_stages(workload, lanes, inside, chunk, settled)
    else:
        hops = ring_hops(network, [device for node in nodes for device in node])
        ring_gather(hops, workload, chunk, [[settled] for _ in hops])
    workload.run(network)
    counts = [network.simulation.line(network.switch_lines[f"r{node}", node_size + 1]) for node in range(len(nodes))]
    data = max(line["frames"].get(int(PacketType.PARAM), 0) for line in counts)
    return Sent(data * (FRAME_OVERHEAD + PAYLOAD), max(line["bytes"] for line in counts))


def _two_stages(
    workload: Workload, lanes: Sequence[Sequence[Hop]], inside: Sequence[Sequence[Hop]], chunk: int, settled: int
) -> None:
    """Each lane gathers one device's chunk of every node; then each node what its lanes have."""
    have: list[Ends] = [ring_gather(hops, workload, chunk, [[settled] for _ in hops]) for hops in lanes]
    for node, hops in enumerate(inside):
        ring_gather(hops, workload, chunk * len(inside), [own[node] for own in have])
