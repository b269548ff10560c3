"""The lines of a cluster as flow mode sees them, and how long messages take on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from catchment.controlplane.jobs.tree import Branch
from catchment.sim.performance.cluster import Cluster
from catchment.sim.performance.errors import PerformanceError
from catchment.sim.performance.max_min import Flow, Rates, completion_time
from catchment.sim.performance.models import FRAME_OVERHEAD, PICOS_PER_SECOND, NicModel, frame_bytes
from catchment.sim.world import GAP_BYTES

GAP = 12
"""Bytes between frames, behind a frame's last bit."""


Way = tuple[int, ...]
"""Lines by number, in order."""


@dataclass(frozen=True)
class FlowModel:
    """The lines of a cluster, by number, and their rates.

    Attributes:
        byte: the time of a byte on each line, in ps; more where others take a part of it.
        alone: the same of a line that nobody else uses.
        up, down: host -> the line from it, and to it.
        between: (switch, port) -> the line that leaves there.
        slots: of a job whose switches add, which are its window.
    """

    cluster: Cluster
    byte: tuple[float, ...]
    alone: tuple[int, ...]
    up: dict[str, int]
    down: dict[str, int]
    between: dict[tuple[str, int], int]
    slots: int

    @classmethod
    def of(cls, cluster: Cluster, slots: int | None = None) -> FlowModel:
        """The lines of a cluster; `slots`: of a job, None: what the switch has."""
        topology = cluster.topology
        up = {name: at for at, name in enumerate(topology.hosts)}
        down = {name: len(up) + at for at, name in enumerate(topology.hosts)}
        ends = [end for link in topology.links for end in (link.a, link.b)]
        between = {(end.switch, end.port): 2 * len(up) + at for at, end in enumerate(ends)}
        of_hosts = [cluster.host_byte(name) for name in topology.hosts]
        of_trunks = [cluster.trunk_byte(link) for link in topology.links for _ in (link.a, link.b)]
        lines = (*of_hosts, *of_hosts, *of_trunks)
        return cls(cluster, lines, lines, up, down, between, slots or cluster.switch.slots)

    @cached_property
    def capacity(self) -> Rates:
        """Bytes a second of each line."""
        return PICOS_PER_SECOND / np.array(self.byte, float)

    @property
    def nic(self) -> NicModel:
        """The NIC of every host.

        Raises:
            PerformanceError: endpoints are software.
        """
        if not isinstance(self.cluster.nic, NicModel):
            raise PerformanceError("flow mode knows no endpoints in software: use --mode frame")
        return self.cluster.nic

    def upwards(self, tree: Sequence[Branch], hosts: Sequence[str]) -> list[int]:
        """The lines of a tree from these hosts to its top."""
        lines = [self.up[host] for host in hosts]
        return lines + [self.between[b.switch, b.up_port] for b in tree if b.parent and b.up_port is not None]

    def downwards(self, tree: Sequence[Branch], hosts: Sequence[str]) -> list[int]:
        """The lines of a tree from its top to these hosts."""
        lines = [self.down[host] for host in hosts]
        return lines + [self.between[b.parent.switch, b.parent.port] for b in tree if b.parent]

    def climbs(self, tree: Sequence[Branch], hosts: Sequence[str]) -> list[Way]:
        """The lines of each of these hosts' way to the top of a tree, in order."""
        above: dict[str, Way] = {}
        for branch in tree:  # top first
            above[branch.switch] = ()
            if branch.parent and branch.up_port is not None:
                above[branch.switch] = (self.between[branch.switch, branch.up_port], *above[branch.parent.switch])
        return [(self.up[host], *above[self.cluster.topology.hosts[host].link.switch]) for host in hosts]

    def descents(self, tree: Sequence[Branch], hosts: Sequence[str]) -> list[Way]:
        """The same from the top of a tree to each of these hosts."""
        above: dict[str, Way] = {}
        for branch in tree:
            up = branch.parent
            above[branch.switch] = (*above[up.switch], self.between[up.switch, up.port]) if up else ()
        return [(*above[self.cluster.topology.hosts[host].link.switch], self.down[host]) for host in hosts]

    def latency(self, payload: int, *legs: Sequence[Way]) -> float:
        """Seconds of a message's first frame over legs, one behind the other, each of them as slow as its slowest way.

        Between two lines, and between two legs, is a switch, at both ends a NIC.
        """
        nic, links, pipeline = self.nic, self.cluster.links, self.cluster.switch.pipeline
        frame = frame_bytes(payload) - GAP

        def picos(way: Way) -> int:
            return len(way) * (links.latency + pipeline) + frame * sum(self.alone[line] for line in way)

        over = sum(max(map(picos, ways)) for ways in legs) - pipeline
        return (nic.push + nic.respond + nic.pull + over) / PICOS_PER_SECOND

    def slowest(self, *ways: Way) -> float:
        """The time of a byte on the slowest line of some ways; 0: there is none."""
        return max((self.byte[line] for way in ways for line in way), default=0)

    def waits(self, window: int, payload: int, switches: int, byte: float, size: int) -> bool:
        """Whether a message may wait for its window: so many frames take less time than four times the way and back."""
        nic, links, frame = self.nic, self.cluster.links, frame_bytes(payload) * byte
        way = (switches + 1) * (links.latency + frame) + switches * self.cluster.switch.pipeline + nic.respond
        return window * payload < size and window * frame < 8 * way

    def seconds(self, flows: Sequence[Flow], latency: float, payload: int) -> float:
        """The time of messages that begin together; the first frame of each is in the latency."""
        first = frame_bytes(payload)
        return latency + completion_time([Flow(f.lines, max(0.0, f.size - first)) for f in flows], self.capacity)


def on_wire(size: int, payload: int) -> float:
    """Bytes that a message takes on a line."""
    return float(max(1, -(-size // payload)) * (payload + FRAME_OVERHEAD + GAP_BYTES))
