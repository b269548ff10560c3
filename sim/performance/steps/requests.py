"""What the command line asks for: a step of training on a cluster, and sweeps over its settings in processes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from catchment.sim.performance import side_by_side
from catchment.sim.performance.cluster import Cluster
from catchment.sim.performance.cluster_file import load_cluster
from catchment.sim.performance.errors import PerformanceError
from catchment.sim.performance.folding import fold
from catchment.sim.performance.planning import check_ways
from catchment.sim.performance.quantities import whole
from catchment.sim.performance.requests import Mode, choices_of, pairs_of
from catchment.sim.performance.run import Progress, hosts_alike, workers_of
from catchment.sim.performance.steps.chakra import read_traces
from catchment.sim.performance.steps.execute import Span
from catchment.sim.performance.steps.frames import check_frames
from catchment.sim.performance.steps.generate import GENERATORS, Step
from catchment.sim.performance.steps.graph import Trace
from catchment.sim.performance.steps.ranks import rank_count, rank_nodes
from catchment.sim.performance.steps.run import StepOutcome, check_step, of_all, run_step, run_step_in_frames
from catchment.sim.performance.steps.scaling import one_for_all

ET = "et"
"""The system whose steps are traces."""
_FOLDS = {"ddp": "allreduce", "luwu": "luwu"}
"""Systems whose hosts all do the same -> the collective of which that is so."""
_NUMBERS: dict[str, Callable[[Step, int], Step]] = {
    "layers": lambda step, number: replace(step, model=replace(step.model, layers=number)),
    "hidden": lambda step, number: replace(step, model=replace(step.model, hidden=number)),
    "batch": lambda step, number: replace(step, model=replace(step.model, batch=number)),
    "sequence": lambda step, number: replace(step, model=replace(step.model, sequence=number)),
    "micro_steps": lambda step, number: replace(step, micro_steps=number),
    "group": lambda step, number: replace(step, group=number),
}
"""A step's numbers that a sweep may vary: the step with another one."""


