"""One simulation: rounds of a collective on a cluster, and what came of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import process_time

import numpy as np
from numpy.typing import NDArray

from catchment.sim.performance.baselines import Ends
from catchment.sim.performance.cluster import Cluster
from catchment.sim.performance.collectives import COLLECTIVES, SWITCHML_HOST
from catchment.sim.performance.errors import PerformanceError
from catchment.sim.performance.failures import schedule_failures
from catchment.sim.performance.flow import FLOWS, flow_seconds
from catchment.sim.performance.folding import fold
from catchment.sim.performance.models import PICOS_PER_SECOND, ProgramModel
from catchment.sim.performance.network import Network, frames_by_type
from catchment.sim.performance.rails import NEZHA, nezha_seconds, rail_networks
from catchment.sim.performance.rounds import Rounds
from catchment.sim.performance.timeline import write_timeline
from catchment.sim.performance.workload import SETTLED, Action, Workload

Progress = Callable[[int, int], None]
Times = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class FrameRecord:
    """What was counted in frame mode.

    Attributes:
        hosts: that were simulated, and that all that is counted is of.
        simulated: seconds, from the start of the streams.
        events: of the simulation; `events_per_second`: of processor time.
        frames: put on lines, by packet type; `resent` among them; `lost` on lines, `dropped` by full queues.
        drops: of switches, by reason.
        busiest: the share of time that the line with the most bytes was busy.
        carried: the share of the simulated time in which frames were carried in trains.
        slots_used: the share of time in which more than a tenth, half and nine tenths of a switch's slots waited for
            somebody; of the switch where that was most.
    """

    hosts: int
    simulated: float
    events: int
    events_per_second: float
    frames: dict[str, int]
    resent: int
    lost: int
    dropped: int
    drops: dict[str, int]
    busiest: float
    carried: float
    slots_used: dict[str, float]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a simulation gave; times in seconds of the simulated world.

    Attributes:
        rounds: each round's time, until the last host has the last byte in memory.
        exposed: the share of the time in which not even the slowest host computed.
        utilisation: the share of the time in which hosts computed, on average.
        straggler_cost: the share of the time for which the slowest host computed longer than hosts do on average.
        record: of frame mode; None in flow mode.
    """

    rounds: tuple[float, ...]
    exposed: float
    utilisation: float
    straggler_cost: float
    record: FrameRecord | None = None

    @classmethod
    def of(cls, took: Times, computing: Times, record: FrameRecord | None) -> Outcome:
        """The outcome of rounds that took so long (rounds,) while hosts computed so long (rounds, hosts), in ps."""
        slowest, mean = computing.max(axis=1), computing.mean(axis=1)
        return cls(
            tuple(float(each) / PICOS_PER_SECOND for each in took),
            float((took - slowest).clip(0).sum() / took.sum()),
            float(mean.sum() / took.sum()),
            float((slowest - mean).sum() / took.sum()),
            record,
        )


def simulate(
    kind: str,
    cluster: Cluster,
    rounds: Rounds,
    *,
    seed: int = 1,
    progress: Progress | None = None,
    timeline: Path | None = None,
    trains: bool = False,
) -> Outcome:
    """Rounds of a collective operation of all hosts, in frame mode or in train mode.

    Args:
        kind: of `COLLECTIVES`.
        trains: frames that follow one another as those before did are carried all at once: the same times, to the
            picosecond.
        timeline: a file that gets what every host did when, for Perfetto's viewer.

    Raises:
        PerformanceError: it does not fit the cluster, or does not come to an end.
        OSError: the timeline cannot be written.
    """
    if kind == "switchml":
        cluster = replace(cluster, nic=SWITCHML_HOST)
    networks = rail_networks(cluster, seed) if kind == NEZHA else [Network(cluster, seed=seed)]
    if trains:
        check_trains(cluster)
        networks[0].simulation.carry_trains()
    workers = workers_of(cluster)
    collective = COLLECTIVES[kind](networks, workers, rounds)
    workload = Workload()
    settled = workload.add(Action.DELAY, amount=SETTLED)
    ready: Ends = [[settled] for _ in workers]
    computing = compute_times(cluster, workers, rounds, seed)
    spans = []
    for times in computing:
        starts = ready
        if rounds.compute:
            starts = [
                [workload.add(Action.COMPUTE, at, int(time), own)]
                for at, (time, own) in enumerate(zip(times, ready, strict=True))
            ]
        ready = collective(workload, starts, rounds.size)
        spans.append(workload.add(Action.JOIN, after=sorted({end for ends in ready for end in ends})))
    outages = schedule_failures(networks, seed)
    slowest = max(networks, key=lambda network: network.longest_timeout)
    spent = process_time()
    times = workload.run(slowest, progress, outages)
    spent = process_time() - spent
    if timeline is not None:
        members = {member: told for network in networks for member, told in network.members.items()}
        write_timeline(timeline, workload.bars(times, members, workers))
    took = np.diff(times[[settled, *spans], 1]).astype(float)
    return Outcome.of(took, computing, frame_record(networks, spent))


