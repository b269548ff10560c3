"""`catchment simulate-step`: a step of training on a cluster, of a system or from Chakra traces."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from catchment.cli.output import JsonOption, print_json
from catchment.controlplane.errors import ControlPlaneError


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
    et: Annotated[Path | None, typer.Option(help="Folder of Chakra traces, NAME.RANK.et.", file_okay=False)] = None,
    scale: Annotated[
        bool, typer.Option("--scale", help="Let the traces of --et, all alike, stand for every GPU of the cluster.")
    ] = False,
    write_et: Annotated[Path | None, typer.Option(help="Folder that gets Chakra traces of the step.")] = None,
    trace: Annotated[Path | None, typer.Option(help="JSON for ui.perfetto.dev.", dir_okay=False)] = None,
    seed: Annotated[int, typer.Option(help="Of stragglers.", min=0)] = 1,
    as_json: JsonOption = False,
) -> None:
    """Simulate a step of training in flow mode (docs/reference/simulate.md)."""
    from catchment.sim.performance.cluster_file import load_cluster  # noqa: PLC0415  only this verb needs these
    from catchment.sim.performance.requests import pair  # noqa: PLC0415
    from catchment.sim.performance.steps.chakra import read_traces, write_traces  # noqa: PLC0415
    from catchment.sim.performance.steps.generate import GENERATORS, Step, rank_count  # noqa: PLC0415
    from catchment.sim.performance.steps.run import run_step  # noqa: PLC0415
    from catchment.sim.performance.steps.scaling import one_for_all  # noqa: PLC0415
    from catchment.sim.performance.steps.transformer import Transformer  # noqa: PLC0415
    from catchment.sim.performance.timeline import write_timeline  # noqa: PLC0415

    found = load_cluster(cluster, dict(map(pair, settings or [])))
    if (system == "et") != (et is not None):
        raise ControlPlaneError("traces are simulated with `et --et FOLDER`")
    step = Step(Transformer(layers, hidden, batch, sequence), micro_steps, group)
    if scale and et is None:
        raise ControlPlaneError("--scale is for the traces of --et")
    if et is not None:
        traces = read_traces(et, found.node.flops)
        traces = [one_for_all(traces)] if scale else traces
    elif system in GENERATORS:
        traces = [GENERATORS[system](found, step, 0)]
    else:
        raise ControlPlaneError(f"no system {system!r}; there are {', '.join(GENERATORS)}, and et")
    outcome, spans = run_step(found, traces, allreduce=allreduce, seed=seed)
    try:
        if trace is not None:
            write_timeline(trace, (span.bar for span in spans))
        if write_et is not None:
            every = (GENERATORS[system](found, step, rank) for rank in range(rank_count(found)))
            write_traces(write_et, system, traces if et is not None else every)
    except OSError as error:
        raise ControlPlaneError(f"cannot write {error.filename}: {error.strerror}") from error
    if as_json:
        print_json(asdict(outcome))
        return
    typer.echo(
        f"{system} on {outcome.ranks} ranks: {outcome.seconds:.4f} s a step, {outcome.computing:.4f} s of it "
        f"computing, {outcome.communicating:.4f} s communicating, {100 * outcome.exposed:.1f} % exposed"
    )
