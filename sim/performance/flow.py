"""Flow mode: collectives as flows at max-min fair rates, for sweeps over thousands of configurations.

There are no frames: a message takes the latency of its way, and its bytes (with the frames' headers and gaps) the rate
of the slowest line. Losses, windows and retransmissions are the frame mode's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from catchment.controlplane.jobs.tree import Branch
from catchment.sim.performance.baselines import PAYLOAD
from catchment.sim.performance.cluster import Cluster
from catchment.sim.performance.errors import PerformanceError
from catchment.sim.performance.max_min import Flow, Rates, completion_time, fair_rates
from catchment.sim.performance.models import FRAME_OVERHEAD, PICOS_PER_SECOND, ProgramModel, frame_bytes
from catchment.sim.performance.planning import path_tree, sums_tree
from catchment.sim.world import GAP_BYTES

GAP = 12
"""Bytes between frames, behind a frame's last bit."""


@dataclass(frozen=True, slots=True)
class FlowModel:
    """The lines of a cluster, by number, and their rates.

    Attributes:
        up, down: host -> the line from it, and to it.
        between: (switch, port) -> the line that leaves there.
    """

    cluster: Cluster
    capacity: Rates
    up: dict[str, int]
    down: dict[str, int]
    between: dict[tuple[str, int], int]

    @classmethod
    def of(cls, cluster: Cluster) -> FlowModel:
        """The lines of a cluster."""
        topology = cluster.topology
        up = {name: at for at, name in enumerate(topology.hosts)}
        down = {name: len(up) + at for at, name in enumerate(topology.hosts)}
        ends = [end for link in topology.links for end in (link.a, link.b)]
        between = {(end.switch, end.port): 2 * len(up) + at for at, end in enumerate(ends)}
        of_hosts = [cluster.host_byte(name) for name in topology.hosts]
        of_trunks = [cluster.trunk_byte(link) for link in topology.links for _ in (link.a, link.b)]
        picos = np.array([*of_hosts, *of_hosts, *of_trunks], float)
        return cls(cluster, PICOS_PER_SECOND / picos, up, down, between)

    def upwards(self, tree: Sequence[Branch], hosts: Sequence[str]) -> list[int]:
        """The lines of a tree from these hosts to its top."""
        lines = [self.up[host] for host in hosts]
        return lines + [self.between[b.switch, b.up_port] for b in tree if b.parent and b.up_port is not None]

    def downwards(self, tree: Sequence[Branch], hosts: Sequence[str]) -> list[int]:
        """The lines of a tree from its top to these hosts."""
        lines = [self.down[host] for host in hosts]
        return lines + [self.between[b.parent.switch, b.parent.port] for b in tree if b.parent]

    def latency(self, switches: int, payload: int, hosts: Sequence[str]) -> float:
        """Seconds of a message's first frame through so many switches, NICs at both ends included.

        Frames take as long on every line as on the slowest of these hosts'.
        """
        nic, links = self.cluster.nic, self.cluster.links
        if isinstance(nic, ProgramModel):
            raise PerformanceError("flow mode knows no endpoints in software: use --mode frame")
        frame = (frame_bytes(payload) - GAP) * self.cluster.host_byte(*hosts)
        way = (switches + 1) * (links.latency + frame) + switches * self.cluster.switch.pipeline
        return (nic.push + nic.respond + nic.pull + way) / PICOS_PER_SECOND

    def seconds(self, flows: Sequence[Flow], latency: float, payload: int) -> float:
        """The time of messages that begin together; the first frame of each is in the latency."""
        first = frame_bytes(payload)
        return latency + completion_time([Flow(f.lines, max(0.0, f.size - first)) for f in flows], self.capacity)


def on_wire(size: int, payload: int) -> float:
    """Bytes that a message takes on a line."""
    return float(max(1, -(-size // payload)) * (payload + FRAME_OVERHEAD + GAP_BYTES))


def _depth(tree: Sequence[Branch]) -> int:
    parents = {b.switch: b.parent.switch if b.parent else None for b in tree}
    deepest = 0
    for switch in parents:
        at: str | None = switch
        hops = 0
        while at is not None:
            at, hops = parents[at], hops + 1
        deepest = max(deepest, hops)
    return deepest


def _allreduce(model: FlowModel, workers: Sequence[str], size: int) -> float:
    tree = sums_tree(model.cluster, workers, None)
    payload = model.cluster.switch.vector_bytes
    lines = (*model.upwards(tree, workers), *model.downwards(tree, workers))
    latency = model.latency(2 * _depth(tree) - 1, payload, workers)
    return model.seconds([Flow(lines, on_wire(size, payload))], latency, payload)


def _luwu(model: FlowModel, workers: Sequence[str], size: int) -> float:
    if "opt" not in model.up:
        raise PerformanceError("LuWu needs an optimizer node: a host `opt` in the topology, or `fabric.optimizers: 1`")
    tree = sums_tree(model.cluster, workers, "opt")
    payload = model.cluster.switch.vector_bytes
    bytes_, latency = on_wire(size, payload), model.latency(_depth(tree), payload, [*workers, "opt"])
    up = Flow((*model.upwards(tree, workers), model.down["opt"]), bytes_)
    down = Flow((*model.downwards(tree, workers), model.up["opt"]), bytes_)
    return model.seconds([up], latency, payload) + model.seconds([down], latency, payload)


def _ring(model: FlowModel, workers: Sequence[str], size: int) -> float:
    """Each host passes a chunk on when it has it and has passed on the one before; hops differ."""
    count = len(workers)
    if count < 2:
        raise PerformanceError("a ring needs two hosts")
    chunk = on_wire(-(-size // count), PAYLOAD)
    trees = [path_tree(model.cluster.topology, host, workers[(at + 1) % count], at) for at, host in enumerate(workers)]
    flows = [
        Flow((model.up[host], *model.downwards(trees[at], [workers[(at + 1) % count]])), chunk)
        for at, host in enumerate(workers)
    ]
    takes = chunk / fair_rates(flows, model.capacity)
    first = frame_bytes(PAYLOAD) / chunk
    ways = [(host, workers[(at + 1) % count]) for at, host in enumerate(workers)]
    latency = np.array([model.latency(len(tree), PAYLOAD, way) for tree, way in zip(trees, ways, strict=True)])
    latency -= takes * first
    free = np.zeros(count)
    has = np.zeros(count)
    for _ in range(2 * (count - 1)):
        free = np.maximum(has, free) + takes
        has = np.roll(free + latency, 1)
    return float(has.max())


FLOWS: dict[str, Callable[[FlowModel, Sequence[str], int], float]] = {
    "allreduce": _allreduce, "luwu": _luwu, "ring": _ring,
}  # fmt: skip
"""What flow mode knows: collective -> seconds of one, of so many bytes."""


def flow_seconds(kind: str, cluster: Cluster, workers: Sequence[str], size: int) -> float:
    """The time of one collective of `FLOWS`.

    Raises:
        PerformanceError: it does not fit the cluster.
    """
    return FLOWS[kind](FlowModel.of(cluster), workers, size)