def check_trains(cluster: Cluster) -> None:
    """See that frames can be carried in trains.

    Raises:
        PerformanceError: they cannot.
    """
    if isinstance(cluster.nic, ProgramModel):
        raise PerformanceError("endpoints in software have states that cannot be compared: use --mode frame")


def simulate_folded(
    kind: str, cluster: Cluster, rounds: Rounds, *, seed: int = 1, progress: Progress | None = None
) -> Outcome:
    """The same in folded mode.

    Raises:
        PerformanceError: hosts do not behave alike: they differ, or send frames again, each after a delay of its own.
    """
    outcome = simulate(kind, fold(kind, cluster), rounds, seed=seed, progress=progress, trains=True)
    record = outcome.record
    if record is not None and not hosts_alike(record):
        raise PerformanceError(
            f"{record.dropped} frames were dropped and {record.resent} sent again, after a delay of each host's own: "
            "hosts do not behave alike, use --mode train"
        )
    return _of_all(outcome, cluster, rounds, seed)


def simulate_in_trains(
    kind: str, cluster: Cluster, rounds: Rounds, *, seed: int = 1, progress: Progress | None = None
) -> Outcome:
    """The same in train mode: folded where hosts behave alike, else of all hosts; the frame mode's times."""
    try:
        folded = fold(kind, cluster)
    except PerformanceError:
        folded = cluster
    outcome = simulate(kind, folded, rounds, seed=seed, progress=progress, trains=True)
    if folded is cluster:
        return outcome
    if outcome.record is None or hosts_alike(outcome.record):
        return _of_all(outcome, cluster, rounds, seed)
    return simulate(kind, cluster, rounds, seed=seed, progress=progress, trains=True)


def _of_all(outcome: Outcome, cluster: Cluster, rounds: Rounds, seed: int) -> Outcome:
    """The outcome of a few hosts, with the shares of time of all hosts that they stand for."""
    computing = compute_times(cluster, workers_of(cluster), rounds, seed)
    took = PICOS_PER_SECOND * np.array(outcome.rounds)
    return replace(Outcome.of(took, computing, outcome.record), rounds=outcome.rounds)


def hosts_alike(record: FrameRecord) -> bool:
    """Whether nothing happened after a delay of each host's own."""
    return not record.resent and not record.dropped


def workers_of(cluster: Cluster) -> list[str]:
    """The hosts that compute: all but the optimizer nodes."""
    return [name for name in cluster.hosts if not name.startswith("opt")]


def compute_times(cluster: Cluster, workers: Sequence[str], rounds: Rounds, seed: int) -> Times:
    """How long each worker computes in each round, in ps: (rounds, workers); half as fast, twice as long."""
    numbers = np.random.Generator(np.random.Philox(key=seed))
    straggle = cluster.node.straggle
    factors = np.exp(straggle.sigma * numbers.standard_normal((rounds.count, len(workers))))
    slow = np.array([straggle.slow.get(name, 1.0) for name in workers])
    slow *= [cluster.node.flops / cluster.node_of(name).flops for name in workers]
    times: Times = rounds.compute * factors * slow
    return times


def frame_record(networks: Sequence[Network], spent: float) -> FrameRecord:
    """What was counted in a simulation that took so many seconds of processor time."""
    simulation = networks[0].simulation
    now = max(1, simulation.now)
    by_network = [network.line_counts() for network in networks]
    lines = [line for counts in by_network for line in counts]
    used = [network.slots_used() for network in networks]
    return FrameRecord(
        len(networks[0].hosts), simulation.now / PICOS_PER_SECOND, simulation.events,
        simulation.events / max(spent, 1e-9),
        frames_by_type(lines), sum(sum(line["resent"].values()) for line in lines),
        sum(line["lost"] for line in lines), sum(line["dropped"] for line in lines), simulation.drops(),
        max(network.busiest(counts, now) for network, counts in zip(networks, by_network, strict=True)),
        simulation.carried / now, {share: max(each[share] for each in used) for share in used[0]},
    )  # fmt: skip


def estimate(kind: str, cluster: Cluster, rounds: Rounds, *, seed: int = 1) -> Outcome:
    """The same rounds in flow mode: all begin together when the slowest has computed.

    Raises:
        PerformanceError: flow mode cannot say it.
    """
    check_flow(kind, cluster)
    workers = workers_of(cluster)
    if kind == NEZHA:
        seconds = nezha_seconds(cluster, workers, rounds)
    else:
        seconds = flow_seconds(kind, cluster, workers, rounds.size, rounds.slots)
    computing = compute_times(cluster, workers, rounds, seed)
    return Outcome.of(computing.max(axis=1) + seconds * PICOS_PER_SECOND, computing, None)


def check_flow(kind: str, cluster: Cluster) -> None:
    """See that flow mode can say something of this.

    Raises:
        PerformanceError: it cannot.
    """
    troubles = cluster.links.faults
    if cluster.fails or troubles.loss or troubles.duplicate or troubles.reorder:
        raise PerformanceError("flow mode knows no faults and no failures: use --mode frame")
    if kind not in (*FLOWS, NEZHA):
        raise PerformanceError(f"flow mode has no {kind!r}; it has {', '.join(FLOWS)}, {NEZHA}: use --mode frame")
