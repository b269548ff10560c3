"""How long a collective of ranks takes on a cluster, in flow mode: within nodes, then between them."""

from __future__ import annotations

from dataclasses import dataclass, field

from catchment.sim.performance.cluster import Cluster
from catchment.sim.performance.errors import PerformanceError
from catchment.sim.performance.flow import FLOWS, FlowModel, on_wire
from catchment.sim.performance.run import workers_of
from catchment.sim.performance.steps.graph import Collective

_HALVES = (Collective.ALL_GATHER, Collective.REDUCE_SCATTER, Collective.REDUCE_SCATTER_BLOCK)
_TO_OR_FROM_ONE = (Collective.REDUCE, Collective.BROADCAST, Collective.GATHER, Collective.SCATTER)


@dataclass(slots=True)
class CollectiveTimes:
    """Times of collectives; rank r is GPU r mod `gpus` of worker r / `gpus`.

    Attributes:
        allreduce: "allreduce", sums in switches, or "ring".
    """

    cluster: Cluster
    allreduce: str = "allreduce"
    _model: FlowModel = field(init=False)
    _workers: list[str] = field(init=False)
    _known: dict[tuple[Collective, tuple[int, ...], int], float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.allreduce not in ("allreduce", "ring"):
            raise PerformanceError(f"an all-reduce by {self.allreduce!r}: allreduce (sums in switches) or ring")
        self._model = FlowModel.of(self.cluster)
        self._workers = workers_of(self.cluster)

    @property
    def ranks(self) -> int:
        """How many ranks the cluster has."""
        return len(self._workers) * self.cluster.node.gpus

    def seconds(self, what: Collective, ranks: tuple[int, ...], size: int) -> float:
        """The time of one.

        Raises:
            PerformanceError: a rank that the cluster has not, or an optimizer node that is missing.
        """
        key = (what, ranks, size)
        if key not in self._known:
            self._known[key] = self._of(what, ranks, size)
        return self._known[key]

    def _of(self, what: Collective, ranks: tuple[int, ...], size: int) -> float:
        gpus = self.cluster.node.gpus
        if ranks and max(ranks) >= self.ranks:
            raise PerformanceError(f"rank {max(ranks)}: the cluster has {self.ranks}, {gpus} a node")
        nodes = [self._workers[at] for at in dict.fromkeys(rank // gpus for rank in ranks)]
        inside = max(1, len(ranks) // len(nodes)) if nodes else 1
        passes = 2 if what is Collective.ALL_REDUCE else 1
        local = passes * (inside - 1) / inside * size / self.cluster.node.scale_up
        if len(nodes) < 2 and what not in _TO_OR_FROM_ONE:
            return local
        return local + self._between(what, nodes, max(1, size))

    def _between(self, what: Collective, nodes: list[str], size: int) -> float:
        if what in (Collective.ALL_REDUCE, Collective.BARRIER):
            return FLOWS[self.allreduce](self._model, nodes, size)
        if what in _HALVES:
            return FLOWS["ring"](self._model, nodes, size) / 2
        if what in _TO_OR_FROM_ONE:
            return FLOWS["luwu"](self._model, nodes, size) / 2
        # All-to-all: each node's line carries all but its own part.
        payload = self.cluster.switch.vector_bytes
        share = on_wire(size * (len(nodes) - 1) // len(nodes), payload)
        return self._model.latency(3, payload) + share * self.cluster.links.host_byte / 1e12
