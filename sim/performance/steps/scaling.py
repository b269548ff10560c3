"""Traces of a few ranks as one that stands for thousands."""

from __future__ import annotations

from collections.abc import Sequence

from catchment.sim.performance.errors import PerformanceError
from catchment.sim.performance.steps.graph import Trace


def one_for_all(traces: Sequence[Trace]) -> Trace:
    """A trace that stands for as many ranks as there are: each task as long as on the slowest rank.

    Raises:
        PerformanceError: the ranks did different things, or formed groups.
    """
    first = traces[0]
    shape = [(task.kind, task.collective, task.size, task.after) for task in first.tasks]
    for trace in traces:
        if trace.groups or any(task.group for task in trace.tasks):
            raise PerformanceError(
                f"rank {trace.rank}: collectives of groups cannot be scaled to other numbers of ranks"
            )
        for task, wanted in zip(trace.tasks, shape, strict=False):
            if (task.kind, task.collective, task.size, task.after) != wanted:
                raise PerformanceError(f"rank {trace.rank}: node {task.number} ({task.name}) is not as on rank 0")
        if len(trace.tasks) != len(shape):
            raise PerformanceError(f"rank {trace.rank} has {len(trace.tasks)} nodes, rank 0 has {len(shape)}")
    longest = [max(tasks, key=lambda task: task.micros) for tasks in zip(*(t.tasks for t in traces), strict=True)]
    return Trace(first.rank, tuple(longest))
