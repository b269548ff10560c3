"""Carries out the tasks of ranks: each stream of a rank does one after the other, a collective waits for its group."""

from __future__ import annotations

import heapq
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from catchment.sim.performance.errors import PerformanceError
from catchment.sim.performance.steps.graph import Collective, Kind, Task, Trace
from catchment.sim.performance.timeline import Bar

Seconds = Callable[[Collective, tuple[int, ...], int], float]
"""The time of a collective of these ranks, of so many bytes."""


@dataclass(frozen=True, slots=True)
class Span:
    """The time in which a task ran, in seconds."""

    rank: int
    task: Task
    began: float
    ended: float

    @property
    def bar(self) -> Bar:
        """The same for a timeline."""
        task = self.task
        track = str(task.stream or task.kind)
        return Bar(f"rank {self.rank}", track, task.name, str(task.kind), self.began, self.ended, task.size)


@dataclass(slots=True)
class _Meeting:
    """A collective that waits for its ranks: those that are there, and the largest size that one of them named."""

    there: list[tuple[int, Task, float]] = field(default_factory=list)


class _Execution:
    def __init__(
        self, traces: Sequence[Trace], seconds: Seconds, slower: Mapping[int, float], stands_for: tuple[int, ...] | None
    ) -> None:
        self._traces = {trace.rank: trace for trace in traces}
        self._seconds, self._slower, self._stands_for = seconds, slower, stands_for
        self._left = {(t.rank, task.number): len(set(task.after)) for t in traces for task in t.tasks}
        self._followers: dict[tuple[int, int], list[Task]] = defaultdict(list)
        for trace in traces:
            for task in trace.tasks:
                for other in set(task.after):
                    self._followers[trace.rank, other].append(task)
        self._queues: dict[tuple[int, str], deque[Task]] = defaultdict(deque)
        self._busy: set[tuple[int, str]] = set()
        self._everybody = stands_for or tuple(sorted(self._traces))
        self._groups: dict[tuple[int, str], tuple[int, tuple[int, ...]]] = {}
        self._numbers: dict[tuple[int, ...], int] = {}
        self._met: dict[tuple[int, str, str], int] = defaultdict(int)
        self._meetings: dict[tuple[int, str, int], _Meeting] = defaultdict(_Meeting)
        self._events: list[tuple[float, int, int, Task, float]] = []
        self._count = 0
        self.spans: list[Span] = []

    def run(self) -> list[Span]:
        for trace in self._traces.values():
            for task in trace.tasks:
                if not task.after:
                    self._ready(trace.rank, task, 0.0)
        while self._events:
            now, _, rank, task, began = heapq.heappop(self._events)
            self._end(rank, task, began, now)
        if len(self.spans) != len(self._left):
            self._complain()
        return self.spans

    def _stream(self, rank: int, task: Task) -> tuple[int, str]:
        return rank, task.stream or task.kind

    def _ready(self, rank: int, task: Task, now: float) -> None:
        stream = self._stream(rank, task)
        self._queues[stream].append(task)
        if stream not in self._busy:
            self._begin(rank, stream, now)

    def _begin(self, rank: int, stream: tuple[int, str], now: float) -> None:
        if not self._queues[stream]:
            self._busy.discard(stream)
            return
        self._busy.add(stream)
        task = self._queues[stream].popleft()
        if task.kind is not Kind.COLLECTIVE:
            slower = self._slower.get(rank, 1.0) if task.kind is Kind.COMPUTE else 1.0
            self._end_at(rank, task, now, now + 1e-6 * task.micros * slower)
            return
        group, ranks = self._group(rank, task.group)
        # Streams go on beside one another, so ranks may begin collectives of two of them in different orders.
        place = group, stream[1], self._met[rank, task.group, stream[1]]
        self._met[rank, task.group, stream[1]] += 1
        meeting = self._meetings[place]
        meeting.there.append((rank, task, now))
        expected = 1 if self._stands_for else len(ranks)
        if len(meeting.there) < expected:
            return
        for other, one, _ in meeting.there:
            if one.collective is not task.collective:
                raise PerformanceError(
                    f"rank {rank}: node {task.number} ({task.name}) is {task.collective}, and meets "
                    f"rank {other}: node {one.number} ({one.name}), which is {one.collective}: "
                    "all ranks of a group need the same collectives in the same order"
                )
        takes = self._seconds(task.collective, ranks, max(one.size for _, one, _ in meeting.there))
        for member, one, came in meeting.there:
            self._end_at(member, one, came, now + takes)
        del self._meetings[place]

    def _group(self, rank: int, name: str) -> tuple[int, tuple[int, ...]]:
        """A number for the ranks of a group as this rank has it, and the ranks."""
        key = (rank, name)
        if key not in self._groups:
            ranks = self._traces[rank].groups[name] if name else self._everybody
            self._groups[key] = self._numbers.setdefault(ranks, len(self._numbers)), ranks
        return self._groups[key]

    def _end_at(self, rank: int, task: Task, began: float, ended: float) -> None:
        self._count += 1
        heapq.heappush(self._events, (ended, self._count, rank, task, began))

    def _end(self, rank: int, task: Task, began: float, now: float) -> None:
        self.spans.append(Span(rank, task, began, now))
        for follower in self._followers[rank, task.number]:
            self._left[rank, follower.number] -= 1
            if self._left[rank, follower.number] == 0:
                self._ready(rank, follower, now)
        self._begin(rank, self._stream(rank, task), now)

    def _complain(self) -> None:
        for meeting in self._meetings.values():
            there = {rank for rank, _, _ in meeting.there}
            rank, task, _ = meeting.there[0]
            _, ranks = self._group(rank, task.group)
            missing = sorted(set(ranks) - there)
            raise PerformanceError(
                f"rank {rank}: node {task.number} ({task.name}) waits for rank {missing[0]}, which does not take part: "
                "all ranks of a group need the same collectives in the same order"
            )
        raise PerformanceError("a task never begins")


def execute(
    traces: Sequence[Trace],
    seconds: Seconds,
    *,
    slower: Mapping[int, float] | None = None,
    stands_for: tuple[int, ...] | None = None,
) -> list[Span]:
    """Carry out all tasks.

    Args:
        slower: rank -> factor on its computations.
        stands_for: the ranks for which the only trace stands, all alike.

    Raises:
        PerformanceError: a trace is wrong, or ranks wait for one another in vain.
    """
    for trace in traces:
        trace.check()
    return _Execution(traces, seconds, slower or {}, stands_for).run()
