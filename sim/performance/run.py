"""One simulation in frame mode: a workload on a cluster, and what came of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import process_time

from catchment.sim.performance.cluster import Cluster
from catchment.sim.performance.errors import PerformanceError
from catchment.sim.performance.failures import schedule_failures
from catchment.sim.performance.network import Network, Stream
from catchment.sim.performance.workload import Action, Workload

Progress = Callable[[int, int], None]
SETTLED = 5_000_000
"""Streams run for so many ps before the first push: every member's first heartbeat has been merged."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a simulation gave; times in seconds of the simulated world.

    Attributes:
        rounds: each round's time, from the first push to the last byte in memory.
        events: of the simulation; `events_per_second`: of processor time.
        frames: put on lines, by packet type; `resent` among them; `lost` on lines, `dropped` by full queues.
        drops: of switches, by reason.
        busiest: the share of time that the line with the most bytes was busy.
        slots_used: the share of time in which more than a tenth, half and nine tenths of a switch's slots waited for
            somebody; of the switch where that was most.
    """

    rounds: tuple[float, ...]
    simulated: float
    events: int
    events_per_second: float
    frames: dict[str, int]
    resent: int
    lost: int
    dropped: int
    drops: dict[str, int]
    busiest: float
    slots_used: dict[str, float]


@dataclass(frozen=True, slots=True)
class Rounds:
    """Messages of one size, one after the other.

    Attributes:
        size: bytes of a message, of each worker.
        count: how many.
        slots: of the job; None: what the switch has.
    """

    size: int
    count: int = 1
    slots: int | None = None

    def __post_init__(self) -> None:
        if self.size < 1 or self.count < 1:
            raise PerformanceError(f"{self.count} rounds of {self.size} bytes: give at least one of each")


def simulate_allreduce(cluster: Cluster, rounds: Rounds, *, seed: int = 1, progress: Progress | None = None) -> Outcome:
    """Every host's sum in switches, to every host.

    Raises:
        PerformanceError: it does not fit the cluster, or does not come to an end.
    """
    network = Network(cluster, seed=seed)
    stream = network.allreduce(workers_of(cluster), slots=rounds.slots)
    workload = Workload()
    spans = play(workload, [stream], rounds)
    return finish(network, workload, spans, [stream], progress)


def simulate_luwu(cluster: Cluster, rounds: Rounds, *, seed: int = 1, progress: Progress | None = None) -> Outcome:
    """Gradients of every host to the optimizer node `opt`, then as many bytes of parameters from it; as above."""
    if "opt" not in cluster.topology.hosts:
        raise PerformanceError("LuWu needs an optimizer node: a host `opt` in the topology, or `fabric.optimizers: 1`")
    network = Network(cluster, seed=seed)
    workers = workers_of(cluster)
    up = network.reduce(workers, "opt", slots=rounds.slots)
    down = network.broadcast("opt", workers)
    workload = Workload()
    spans = play(workload, [up, down], rounds)
    return finish(network, workload, spans, [up], progress)


def workers_of(cluster: Cluster) -> list[str]:
    """The hosts that compute: all but the optimizer nodes."""
    return [name for name in cluster.hosts if not name.startswith("opt")]


def play(workload: Workload, streams: list[Stream], rounds: Rounds) -> list[tuple[int, list[int]]]:
    """Messages through each stream in turn; for each round the operation that it begins with and those that end it."""
    last = [workload.add(Action.DELAY, amount=SETTLED)]
    spans = []
    for _ in range(rounds.count):
        begin = workload.add(Action.JOIN, after=last)
        last = [begin]
        for stream in streams:
            _, pulls = workload.transfer(stream, rounds.size, tuple(last))
            last = [workload.add(Action.JOIN, after=pulls)]
        spans.append((begin, last))
    return spans


def finish(
    network: Network,
    workload: Workload,
    spans: list[tuple[int, list[int]]],
    streams: list[Stream],
    progress: Progress | None = None,
) -> Outcome:
    """Run, and look at what happened."""
    schedule_failures(network)
    spent = process_time()
    times = workload.run(network, progress)
    spent = process_time() - spent
    simulation = network.simulation
    lines = [simulation.line(at) for at in range(network.lines)]
    now = max(1, simulation.now)
    return Outcome(
        tuple((max(int(times[end, 1]) for end in ends) - int(times[begin, 1])) / 1e12 for begin, ends in spans),
        simulation.now / 1e12, simulation.events, simulation.events / max(spent, 1e-9),
        network.frames_by_type(lines), sum(sum(line["resent"].values()) for line in lines),
        sum(line["lost"] for line in lines), sum(line["dropped"] for line in lines), simulation.drops(),
        network.busiest(lines, now), network.slots_used(streams),
    )  # fmt: skip
