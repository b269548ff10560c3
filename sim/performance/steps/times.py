"""How long a collective of ranks takes on a cluster, in flow mode: within nodes, then between them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from catchment.sim.performance.cluster import Cluster
from catchment.sim.performance.errors import PerformanceError
from catchment.sim.performance.flow import FLOWS
from catchment.sim.performance.flow_lines import FlowModel, on_wire
from catchment.sim.performance.models import PICOS_PER_SECOND
from catchment.sim.performance.steps.graph import Collective
from catchment.sim.performance.steps.ranks import rank_hosts

HALVES = (Collective.ALL_GATHER, Collective.REDUCE_SCATTER, Collective.REDUCE_SCATTER_BLOCK)
TO_OR_FROM_ONE = (Collective.REDUCE, Collective.BROADCAST, Collective.GATHER, Collective.SCATTER)


@dataclass(slots=True)
class CollectiveTimes:
    """Times of collectives of ranks, and what they send.

    Groups that have only some GPUs of a node share its line with those of the node's other GPUs, which do the same at
    the same time: MiCS' replication groups (docs/explanation/mics.md).

    Attributes:
        allreduce: "allreduce", sums in switches, or "ring".
    """

    cluster: Cluster
    allreduce: str = "allreduce"
    _model: FlowModel = field(init=False)
    _hosts: tuple[str, ...] = field(init=False)
    _known: dict[tuple[Collective, tuple[int, ...], int], float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.allreduce not in ("allreduce", "ring"):
            raise PerformanceError(f"an all-reduce by {self.allreduce!r}: allreduce (sums in switches) or ring")
        self._model = FlowModel.of(self.cluster)
        self._hosts = rank_hosts(self.cluster)

    @property
    def ranks(self) -> int:
        """How many ranks the cluster has."""
        return len(self._hosts)

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
        if ranks and max(ranks) >= self.ranks:
            raise PerformanceError(f"rank {max(ranks)}: the cluster has {self.ranks}")
        inside = Counter(self._hosts[rank] for rank in ranks)
        nodes = list(inside)
        local = max((self.inside(what, name, count, size) for name, count in inside.items()), default=0.0)
        if len(nodes) < 2 and what not in TO_OR_FROM_ONE:
            return local
        sharing = max((self.cluster.node_of(name).gpus / count for name, count in inside.items()), default=1.0)
        return local + self._between(what, nodes, max(1, round(size * sharing)))

    def inside(self, what: Collective, host: str, count: int, size: int) -> float:
        """The time that so many ranks of a node take among themselves."""
        passes = 2 if what is Collective.ALL_REDUCE else 1
        return passes * (count - 1) / count * size / self.cluster.node_of(host).scale_up

    def sent(self, what: Collective, ranks: tuple[int, ...], size: int) -> float:
        """Bytes that one of these collectives sends on the line of each node that it spans, headers left out.

        Of reductions and broadcasts it is what workers send: `size` up, nothing down.
        """
        nodes = len({self._hosts[rank] for rank in ranks})
        if what in (Collective.REDUCE, Collective.GATHER):
            return float(size)
        if nodes < 2 or what in (Collective.BROADCAST, Collective.SCATTER):
            return 0.0
        if what is Collective.ALL_REDUCE and self.allreduce == "allreduce":
            return float(size)
        passes = 2 if what is Collective.ALL_REDUCE else 1
        return passes * (nodes - 1) / nodes * size

    def sent_of_rank(self, rank: int, what: Collective, ranks: tuple[int, ...], size: int) -> float:
        """The same for one rank: its share of what its node sends for these ranks."""
        beside = sum(self._hosts[other] == self._hosts[rank] for other in ranks)
        return self.sent(what, ranks, size) / beside

    def _between(self, what: Collective, nodes: list[str], size: int) -> float:
        if what in (Collective.ALL_REDUCE, Collective.BARRIER):
            return FLOWS[self.allreduce](self._model, nodes, size)
        if what in HALVES:
            return FLOWS["ring"](self._model, nodes, size) / 2
        if what in TO_OR_FROM_ONE:
            return FLOWS["luwu"](self._model, nodes, size) / 2
        # All-to-all: each node's line carries all but its own part.
        payload = self.cluster.switch.vector_bytes
        share = on_wire(size * (len(nodes) - 1) // len(nodes), payload)
        return self._model.latency(3, payload, nodes) + share * self.cluster.host_byte(*nodes) / PICOS_PER_SECOND
