"""`catchment simulate-step`: a step of training on a cluster, of a system or from Chakra traces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import Progress

from catchment.cli.output import JsonOption, print_json, print_table
from catchment.controlplane.errors import ControlPlaneError
from catchment.controlplane.output_path import check_apart, check_file, check_folder, writing

if TYPE_CHECKING:
    from catchment.sim.performance.steps.requests import StepRequest
    from catchment.sim.performance.steps.run import StepOutcome
    from catchment.sim.performance.sweep_plot import Taken


MOST_SEED = (1 << 64) - 1


class ModeName(StrEnum):
    """What --mode takes."""

    FRAME = "frame"
    TRAIN = "train"
    FOLD = "fold"
    FLOW = "flow"


def simulate_step(
    system: Annotated[str, typer.Argument(help="ddp, zero3, mics, luwu, coarse; or et: the traces of --et.")],
    *,
    cluster: Annotated[Path, typer.Option(help="Cluster file (docs/reference/simulate.md).", dir_okay=False)],
    layers: Annotated[int, typer.Option(help="Of the transformer.", min=1)] = 64,
    hidden: Annotated[int, typer.Option(help="Its hidden size.", min=1)] = 4096,
    batch: Annotated[int, typer.Option(help="Sequences of a GPU and micro-step.", min=1)] = 8,
    sequence: Annotated[int, typer.Option(help="Tokens of a sequence.", min=1)] = 1024,
    micro_steps: Annotated[int, typer.Option(help="Before the optimizer's step.", min=1)] = 1,
    group: Annotated[int, typer.Option(help="Ranks of a partition group of MiCS.", min=1)] = 8,
    allreduce: Annotated[str, typer.Option(help="allreduce (sums in switches) or ring.")] = "allreduce",
    settings: Annotated[list[str] | None, typer.Option("--set", help="KEY=VALUE: a dotted key of the cluster.")] = None,
    sweep: Annotated[
        list[str] | None,
        typer.Option(
            help="KEY=VALUE,VALUE,...: run with each; layers, hidden, batch, sequence, micro_steps, group, allreduce "
            "or a dotted key of the cluster; several keys: with every pair."
        ),
    ] = None,
    processes: Annotated[int, typer.Option(help="Of a sweep.", min=1)] = 2,
    et: Annotated[Path | None, typer.Option(help="Folder of Chakra traces, NAME.RANK.et.", file_okay=False)] = None,
    scale: Annotated[
        bool, typer.Option("--scale", help="Let the traces of --et, all alike, stand for every GPU of the cluster.")
    ] = False,
    write_et: Annotated[Path | None, typer.Option(help="Folder that gets Chakra traces of the step.")] = None,
    trace: Annotated[Path | None, typer.Option(help="JSON for ui.perfetto.dev.", dir_okay=False)] = None,
    plot: Annotated[
        Path | None, typer.Option(help="SVG, PNG or PDF of a sweep: what each step took.", dir_okay=False)
    ] = None,
    mode: Annotated[ModeName, typer.Option(help="How closely (docs/reference/simulate.md).")] = ModeName.FLOW,
    seed: Annotated[int, typer.Option(help="Of stragglers.", min=0, max=MOST_SEED)] = 1,
    as_json: JsonOption = False,
) -> None:
    """Simulate a step of training (docs/reference/simulate.md)."""
    from catchment.sim.performance.quantities import about_share, about_time  # noqa: PLC0415  only this verb needs these
    from catchment.sim.performance.requests import Mode, pairs_of  # noqa: PLC0415
    from catchment.sim.performance.steps.chakra import write_traces  # noqa: PLC0415
    from catchment.sim.performance.steps.generate import GENERATORS, Step  # noqa: PLC0415
    from catchment.sim.performance.steps.ranks import rank_count  # noqa: PLC0415
    from catchment.sim.performance.steps.requests import StepRequest  # noqa: PLC0415
    from catchment.sim.performance.steps.transformer import Transformer  # noqa: PLC0415
    from catchment.sim.performance.timeline import write_timeline  # noqa: PLC0415

    check_apart(("--cluster", cluster), ("--trace", trace), ("--plot", plot), ("--write-et", write_et))
    if plot is not None:
        from catchment.sim.performance.sweep_plot import check_plot  # noqa: PLC0415  only with it matplotlib is needed

        check_plot(plot, sweep or [])
        check_file("--plot", plot)
    if trace is not None:
        check_file("--trace", trace)
    if write_et is not None:
        check_folder("--write-et", write_et)
    step = Step(Transformer(layers, hidden, batch, sequence), micro_steps, group)
    request = StepRequest(
        system, cluster, step, pairs_of(settings or []), allreduce=allreduce, et=et, scale=scale, seed=seed,
        mode=Mode(mode),
    )  # fmt: skip
    requests = request.swept(sweep or [])
    if sweep:
        if trace is not None or write_et is not None:
            raise ControlPlaneError("--trace and --write-et are of one step: no --sweep")
        report_steps(requests, processes, as_json=as_json, plot=plot)
        return
    outcome, spans = request.run()
    if trace is not None:
        with writing(trace):
            write_timeline(trace, (span.bar for span in spans))
    if write_et is not None:
        found = request.load()
        every = (GENERATORS[system](found, step, rank) for rank in range(rank_count(found)))
        with writing(write_et):
            write_traces(write_et, system, request.traces(found) if et is not None else every)
    warn_of_oversubscribed([(request, outcome)])
    if as_json:
        print_json(asdict(outcome))
        return
    typer.echo(
        f"{system} on {outcome.ranks} ranks: {about_time(outcome.seconds)} a step, {about_time(outcome.computing)} of "
        f"it computing, {about_time(outcome.communicating)} communicating, {about_share(outcome.exposed)} exposed"
    )


def report_steps(
    requests: Sequence[StepRequest],
    processes: int,
    *,
    as_json: bool,
    trace: Path | None = None,
    plot: Path | None = None,
) -> None:
    """Run steps and print a line of each.

    Args:
        trace: a file that gets what ran when in the only one.
        plot: a file that gets a figure of a sweep.

    Raises:
        ControlPlaneError: a step cannot be run, or a file cannot be written.
    """
    from catchment.sim.performance.quantities import about_share, about_size, about_time  # noqa: PLC0415  only these verbs
    from catchment.sim.performance.steps.requests import run_steps  # noqa: PLC0415
    from catchment.sim.performance.timeline import write_timeline  # noqa: PLC0415

    first = requests[0]
    if trace is not None:
        if len(requests) != 1:
            raise ControlPlaneError("--trace is of one step: no --sweep")
        outcome, spans = first.run()
        with writing(trace):
            write_timeline(trace, (span.bar for span in spans))
        outcomes = [(first, outcome)]
    else:
        with Progress(transient=True, disable=as_json) as bar:
            task = bar.add_task(f"simulate {first.system}", total=1.0)
            outcomes = run_steps(requests, processes, lambda share: bar.update(task, completed=share))
    if plot is not None:
        taken = [(one.varied, outcome.seconds) for one, outcome in outcomes]
        draw(plot, f"{first.system} on {first.cluster.name}", taken, "s a step")
    warn_of_oversubscribed(outcomes)
    if as_json:
        print_json([{"settings": one.given, **asdict(outcome)} for one, outcome in outcomes])
        return
    rows = [
        (", ".join(f"{key}={value}" for key, value in one.varied.items()) or one.system, str(outcome.ranks),
         *map(about_time, (outcome.seconds, outcome.computing, outcome.communicating)),
         *map(about_share, (outcome.exposed, outcome.straggler_cost, outcome.utilisation, outcome.line)),
         about_size(outcome.sent))
        for one, outcome in outcomes
    ]  # fmt: skip
    columns = ("settings", "ranks", "step", "computing", "communicating", "exposed", "stragglers", "GPUs used",
               "line used", "sent")  # fmt: skip
    print_table(f"{first.system} on {first.cluster}", columns, rows)


def warn_of_oversubscribed(outcomes: Sequence[tuple[StepRequest, StepOutcome]]) -> None:
    """Say on standard error of which steps flow mode's accuracy does not hold, and why; of each reason once."""
    first: dict[str, str] = {}
    for request, outcome in outcomes:
        if outcome.oversubscribed is not None:
            what = ", ".join(f"{key}={value}" for key, value in request.varied.items()) or request.system
            first.setdefault(outcome.oversubscribed, what)
    for line, what in first.items():
        typer.echo(
            f"catchment: {what}: {line}, which takes less than they send: flow mode can be a fifth below train mode "
            "there, seldom more; compare with --mode train",
            err=True,
        )


def draw(path: Path, title: str, taken: Taken, what: str) -> None:
    """Write a figure of a sweep.

    Raises:
        ControlPlaneError: the file cannot be written.
    """
    from catchment.sim.performance.sweep_plot import plot_sweep  # noqa: PLC0415  only with it matplotlib is needed

    with writing(path):
        plot_sweep(path, title, taken, what)