@dataclass(frozen=True, slots=True)
class StepRequest:
    """One simulation of a step.

    Attributes:
        system: of `GENERATORS`, or "et" for the traces of folder `et`; `scale`: one of them stands for every GPU.
        settings: dotted keys of the cluster -> text.
        varied: what a sweep varies, for its report.
        told: what `of` was told and a sweep varies, key -> text.
    """

    system: str
    cluster: Path
    step: Step
    settings: Mapping[str, str] = field(default_factory=dict)
    varied: Mapping[str, str] = field(default_factory=dict)
    told: Mapping[str, str] = field(default_factory=dict)
    allreduce: str = "allreduce"
    et: Path | None = None
    scale: bool = False
    seed: int = 1
    mode: Mode = Mode.FLOW

    @classmethod
    def of(
        cls, system: str, cluster: Path, settings: Sequence[str], *, seed: int = 1, mode: Mode = Mode.FLOW
    ) -> StepRequest:
        """The step of a system with settings KEY=VALUE: a step's numbers, `allreduce` and dotted keys of the cluster.

        Raises:
            PerformanceError: a key or a value that there is not.
        """
        return cls(system, cluster, Step(), seed=seed, mode=mode)._with(pairs_of(settings), reported={})

    def swept(self, sweeps: Sequence[str]) -> list[StepRequest]:
        """This one with each combination of `KEY=VALUE,VALUE,...`; each checked before anything runs.

        Raises:
            PerformanceError: a key or a value that there is not.
        """
        pairs_of([f"{key}={value}" for key, value in self.given.items()], sweeps)
        requests = [self._with(dict(varied)) for varied in itertools.product(*choices_of(sweeps))]
        for request in requests:
            cluster = request.load()
            ring = request.system not in _FOLDS or request.allreduce == "ring"
            check_ways(cluster, workers_of(cluster), ring=ring)
            if request.mode is Mode.FLOW:
                check_step(cluster, request.allreduce)
            else:
                check_frames(cluster)
            if request.mode is Mode.FOLD:
                request.folded(cluster)
            traces = request.traces(cluster)
            if request.mode is Mode.FLOW:
                check_step(cluster, request.allreduce, traces)
        return requests

    @property
    def given(self) -> dict[str, str]:
        """Each key that was set or swept -> its text."""
        return {**self.settings, **self.told}

    def load(self) -> Cluster:
        """The cluster, with the settings."""
        return load_cluster(self.cluster, dict(self.settings))

    def traces(self, cluster: Cluster) -> list[Trace]:
        """What ranks do.

        Raises:
            PerformanceError: no such system, or traces without `et`.
        """
        if (self.system == ET) != (self.et is not None):
            raise PerformanceError("traces are simulated with `et --et FOLDER`")
        if self.et is not None:
            read = read_traces(self.et, [node.flops for node in rank_nodes(cluster)])
            if not self.scale:
                return read
            one = one_for_all(read)
            return [one] if self.mode is Mode.FLOW else [replace(one, rank=rank) for rank in range(rank_count(cluster))]
        if self.scale:
            raise PerformanceError("--scale is for the traces of --et")
        if self.system not in GENERATORS:
            raise PerformanceError(f"no system {self.system!r}; there are {', '.join(GENERATORS)}, and {ET}")
        self.step.check_size()
        # Where ranks differ, no one of them can stand for all; in frame mode hosts stand for others.
        ranks = range(1 if cluster.alike and self.mode is Mode.FLOW else rank_count(cluster))
        return [GENERATORS[self.system](cluster, self.step, rank) for rank in ranks]

    def run(self, progress: Progress | None = None) -> tuple[StepOutcome, list[Span]]:
        """Simulate it: what it gave, and what ran when."""
        cluster = self.load()
        if self.mode is Mode.FLOW:
            for_all = self.system != ET or self.scale
            traces = self.traces(cluster)
            return run_step(cluster, traces, allreduce=self.allreduce, seed=self.seed, for_all=for_all)
        if self.mode is Mode.FRAME:
            return self._in_frames(cluster, progress, trains=False)
        try:
            folded = self.folded(cluster)
            outcome, spans = self._in_frames(folded, progress, trains=True)
        except PerformanceError:
            if self.mode is Mode.FOLD:
                raise
            return self._in_frames(cluster, progress, trains=True)
        if outcome.record is not None and not hosts_alike(outcome.record):
            if self.mode is Mode.FOLD:
                raise PerformanceError("frames were sent again, hosts do not behave alike: use --mode train")
            return self._in_frames(cluster, progress, trains=True)
        return of_all(outcome, spans, cluster, folded), spans

    def folded(self, cluster: Cluster) -> Cluster:
        """The cluster with a few hosts that stand for all.

        Raises:
            PerformanceError: the step's hosts do not all do the same.
        """
        kind = _FOLDS.get(self.system)
        if kind is None or self.allreduce != "allreduce":
            raise PerformanceError(
                f"hosts of {self.system} by {self.allreduce} do not all do the same; those of {', '.join(_FOLDS)} do, "
                "with sums in switches: use --mode train, or flow"
            )
        return fold(kind, cluster)

    def _in_frames(
        self, cluster: Cluster, progress: Progress | None, *, trains: bool
    ) -> tuple[StepOutcome, list[Span]]:
        return run_step_in_frames(
            cluster, self.traces(cluster), allreduce=self.allreduce, seed=self.seed, trains=trains, progress=progress
        )

    def _with(self, varied: Mapping[str, str], reported: Mapping[str, str] | None = None) -> StepRequest:
        shown = varied if reported is None else reported
        told = {**self.told, **varied}
        request = replace(self, varied=shown, told=told, settings={**self.settings, **_dotted(varied)})
        for key, value in varied.items():
            if key == "allreduce":
                request = replace(request, allreduce=value)
            elif "." not in key:
                request = replace(request, step=_changed(request.step, key, value))
        return request


def _dotted(varied: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in varied.items() if "." in key}


def _changed(step: Step, key: str, value: str) -> Step:
    if key not in _NUMBERS:
        raise PerformanceError(
            f"a step has no {key!r}; it has {', '.join(_NUMBERS)}, allreduce, and keys with a dot are the cluster's, "
            "as links.host"
        )
    try:
        number = whole(key, value)
    except ValueError as error:
        raise PerformanceError(str(error)) from None
    if number < 1:
        raise PerformanceError(f"{key}={value}: give a number from 1")
    return _NUMBERS[key](step, number)


def run_steps(
    requests: Sequence[StepRequest], processes: int, progress: Callable[[float], None]
) -> list[tuple[StepRequest, StepOutcome]]:
    """Run them, several in so many processes; `progress` is told the share that is done."""
    if len(requests) == 1:
        return [(requests[0], requests[0].run(lambda done, of: progress(done / of))[0])]
    return list(zip(requests, side_by_side.each(_outcome, requests, processes, progress), strict=True))


def _outcome(request: StepRequest) -> StepOutcome:
    return request.run()[0]
