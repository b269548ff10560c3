"""What the command line asks for: a workload on a cluster with settings, and sweeps over them in processes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from catchment.controlplane.errors import ControlPlaneError
from catchment.host.collectives.rail_split import RailPolicy
from catchment.sim.performance import side_by_side
from catchment.sim.performance.cluster import Cluster, Rail
from catchment.sim.performance.cluster_file import load_cluster
from catchment.sim.performance.collectives import COLLECTIVES, RINGS
from catchment.sim.performance.errors import ClusterError, PerformanceError
from catchment.sim.performance.folding import fold
from catchment.sim.performance.glm import P4SGD, GlmTraining, glm_epochs
from catchment.sim.performance.network import message_frames
from catchment.sim.performance.planning import check_ways, sums_tree
from catchment.sim.performance.quantities import Dimension, quantity, whole
from catchment.sim.performance.rails import NEZHA, rail_clusters
from catchment.sim.performance.rounds import MOST_ROUNDS, Rounds, Splitting
from catchment.sim.performance.run import (
    Outcome,
    Progress,
    check_flow,
    check_trains,
    estimate,
    simulate,
    simulate_folded,
    simulate_in_trains,
    workers_of,
)

_OF_THE_WORKLOAD = ("size", "rounds", "slots", "compute")
_OF_RAILS = ("policy", "together")
STEPS = ("ddp", "zero3", "mics", "coarse")
"""Workloads that are a step of training (steps/requests.py); LuWu's is `catchment simulate-step luwu`."""
_OF_GLM = ("data", "batch", "bits", "engines", "rounds")


class Mode(StrEnum):
    """How closely to look."""

    FRAME = "frame"
    TRAIN = "train"
    FOLD = "fold"
    FLOW = "flow"


@dataclass(frozen=True, slots=True)
class Request:
    """One simulation.

    Attributes:
        settings: key -> text; keys with a dot are the cluster's.
        varied: those of them that a sweep varies.
    """

    workload: str
    cluster: Path
    settings: tuple[tuple[str, str], ...]
    varied: tuple[tuple[str, str], ...]
    seed: int
    mode: Mode = Mode.FRAME

    @classmethod
    def all_of(
        cls,
        workload: str,
        cluster: Path,
        settings: Sequence[str],
        sweeps: Sequence[str],
        *,
        seed: int = 1,
        mode: Mode = Mode.FRAME,
    ) -> list[Request]:
        """The requests of a command line, each checked before anything runs.

        Raises:
            PerformanceError: a workload, key or value that there is not.
        """
        if workload not in (*COLLECTIVES, P4SGD):
            raise PerformanceError(
                f"no workload {workload!r}; there are: {', '.join((*COLLECTIVES, P4SGD))}; and steps of training: "
                f"{', '.join(STEPS)}; and of traces, `catchment simulate-step et --et FOLDER`"
            )
        fixed = tuple(pairs_of(settings, sweeps).items())
        made = []
        for varied in itertools.product(*choices_of(sweeps)):
            request = cls(workload, cluster, (*fixed, *varied), varied, seed, mode)
            request.check()
            made.append(request)
        return made

    def check(self) -> None:
        """See that it can be run.

        Raises:
            PerformanceError: it cannot.
        """
        cluster = load_cluster(self.cluster, self._overrides())
        if self.workload == P4SGD:
            if self.mode is not Mode.FLOW:
                raise PerformanceError(f"{P4SGD} is a model of clocks, without frames: use --mode flow")
            check_flow("allreduce", cluster)
            self._epochs(cluster)
            return
        rounds = self._rounds()
        if self.workload == NEZHA:
            rail_clusters(cluster)
        self._check_tree(cluster, rounds)
        if self.mode is Mode.FLOW:
            check_flow(self.workload, cluster)
            return
        if self.mode is Mode.TRAIN:
            check_trains(cluster)
        elif self.mode is Mode.FOLD:
            fold(self.workload, cluster)
        if self.workload not in (*RINGS, NEZHA):
            message_frames(rounds.size, cluster.switch.vector_bytes)

    def _check_tree(self, cluster: Cluster, rounds: Rounds) -> None:
        check_ways(cluster, workers_of(cluster), ring=self.workload in RINGS)
        if self.workload in RINGS or not any(rail.by == "switch" for rail in cluster.rails or (Rail(""),)):
            return
        try:
            sums_tree(cluster, workers_of(cluster), "opt" if self.workload == "luwu" else None)
            cluster.check_slots(cluster.switch.slots if rounds.slots is None else rounds.slots)
        except ControlPlaneError as error:
            raise ClusterError(f"{cluster.place}: {error}") from None

    def run(self, progress: Progress | None = None, timeline: Path | None = None) -> Outcome:
        """Run it; `timeline`: a file that gets what every host did when, in frame mode."""
        cluster = load_cluster(self.cluster, self._overrides())
        if self.workload == P4SGD:
            return self._epochs(cluster)
        if self.mode is Mode.FLOW:
            return estimate(self.workload, cluster, self._rounds(), seed=self.seed)
        if self.mode is Mode.TRAIN:
            return simulate_in_trains(self.workload, cluster, self._rounds(), seed=self.seed, progress=progress)
        if self.mode is Mode.FOLD:
            return simulate_folded(self.workload, cluster, self._rounds(), seed=self.seed, progress=progress)
        return simulate(self.workload, cluster, self._rounds(), seed=self.seed, progress=progress, timeline=timeline)

    def _overrides(self) -> dict[str, str]:
        return {key: value for key, value in self.settings if "." in key}

    def _epochs(self, cluster: Cluster) -> Outcome:
        own = self._own(_OF_GLM)
        try:
            count = whole("rounds", own.pop("rounds", "1"))
        except ValueError as error:
            raise PerformanceError(f"{self.workload}: {error}") from None
        if not 1 <= count <= MOST_ROUNDS:
            raise PerformanceError(f"{self.workload}: {count} rounds: give at least one epoch, {MOST_ROUNDS} at most")
        return glm_epochs(cluster, GlmTraining.parse(**own), count)

    def _own(self, there: Sequence[str]) -> dict[str, str]:
        """The workload's settings, of those that there are."""
        own = {key: value for key, value in self.settings if "." not in key}
        unknown = [key for key in own if key not in there]
        if unknown:
            raise PerformanceError(
                f"{self.workload} has no {unknown[0]!r}; it has {', '.join(there)}, and keys with a dot "
                "are the cluster's, as links.loss"
            )
        return own

    def _rounds(self) -> Rounds:
        own = self._own((*_OF_THE_WORKLOAD, *_OF_RAILS) if self.workload == NEZHA else _OF_THE_WORKLOAD)
        try:
            return Rounds(
                _quantity(own, "size", "1MiB", Dimension.SIZE), whole("rounds", own.get("rounds", "1")),
                whole("slots", own["slots"]) if "slots" in own else None,
                _quantity(own, "compute", "0s", Dimension.TIME), self._splitting(own),
            )  # fmt: skip
        except ValueError as error:
            raise PerformanceError(f"{self.workload}: {error}") from None

    def _splitting(self, own: Mapping[str, str]) -> Splitting:
        default = Splitting()
        policies = {policy.name.lower(): policy for policy in RailPolicy}
        policy = own.get("policy", default.policy.name.lower())
        if policy not in policies:
            raise PerformanceError(f"{self.workload}: no policy {policy!r}; there are: {', '.join(policies)}")
        return Splitting(policies[policy], _quantity(own, "together", f"{default.together}ps", Dimension.TIME))


