"""A training step on a cluster: how long it takes, and how much of that is communication that nothing hides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import process_time

import numpy as np
from numpy.typing import NDArray

from catchment.sim.performance.cluster import Cluster
from catchment.sim.performance.errors import PerformanceError
from catchment.sim.performance.folding import weights
from catchment.sim.performance.models import PICOS_PER_SECOND
from catchment.sim.performance.network import Network
from catchment.sim.performance.run import FrameRecord, Progress, check_flow, frame_record
from catchment.sim.performance.steps.beside import groups_beside
from catchment.sim.performance.steps.execute import Span, execute
from catchment.sim.performance.steps.frames import Planned, carry_out, check_frames
from catchment.sim.performance.steps.graph import Collective, Kind, Trace
from catchment.sim.performance.steps.ranks import rank_count, rank_hosts
from catchment.sim.performance.steps.times import CollectiveTimes


@dataclass(frozen=True, slots=True)
class StepOutcome:
    """What a step gave, in seconds.

    Attributes:
        seconds: until the last task has ended.
        computing: of the slowest rank.
        communicating: of the rank that communicates longest, hidden or not; waiting for others is in it.
        exposed: share of the step in which that slowest rank did not compute.
        ranks: that took part.
        utilisation: share of the step in which a rank computed, on average.
        straggler_cost: share of the step for which that slowest rank computed longer than ranks do on average.
        sent: bytes that collectives send on the line of the host that sends most, headers left out.
        line: share of the step in which that host's line carries them, frames' headers left out.
        oversubscribed: in flow mode, a link that takes less than the groups that share it send, and how many these are;
            None: there is none.
        record: of frame mode; None in flow mode.
    """

    seconds: float
    computing: float
    communicating: float
    exposed: float
    ranks: int
    utilisation: float
    straggler_cost: float
    sent: float
    line: float
    oversubscribed: str | None = None
    record: FrameRecord | None = None


def run_step(
    cluster: Cluster, traces: Sequence[Trace], *, allreduce: str = "allreduce", seed: int = 1, for_all: bool = True
) -> tuple[StepOutcome, list[Span]]:
    """Carry out a step.

    Args:
        for_all: a trace that is the only one stands for all ranks of the cluster.

    Raises:
        PerformanceError: the traces or the cluster are wrong, or there are more ranks than GPUs.
    """
    check_step(cluster, allreduce)
    one_for_all = for_all and len(traces) == 1
    times = CollectiveTimes(cluster, allreduce, groups_beside(traces), slowest=one_for_all)
    stands_for = tuple(range(times.ranks)) if one_for_all else None
    factors = _factors(cluster, traces, times.ranks, seed)
    # The host that stands for all is as slow as the slowest.
    slower = {trace.rank: float(factors.max() if stands_for else factors[trace.rank]) for trace in traces}
    spans = execute(traces, times.seconds, slower=slower, stands_for=stands_for)
    outcome = replace(_outcome(cluster, traces, times, stands_for, spans), oversubscribed=times.check_queues(traces))
    if stands_for:
        mean = outcome.utilisation * float(factors.mean() / factors.max())
        outcome = replace(outcome, utilisation=mean, straggler_cost=max(0.0, 1 - outcome.exposed - mean))
    return outcome, spans


def run_step_in_frames(
    cluster: Cluster,
    traces: Sequence[Trace],
    *,
    allreduce: str = "allreduce",
    seed: int = 1,
    trains: bool = False,
    progress: Progress | None = None,
) -> tuple[StepOutcome, list[Span]]:
    """Carry out a step in frame mode, or with `trains` in train mode: every rank has a trace.

    Raises:
        PerformanceError: as of `run_step`, or a collective has no frames.
    """
    check_frames(cluster)
    times = CollectiveTimes(cluster, allreduce)
    factors = _factors(cluster, traces, times.ranks, seed)
    slower = {trace.rank: float(factors[trace.rank]) for trace in traces}
    everybody = tuple(sorted(trace.rank for trace in traces))
    groups = {trace.rank: {"": everybody, **trace.groups} for trace in traces}
    network = Network(cluster, seed=seed)
    if trains:
        network.simulation.carry_trains()
    planned = Planned(times, execute(traces, times.seconds, slower=slower), groups, slower)
    spent = process_time()
    spans = carry_out(network, planned, seed, progress)
    record = frame_record([network], process_time() - spent)
    return replace(_outcome(cluster, traces, times, None, spans), record=record), spans


def of_all(outcome: StepOutcome, spans: Sequence[Span], cluster: Cluster, folded: Cluster) -> StepOutcome:
    """What a step of the folded cluster's ranks says of all ranks."""
    stands_for, hosts = weights(cluster, folded), rank_hosts(folded)
    computed = dict.fromkeys(range(len(hosts)), 0.0) | _computed(spans)
    mean = float(np.average(list(computed.values()), weights=[stands_for[hosts[rank]] for rank in computed]))
    late = max(0.0, outcome.computing - mean)
    return replace(
        outcome, ranks=rank_count(cluster), utilisation=mean / outcome.seconds, straggler_cost=late / outcome.seconds
    )


