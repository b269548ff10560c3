"""Steps of training in frame mode: what each rank does, as operations on a network of the protocol's own NICs.

Tasks of one stream follow one another in the order in which flow mode begins them. Ranks of a node meet first, and
exchange what they have at `scale_up`; then the node's NIC takes part for them, groups of one node side by side.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from catchment.sim.performance.baselines import Ends
from catchment.sim.performance.cluster import Cluster
from catchment.sim.performance.errors import PerformanceError
from catchment.sim.performance.failures import schedule_failures
from catchment.sim.performance.models import PICOS_PER_SECOND, ProgramModel
from catchment.sim.performance.network import Network
from catchment.sim.performance.run import Progress
from catchment.sim.performance.steps.execute import Span
from catchment.sim.performance.steps.graph import Kind, Task
from catchment.sim.performance.steps.ranks import rank_hosts
from catchment.sim.performance.steps.times import TO_OR_FROM_ONE, CollectiveTimes
from catchment.sim.performance.steps.wires import Between, Ranks, Wires
from catchment.sim.performance.workload import SETTLED, Action, Workload

_PICOS_PER_MICRO = 10**6


def check_frames(cluster: Cluster) -> None:
    """See that steps have frames on this cluster.

    Raises:
        PerformanceError: they have none.
    """
    if isinstance(cluster.nic, ProgramModel):
        raise PerformanceError("steps of training know no endpoints in software: leave `nic` out")


@dataclass(frozen=True, slots=True)
class Planned:
    """A step in flow mode, and of whom.

    Attributes:
        times: of what ranks of one node exchange.
        spans: of all ranks, in the order of their ends.
        groups: rank -> name of a group -> its ranks; "" is all.
        slower: rank -> factor on its computations.
    """

    times: CollectiveTimes
    spans: Sequence[Span]
    groups: Mapping[int, Mapping[str, Ranks]]
    slower: Mapping[int, float]


def carry_out(network: Network, planned: Planned, seed: int, progress: Progress | None = None) -> list[Span]:
    """The same tasks in frame mode, in seconds from the first one's begin.

    Raises:
        PerformanceError: a collective has no frames, or they do not come to an end.
    """
    lowered = _Lowered(Workload(), Wires(network, planned.times.allreduce), planned)
    lowered.add(planned.spans)
    outages = schedule_failures([network], seed)
    ran = lowered.workload.run(network, progress, outages)
    zero = int(ran[lowered.settled, 1])

    def seconds(operation: int, which: int) -> float:
        return float(ran[operation, which] - zero) / PICOS_PER_SECOND

    return [
        Span(span.rank, span.task, seconds(*lowered.begun[key]), seconds(lowered.ended[key], 1))
        for span in planned.spans
        for key in [(span.rank, span.task.number)]
    ]


@dataclass(slots=True)
class _Lowered:
    """Tasks as operations.

    Attributes:
        settled: the operation behind which everything begins.
        begun, ended: of each task that was added, by rank and number: the operation with which it begins, and which of
            that one's times that is; the operation with which it ends.
    """

    workload: Workload
    wires: Wires
    planned: Planned
    settled: int = 0
    begun: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    ended: dict[tuple[int, int], int] = field(default_factory=dict)
    _hosts: tuple[str, ...] = ()
    _last: dict[tuple[int, str], int] = field(default_factory=dict)
    _over: dict[tuple[Ranks, str], list[int]] = field(default_factory=dict)
    _there: dict[Ranks, list[tuple[int, Task]]] = field(default_factory=dict)

    def add(self, spans: Sequence[Span]) -> None:
        """Tasks in the order in which flow mode ends them: what one waits for comes before it."""
        self.settled = self.workload.add(Action.DELAY, amount=SETTLED)
        self._hosts = rank_hosts(self.wires.network.cluster)
        for span in spans:
            if span.task.kind is Kind.COLLECTIVE:
                self._meet(span.rank, span.task)
            else:
                self._alone(span.rank, span.task)

    def _waits(self, rank: int, task: Task) -> list[int]:
        stream = (rank, task.stream or task.kind)
        before = [self.ended[rank, other] for other in task.after]
        return [*before, self._last[stream]] if stream in self._last else before or [self.settled]

    def _end(self, rank: int, task: Task, operation: int) -> None:
        self.ended[rank, task.number] = self._last[rank, task.stream or task.kind] = operation

    def _alone(self, rank: int, task: Task) -> None:
        waits = self._waits(rank, task)
        if task.kind is Kind.COMPUTE:
            picos = round(task.micros * _PICOS_PER_MICRO * self.planned.slower.get(rank, 1.0))
            operation = self.workload.add(Action.COMPUTE, rank, picos, waits)
        else:
            operation = self.workload.add(Action.DELAY, amount=round(task.micros * _PICOS_PER_MICRO), after=waits)
        self.begun[rank, task.number] = operation, 0
        self._end(rank, task, operation)

    def _meet(self, rank: int, task: Task) -> None:
        """A rank's part in a collective; with the last one's it is added."""
        ranks = self.planned.groups[rank][task.group]
        arrived = self.workload.add(Action.JOIN, after=self._waits(rank, task))
        self.begun[rank, task.number] = arrived, 1
        there = self._there.setdefault(ranks, [])
        there.append((rank, task))
        if len(there) == len(ranks):
            self._exchange(ranks, self._there.pop(ranks))

    def _exchange(self, ranks: Ranks, there: Sequence[tuple[int, Task]]) -> None:
        what, size = there[0][1].collective, max(1, *(task.size for _, task in there))
        arrived: dict[str, list[int]] = defaultdict(list)
        for rank, task in sorted(there, key=lambda one: one[0]):
            arrived[self._hosts[rank]].append(self.begun[rank, task.number][0])
        carried = ranks, self.wires.carrier(what)
        before = self._over.get(carried, [])
        starts = []
        for at, (host, joined) in enumerate(arrived.items()):
            local = round(self.planned.times.inside(what, host, len(joined), size) * PICOS_PER_SECOND)
            starts.append([self.workload.add(Action.DELAY, amount=local, after=[*joined, *(before[at : at + 1])])])
        ends: Ends = starts
        if len(arrived) > 1 or what in TO_OR_FROM_ONE:
            ends = self.wires.carry(self.workload, Between(what, size, ranks, tuple(arrived)), starts)
        over = {host: self.workload.add(Action.JOIN, after=own) for host, own in zip(arrived, ends, strict=True)}
        self._over[carried] = list(over.values())
        for rank, task in there:
            self._end(rank, task, over[self._hosts[rank]])
