"""The streams on which groups of ranks exchange what they have, in frame mode: each group's own, made when needed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from catchment.sim.performance import baselines
from catchment.sim.performance.baselines import Ends, Hop
from catchment.sim.performance.errors import PerformanceError
from catchment.sim.performance.network import Network, Stream
from catchment.sim.performance.steps.graph import Collective
from catchment.sim.performance.steps.times import HALVES
from catchment.sim.performance.workload import Workload

_SUMS = (Collective.ALL_REDUCE, Collective.BARRIER)
_UP, _DOWN = (Collective.REDUCE, Collective.GATHER), (Collective.BROADCAST, Collective.SCATTER)
_ROOT = "opt"

Ranks = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Between:
    """A collective of these ranks between their nodes, of so many bytes."""

    what: Collective
    size: int
    ranks: Ranks
    nodes: tuple[str, ...]


@dataclass(slots=True)
class Wires:
    """What carries the collectives of groups.

    Attributes:
        allreduce: "allreduce", sums in switches, or "ring".
    """

    network: Network
    allreduce: str
    _streams: dict[tuple[str, Ranks], Stream] = field(default_factory=dict)
    _hops: dict[Ranks, list[Hop]] = field(default_factory=dict)

    def carrier(self, what: Collective) -> str:
        """What carries a collective of a group: its collectives on one carrier follow one another.

        Raises:
            PerformanceError: the collective has no frames.
        """
        if what in _UP:
            return "up"
        if what in _DOWN:
            return "down"
        if what in _SUMS and self.allreduce == "allreduce":
            return "sums"
        if what not in (*_SUMS, *HALVES):
            raise PerformanceError(f"{what} has no frames: use --mode flow")
        return "ring"

    def carry(self, workload: Workload, between: Between, starts: Ends) -> Ends:
        """Add a collective: what each node waits for -> what it is over after.

        Raises:
            PerformanceError: it does not fit the switches.
        """
        what, size, ranks, nodes = between.what, between.size, between.ranks, between.nodes
        carrier = self.carrier(what)
        if carrier == "up":
            up = self._stream(carrier, ranks, lambda: self.network.reduce(nodes, self._root()))
            return [workload.transfer(up, size, each_after=starts)[1]] * len(nodes)
        if carrier == "down":
            down = self._stream(carrier, ranks, lambda: self.network.broadcast(self._root(), nodes))
            everybody = sorted({first for start in starts for first in start})
            return [[pull] for pull in workload.transfer(down, size, everybody)[1]]
        if carrier == "sums":
            stream = self._stream(carrier, ranks, lambda: self.network.allreduce(nodes))
            return [[pull] for pull in workload.transfer(stream, size, each_after=starts)[1]]
        if ranks not in self._hops:
            self._hops[ranks] = baselines.ring_hops(self.network, nodes)
        if what in _SUMS:
            return baselines.ring(self._hops[ranks], workload, size, starts)
        return baselines.ring_gather(self._hops[ranks], workload, -(-size // len(nodes)), starts)

    def _stream(self, kind: str, ranks: Ranks, make: Callable[[], Stream]) -> Stream:
        if (kind, ranks) not in self._streams:
            self._streams[kind, ranks] = make()
            adding = sum(1 for other, _ in self._streams if other != "down")
            self.network.cluster.check_slots(self.network.cluster.switch.slots, max(1, adding))
        return self._streams[kind, ranks]

    def _root(self) -> str:
        if _ROOT not in self.network.hosts:
            raise PerformanceError(
                "reductions and broadcasts need an optimizer node: a host `opt`, or `fabric.optimizers: 1`"
            )
        return _ROOT
