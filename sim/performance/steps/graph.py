"""What one rank does in a training: tasks that wait for one another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from catchment.sim.performance.errors import PerformanceError


class Kind(StrEnum):
    """What a task occupies."""

    COMPUTE = "compute"
    COLLECTIVE = "collective"
    TRANSFER = "transfer"
    NOTHING = "nothing"


class Collective(StrEnum):
    """Collective operations, by their names in Chakra."""

    ALL_REDUCE = "ALL_REDUCE"
    REDUCE = "REDUCE"
    ALL_GATHER = "ALL_GATHER"
    GATHER = "GATHER"
    SCATTER = "SCATTER"
    BROADCAST = "BROADCAST"
    ALL_TO_ALL = "ALL_TO_ALL"
    REDUCE_SCATTER = "REDUCE_SCATTER"
    REDUCE_SCATTER_BLOCK = "REDUCE_SCATTER_BLOCK"
    BARRIER = "BARRIER"


@dataclass(frozen=True, slots=True)
class Task:
    """One of them.

    Attributes:
        number: unique in its rank.
        micros: of a computation, or of a transfer over a link of the rank's own.
        collective, size, group: of a collective: what, bytes of the whole vector, among whom.
        stream: tasks of one stream follow one another; "" is the kind's own.
        after: numbers of the tasks that must have ended.
    """

    number: int
    name: str
    kind: Kind
    micros: float = 0.0
    collective: Collective = Collective.ALL_REDUCE
    size: int = 0
    group: str = ""
    stream: str = ""
    after: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Trace:
    """A rank's tasks.

    Attributes:
        groups: name -> ranks; "" is all ranks.
        beside: name of a group -> all groups that carry out the same collectives at the same time, with it among them.
    """

    rank: int
    tasks: tuple[Task, ...]
    groups: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    beside: Mapping[str, tuple[tuple[int, ...], ...]] = field(default_factory=dict)

    def check(self) -> None:
        """See that every task can be reached.

        Raises:
            PerformanceError: a number twice, a task that waits for one that is not there, a cycle, an unknown
                group, or one of other ranks; the message says rank, number and name.
        """
        by_number = {task.number: task for task in self.tasks}
        if len(by_number) != len(self.tasks):
            twice = next(t for at, t in enumerate(self.tasks) if t.number in {u.number for u in self.tasks[:at]})
            raise self._error(twice, "has the number of an earlier node")
        for task in self.tasks:
            for other in task.after:
                if other not in by_number:
                    raise self._error(task, f"waits for node {other}, which is not there")
            if task.kind is Kind.COLLECTIVE and task.group not in {"", *self.groups}:
                raise self._error(task, f"is of group {task.group!r}; there are {', '.join(self.groups) or 'none'}")
            if task.kind is Kind.COLLECTIVE and self.rank not in self.groups.get(task.group, (self.rank,)):
                raise self._error(task, f"is of group {task.group!r}, which this rank is not in")
        left = {task.number: len(set(task.after)) for task in self.tasks}
        free = [number for number, count in left.items() if count == 0]
        followers: dict[int, list[int]] = {}
        for task in self.tasks:
            for other in set(task.after):
                followers.setdefault(other, []).append(task.number)
        while free:
            number = free.pop()
            del left[number]
            for follower in followers.get(number, ()):
                left[follower] -= 1
                if left[follower] == 0:
                    free.append(follower)
        if left:
            raise self._error(by_number[min(left)], "is in a cycle, or behind one")

    def _error(self, task: Task, what: str) -> PerformanceError:
        return PerformanceError(f"rank {self.rank}: node {task.number} ({task.name}) {what}")


class Builder:
    """Collects the tasks of a rank."""

    def __init__(self) -> None:
        self._tasks: list[Task] = []

    def compute(self, name: str, seconds: float, *after: int) -> int:
        """Add a computation; its number."""
        return self._add(Task(len(self._tasks), name, Kind.COMPUTE, micros=1e6 * seconds, after=after))

    def transfer(self, name: str, seconds: float, size: int, *after: int, stream: str) -> int:
        """Add a transfer of so many bytes over a link of the rank's own; its number."""
        number = len(self._tasks)
        return self._add(Task(number, name, Kind.TRANSFER, micros=1e6 * seconds, size=size, stream=stream, after=after))

    def collective(self, what: Collective, name: str, size: int, *after: int, group: str = "", stream: str = "") -> int:
        """Add a collective; its number."""
        number = len(self._tasks)
        return self._add(
            Task(number, name, Kind.COLLECTIVE, collective=what, size=size, group=group, stream=stream, after=after)
        )

    def __iter__(self) -> Iterator[Task]:
        return iter(self._tasks)

    def _add(self, task: Task) -> int:
        self._tasks.append(task)
        return task.number
