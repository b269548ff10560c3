"""How long a collective of ranks takes on a cluster, in flow mode: within nodes, then between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from catchment.sim.performance.baselines import PAYLOAD, WINDOW
from catchment.sim.performance.cluster import Cluster
from catchment.sim.performance.errors import PerformanceError
from catchment.sim.performance.exchange_flow import exchange_seconds
from catchment.sim.performance.flow import FLOWS, LINES
from catchment.sim.performance.flow_lines import FlowModel
from catchment.sim.performance.models import FRAME_OVERHEAD
from catchment.sim.performance.steps.beside import Beside, Family, Ranks
from catchment.sim.performance.steps.graph import Collective, Kind, Trace
from catchment.sim.performance.steps.ranks import rank_hosts
from catchment.sim.performance.steps.shared_lines import SharedLines

HALVES = (Collective.ALL_GATHER, Collective.REDUCE_SCATTER, Collective.REDUCE_SCATTER_BLOCK)
TO_OR_FROM_ONE = (Collective.REDUCE, Collective.BROADCAST, Collective.GATHER, Collective.SCATTER)


@dataclass(slots=True)
class CollectiveTimes:
    """Times of collectives of ranks, and what they send.

    A group that has only some GPUs of a node shares its line with groups of the node's other GPUs, which do the same at
    the same time, as MiCS' replication groups (docs/explanation/mics.md): those that are known to be beside it, else as
    many as would take all GPUs.

    Attributes:
        allreduce: "allreduce", sums in switches, or "ring".
        beside: group -> the groups that do the same at the same time, and share lines with it.
        slowest: a group's time is that of the slowest of the groups beside it.
    """

    cluster: Cluster
    allreduce: str = "allreduce"
    beside: Beside = field(default_factory=dict)
    slowest: bool = False
    _model: FlowModel = field(init=False)
    _hosts: tuple[str, ...] = field(init=False)
    _known: dict[tuple[Collective, Ranks, int], float] = field(default_factory=dict)
    _families: dict[tuple[int, int], Family] = field(default_factory=dict)
    _shared: dict[tuple[str, Family], SharedLines] = field(default_factory=dict)
    _shapes: dict[tuple[Collective, int, Hashable], float] = field(default_factory=dict)

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
            family = self.beside.get(ranks, ())
            if self.slowest and family:
                self._known |= dict.fromkeys(
                    [(what, group, size) for group in family], max(self._of(what, group, size) for group in family)
                )
            else:
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
        if ranks in self.beside:
            return local + self._beside(what, ranks, nodes, size)
        sharing = max((self.cluster.node_of(name).gpus / count for name, count in inside.items()), default=1.0)
        return local + self._between(self._model, what, nodes, max(1, round(size * sharing)))

    def _beside(self, what: Collective, ranks: Ranks, nodes: list[str], size: int) -> float:
        """The time between nodes, with the groups that share their lines."""
        family = self._family(what, ranks)
        shared = self._lines_of(self._carrier(what), family)
        at = family.index(ranks)
        model = shared.left_for(at)
        shape = shared.shape_of(at, model), self.cluster.host_byte(*nodes), len(nodes)
        if (what, size, shape) not in self._shapes:
            self._shapes[what, size, shape] = self._between(model, what, nodes, max(1, size))
        return self._shapes[what, size, shape]

    def _family(self, what: Collective, ranks: Ranks) -> Family:
        """The groups beside a group that have something to do between nodes."""
        family, least = self.beside.get(ranks, ()), 1 if what in TO_OR_FROM_ONE else 2
        key = id(family), least
        if key not in self._families:
            there = (group for group in family if max(group) < self.ranks)
            self._families[key] = tuple(g for g in there if len({self._hosts[rank] for rank in g}) >= least)
        return self._families[key]

    def _lines_of(self, carrier: str, family: Family) -> SharedLines:
        if (carrier, family) not in self._shared:
            by_nodes: dict[tuple[str, ...], tuple[int, ...]] = {}
            ways, sizes = [], []
            for ranks in family:
                nodes = tuple(dict.fromkeys(self._hosts[rank] for rank in ranks))
                if nodes not in by_nodes:
                    by_nodes[nodes] = LINES[carrier](self._model, nodes)
                ways.append(by_nodes[nodes])
                sizes.append((len(nodes) - 1) / len(nodes) if carrier == "ring" else 1.0)
            shared = SharedLines.of(self._model, ways, sizes)
            shared.check_queues(self._window(carrier))
            self._shared[carrier, family] = shared
        return self._shared[carrier, family]

    def check_queues(self, traces: Sequence[Trace]) -> str | None:
        """See that groups beside one another do not have frames dropped; gives a line in front of which frames wait.

        Raises:
            PerformanceError: frames are dropped; the message names the line.
        """
        asked = {
            (task.collective, trace.groups[task.group])
            for trace in traces
            for task in trace.tasks
            if task.kind is Kind.COLLECTIVE and task.group
        }
        oversubscribed = [
            self._lines_of(self._carrier(what), family).oversubscribed()
            for what, ranks in asked
            if (family := self._family(what, ranks))
        ]
        return min((line for line in oversubscribed if line is not None), default=None)

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

    def _window(self, carrier: str) -> int:
        """Bytes that a collective may have under way to a switch or, on a ring, to the next host."""
        if carrier == "ring":
            return WINDOW * (FRAME_OVERHEAD + PAYLOAD)
        return self._model.slots * (FRAME_OVERHEAD + self.cluster.switch.vector_bytes)

    def _carrier(self, what: Collective) -> str:
        """What flow mode carries a collective by."""
        if what in (Collective.ALL_REDUCE, Collective.BARRIER):
            return self.allreduce
        return "luwu" if what in TO_OR_FROM_ONE else "ring"

    def _between(self, model: FlowModel, what: Collective, nodes: list[str], size: int) -> float:
        if what in (*HALVES, *TO_OR_FROM_ONE):
            return FLOWS[self._carrier(what)](model, nodes, size) / 2
        if what is Collective.ALL_TO_ALL:
            return exchange_seconds(model, nodes, size)
        return FLOWS[self._carrier(what)](model, nodes, size)
