"""What the command line asks for: a workload on a cluster with settings, and sweeps over them in processes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from catchment.host.collectives.rail_split import RailPolicy
from catchment.sim.performance.cluster_file import load_cluster
from catchment.sim.performance.collectives import COLLECTIVES
from catchment.sim.performance.errors import PerformanceError
from catchment.sim.performance.folding import fold
from catchment.sim.performance.quantities import Dimension, quantity
from catchment.sim.performance.rails import NEZHA, rail_clusters
from catchment.sim.performance.rounds import Rounds, Splitting
from catchment.sim.performance.run import Outcome, Progress, check_flow, estimate, simulate, simulate_folded

_OF_THE_WORKLOAD = ("size", "rounds", "slots", "compute")
_OF_RAILS = ("policy", "together")


class Mode(StrEnum):
    """How closely to look."""

    FRAME = "frame"
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
        if workload not in COLLECTIVES:
            raise PerformanceError(f"no workload {workload!r}; there are: {', '.join(COLLECTIVES)}")
        fixed = tuple(pair(each) for each in settings)
        choices = [[(key, value) for value in values.split(",")] for key, values in map(pair, sweeps)]
        made = []
        for varied in itertools.product(*choices):
            request = cls(workload, cluster, (*fixed, *varied), varied, seed, mode)
            request.check()
            made.append(request)
        return made

    def check(self) -> None:
        """See that it can be run.

        Raises:
            PerformanceError: it cannot.
        """
        self._rounds()
        cluster = load_cluster(self.cluster, self._overrides())
        if self.workload == NEZHA:
            rail_clusters(cluster)
        if self.mode is Mode.FLOW:
            check_flow(self.workload, cluster)
        elif self.mode is Mode.FOLD:
            fold(self.workload, cluster)

    def run(self, progress: Progress | None = None) -> Outcome:
        """Run it."""
        cluster = load_cluster(self.cluster, self._overrides())
        if self.mode is Mode.FLOW:
            return estimate(self.workload, cluster, self._rounds(), seed=self.seed)
        run = simulate_folded if self.mode is Mode.FOLD else simulate
        return run(self.workload, cluster, self._rounds(), seed=self.seed, progress=progress)

    def _overrides(self) -> dict[str, str]:
        return {key: value for key, value in self.settings if "." in key}

    def _rounds(self) -> Rounds:
        own = {key: value for key, value in self.settings if "." not in key}
        there = (*_OF_THE_WORKLOAD, *_OF_RAILS) if self.workload == NEZHA else _OF_THE_WORKLOAD
        unknown = [key for key in own if key not in there]
        if unknown:
            raise PerformanceError(
                f"{self.workload} has no {unknown[0]!r}; it has {', '.join(there)}, and keys with a dot "
                "are the cluster's, as links.loss"
            )
        try:
            return Rounds(
                round(quantity(own.get("size", "1MiB"), Dimension.SIZE)), int(own.get("rounds", "1")),
                int(own["slots"]) if "slots" in own else None,
                round(quantity(own.get("compute", "0s"), Dimension.TIME)), self._splitting(own),
            )  # fmt: skip
        except ValueError as error:
            raise PerformanceError(f"{self.workload}: {error}") from None

    def _splitting(self, own: Mapping[str, str]) -> Splitting:
        default = Splitting()
        policies = {policy.name.lower(): policy for policy in RailPolicy}
        policy = own.get("policy", default.policy.name.lower())
        if policy not in policies:
            raise PerformanceError(f"{self.workload}: no policy {policy!r}; there are: {', '.join(policies)}")
        together = quantity(own["together"], Dimension.TIME) if "together" in own else default.together
        return Splitting(policies[policy], round(together))


def run_all(
    requests: Sequence[Request], processes: int, progress: Callable[[float], None]
) -> list[tuple[Request, Outcome]]:
    """Run them, several in as many processes; `progress` is told the share that is done."""
    if len(requests) == 1:
        return [(requests[0], requests[0].run(lambda done, of: progress(done / of)))]
    outcomes = []
    with ProcessPoolExecutor(min(processes, len(requests))) as pool:
        for outcome in pool.map(_run, requests):
            outcomes.append(outcome)
            progress(len(outcomes) / len(requests))
    return list(zip(requests, outcomes, strict=True))


def _run(request: Request) -> Outcome:
    return request.run()


def pair(text: str) -> tuple[str, str]:
    """KEY=VALUE as a pair.

    Raises:
        PerformanceError: it is none.
    """
    key, equals, value = text.partition("=")
    if not equals or not key or not value:
        raise PerformanceError(f"{text!r} is not KEY=VALUE")
    return key, value
