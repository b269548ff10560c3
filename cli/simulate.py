"""`catchment simulate`: what a workload takes on a cluster that is described in a file."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import Annotated

import typer
from rich.progress import Progress

from catchment.checkout import ROOT
from catchment.cli.output import JsonOption, print_json, print_table
from catchment.cli.simulate_step import MOST_SEED, ModeName, draw, report_steps
from catchment.controlplane.errors import ControlPlaneError
from catchment.controlplane.output_path import check_apart, check_file, check_folder, writing

_SHOWN = 4
"""Rounds whose times the table has; `--json` has all."""
PAPERS = ROOT / "docs" / "measurements" / "papers.md"


def simulate(
    workload: Annotated[
        str,
        typer.Argument(
            help="allreduce, luwu, nezha, p4sgd, ring, tree, switchml; a step of ddp, zero3, mics, coarse; "
            "or figures: docs/measurements/papers.md."
        ),
    ],
    *,
    cluster: Annotated[
        Path | None, typer.Option(help="Cluster file (docs/reference/simulate.md); always needed.", dir_okay=False)
    ] = None,
    output: Annotated[Path, typer.Option(help="Page that `figures` writes.", dir_okay=False)] = PAPERS,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="KEY=VALUE: of the workload (size, rounds; layers, group), or a dotted key of the cluster."
        ),
    ] = None,
    sweep: Annotated[
        list[str] | None, typer.Option(help="KEY=VALUE,VALUE,...: run with each; several keys: with every pair.")
    ] = None,
    mode: Annotated[
        ModeName | None,
        typer.Option(help="How closely (docs/reference/simulate.md); frame, and flow for steps.", show_default=False),
    ] = None,
    processes: Annotated[int, typer.Option(help="Of a sweep.", min=1)] = 2,
    trace: Annotated[
        Path | None,
        typer.Option(help="JSON for ui.perfetto.dev: what ran when; of a step, or in frame mode.", dir_okay=False),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="SVG, PNG or PDF of a sweep: what each run took.", dir_okay=False)
    ] = None,
    seed: Annotated[int, typer.Option(help="Equal seeds give equal runs.", min=0, max=MOST_SEED)] = 1,
    as_json: JsonOption = False,
) -> None:
    """Simulate a workload on a cluster of up to thousands of hosts (docs/reference/simulate.md)."""
    from catchment.sim.performance.quantities import about_share, about_time  # noqa: PLC0415  only this verb needs these
    from catchment.sim.performance.requests import STEPS, Mode, Request, run_all  # noqa: PLC0415
    from catchment.sim.performance.steps.requests import StepRequest  # noqa: PLC0415

    if workload == "figures":
        _write_figures(output)
        return
    if cluster is None:
        raise ControlPlaneError(f"{workload} needs a cluster: --cluster FILE, as sim/clusters/four-racks.yaml")
    sweeps = sweep or []
    check_apart(("--cluster", cluster), ("--trace", trace), ("--plot", plot))
    if plot is not None:
        from catchment.sim.performance.sweep_plot import check_plot  # noqa: PLC0415  only with it matplotlib is needed

        check_plot(plot, sweeps)
        check_file("--plot", plot)
    if trace is not None:
        check_file("--trace", trace)
    if workload in STEPS:
        step = StepRequest.of(workload, cluster, settings or [], seed=seed, mode=Mode(mode or ModeName.FLOW))
        report_steps(step.swept(sweeps), processes, as_json=as_json, trace=trace, plot=plot)
        return
    chosen = Mode(mode or ModeName.FRAME)
    requests = Request.all_of(workload, cluster, settings or [], sweeps, seed=seed, mode=chosen)
    with Progress(transient=True, disable=as_json) as bar:
        task = bar.add_task(f"simulate {workload}", total=1.0)
        with writing(trace):
            outcomes = run_all(requests, processes, lambda share: bar.update(task, completed=share), trace)
    if plot is not None:
        taken = [(dict(request.varied), 1e6 * fmean(outcome.rounds)) for request, outcome in outcomes]
        draw(plot, f"{workload} on {cluster.name}", taken, "us a round")
    if as_json:
        print_json([{"settings": dict(request.settings), **asdict(outcome)} for request, outcome in outcomes])
        return
    rows = []
    for request, outcome in outcomes:
        what = ", ".join(f"{key}={value}" for key, value in request.varied) or workload
        times = ", ".join(map(about_time, outcome.rounds[:_SHOWN]))
        if len(outcome.rounds) > _SHOWN:
            times += f", ... ({len(outcome.rounds)} rounds, {about_time(fmean(outcome.rounds))} on average)"
        shares = map(about_share, (outcome.exposed, outcome.straggler_cost))
        record = outcome.record
        counts = ["-"] * 6
        if record is not None:
            counts = [about_share(record.busiest), *map(str, (record.lost, record.resent, record.dropped)),
                      f"{record.events:,}", f"{record.events_per_second / 1e6:.2g}"]  # fmt: skip
        rows.append((what, times, *shares, *counts))
    columns = ("settings", "rounds", "exposed", "stragglers", "busiest line", "lost", "resent", "dropped", "events",
               "M events/s")  # fmt: skip
    print_table(f"{workload} on {cluster}", columns, rows)


def _write_figures(page: Path) -> None:
    from catchment.sim.performance.figures.page import figure_of, pages_at, write_pages  # noqa: PLC0415  matplotlib

    for each in pages_at(page):
        check_file("--output", each)
    check_folder("--output", figure_of(page).parent)
    with writing(page):
        claims, hold = write_pages(page)
    typer.echo(f"{page}: {claims} claims of the papers, {hold} hold; the study of sums in switches")