def _quantity(own: Mapping[str, str], key: str, default: str, dimension: Dimension) -> int:
    """A setting in whole inner units of its dimension; ValueError names the key."""
    try:
        return round(quantity(own.get(key, default), dimension))
    except ValueError as error:
        raise ValueError(f"{key}: {error}") from None


def run_all(
    requests: Sequence[Request], processes: int, progress: Callable[[float], None], timeline: Path | None = None
) -> list[tuple[Request, Outcome]]:
    """Run them, several in as many processes; `progress` is told the share that is done.

    Raises:
        PerformanceError: a timeline of several runs, or of another than frame mode.
        OSError: it cannot be written.
    """
    if timeline is not None and (len(requests) != 1 or requests[0].mode is not Mode.FRAME):
        raise PerformanceError("a timeline is of one run in frame mode: no --sweep, and --mode frame")
    if len(requests) == 1:
        return [(requests[0], requests[0].run(lambda done, of: progress(done / of), timeline))]
    return list(zip(requests, side_by_side.each(_run, requests, processes, progress), strict=True))


def _run(request: Request) -> Outcome:
    return request.run()


def choices_of(sweeps: Sequence[str]) -> list[list[tuple[str, str]]]:
    """The pairs of each sweep KEY=VALUE,VALUE.

    Raises:
        PerformanceError: it is none, or its key is another one's, too.
    """
    pairs = [pair(sweep) for sweep in sweeps]
    for at, (key, _) in enumerate(pairs):
        if any(other == key for other, _ in pairs[:at]):
            raise PerformanceError(f"{key} is swept twice: give all of its values in one --sweep")
    return [[(key, value) for value in values.split(",")] for key, values in pairs]


def pairs_of(settings: Sequence[str], sweeps: Sequence[str] = ()) -> dict[str, str]:
    """The pairs KEY=VALUE that are set.

    Raises:
        PerformanceError: one is none, or its key is set twice, or swept, too.
    """
    swept = {pair(sweep)[0] for sweep in sweeps}
    found: dict[str, str] = {}
    for key, value in map(pair, settings):
        if key in found:
            raise PerformanceError(f"{key} is set twice, to {found[key]} and {value}: give one, or sweep it")
        if key in swept:
            raise PerformanceError(f"{key} is set to {value}, and swept, too: leave one of them out")
        found[key] = value
    return found


def pair(text: str) -> tuple[str, str]:
    """KEY=VALUE as a pair.

    Raises:
        PerformanceError: it is none.
    """
    key, equals, value = text.partition("=")
    if not equals or not key or not value:
        raise PerformanceError(f"{text!r} is not KEY=VALUE")
    return key, value