def _outcome(
    cluster: Cluster,
    traces: Sequence[Trace],
    times: CollectiveTimes,
    stands_for: tuple[int, ...] | None,
    spans: Sequence[Span],
) -> StepOutcome:
    """What the tasks of these ranks add up to."""
    seconds = max(span.ended for span in spans)
    by_rank = _computed(spans)
    computing = max(by_rank.values(), default=0.0)
    ranks = times.ranks if stands_for else len(traces)
    exposed = (seconds - computing) / seconds if seconds else 0.0
    communicating = _communicated(spans)
    computed = sum(by_rank.values()) / len(traces)
    utilisation, late = (computed / seconds, max(0.0, computing - computed) / seconds) if seconds else (0.0, 0.0)
    host, sent = _sent(cluster, traces, times, stands_for)
    line = sent * cluster.host_byte(host) / PICOS_PER_SECOND / seconds if seconds else 0.0
    return StepOutcome(seconds, computing, communicating, exposed, ranks, utilisation, late, sent, line)


def check_step(cluster: Cluster, allreduce: str, traces: Sequence[Trace] = ()) -> None:
    """See that steps, or this one, can be simulated on this cluster.

    Raises:
        PerformanceError: they cannot.
    """
    check_flow("allreduce", cluster)
    CollectiveTimes(cluster, allreduce, groups_beside(traces)).check_queues(traces)


def _sent(
    cluster: Cluster, traces: Sequence[Trace], times: CollectiveTimes, stands_for: tuple[int, ...] | None
) -> tuple[str, float]:
    """The host whose line is busiest with collectives, and the bytes that it sends."""
    hosts = rank_hosts(cluster)
    everybody = stands_for or tuple(sorted(trace.rank for trace in traces))
    by_host: dict[str, float] = {}
    # What a node's ranks send of a collective is the same for each of them: thousands of ranks share one group.
    known: dict[tuple[Collective, int, int, str], float] = {}
    for trace in traces:
        groups, host = {"": everybody, **trace.groups}, hosts[trace.rank]
        own = 0.0
        for task in trace.tasks:
            if task.kind is not Kind.COLLECTIVE:
                continue
            ranks = groups[task.group]
            key = task.collective, id(ranks), task.size, host
            if key not in known:
                known[key] = times.sent_of_rank(trace.rank, task.collective, ranks, task.size)
            own += known[key]
        by_host[host] = by_host.get(host, 0.0) + own * (cluster.node_of(host).gpus if stands_for else 1)
    busiest = max(by_host, key=lambda name: by_host[name] * cluster.host_byte(name))
    return busiest, by_host[busiest]


def _factors(cluster: Cluster, traces: Sequence[Trace], ranks: int, seed: int) -> NDArray[np.float64]:
    if len(traces) > ranks:
        raise PerformanceError(f"{len(traces)} traces, and the cluster has {ranks} ranks")
    numbers = np.random.Generator(np.random.Philox(key=seed))
    straggle = cluster.node.straggle
    drawn = np.exp(straggle.sigma * numbers.standard_normal(ranks))
    slow = np.array([straggle.slow.get(host, 1.0) for host in rank_hosts(cluster)])
    factors: NDArray[np.float64] = drawn * slow
    return factors


def _computed(spans: Sequence[Span]) -> dict[int, float]:
    """Seconds in which each rank computed, on one stream or on several at a time."""
    busy: dict[int, float] = {}
    until: dict[int, float] = {}
    for span in sorted((span for span in spans if span.task.kind is Kind.COMPUTE), key=lambda span: span.began):
        began = max(span.began, until.get(span.rank, 0.0))
        busy[span.rank] = busy.get(span.rank, 0.0) + max(0.0, span.ended - began)
        until[span.rank] = max(began, span.ended)
    return busy


def _communicated(spans: Sequence[Span]) -> float:
    """Seconds of all collectives and transfers of the rank where they add up to most."""
    busy: dict[int, float] = {}
    for span in spans:
        if span.task.kind in (Kind.COLLECTIVE, Kind.TRANSFER):
            busy[span.rank] = busy.get(span.rank, 0.0) + span.ended - span.began
    return max(busy.values(), default=0.0)
