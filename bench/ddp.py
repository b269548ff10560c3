"""`make bench-ddp`: whole steps of DistributedDataParallel on this machine, beside gloo's, taking turns.

Four ranks train a ResNet-like network and the demo's decoder: forward, backward with DDP's all-reduces in it, and the
optimizer. Only the backend's name differs. Ours goes over shared memory through the switch's process, and, a second
time, through the switch in its callers. torch's own MPI backend is left out, and that is said, where torch has none.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Annotated

import torch.distributed as dist
import typer
from matplotlib.figure import Figure as Drawing

from bench import plots
from bench.allreduce_ranks import Ranks, gloo, shared_memory
from bench.ddp_member import MODELS
from bench.report import RESULTS, Figure, publish
from catchment.program import run_program

MEMBER = "bench.ddp_member"
PROCESS, CALLERS, GLOO = "the switch's process", "in the callers", "gloo"
GOAL = 1.0


def step_seconds(ranks: Ranks, model: str, steps: int) -> float:
    """Median time of a step."""
    return median(time for times in ranks.answers({"model": model, "steps": steps}) for time in times)


def figures_of(model: str, seconds: dict[str, list[float]], ranks: int) -> list[Figure]:
    """Each of our ways beside gloo: of the turn whose ratio is the median."""
    figures = []
    for way in (PROCESS, CALLERS):
        pairs = sorted(zip(seconds[way], seconds[GLOO], strict=True), key=lambda pair: pair[0] / pair[1])
        ours, other = pairs[len(pairs) // 2]
        figures.append(Figure(f"{ranks} ranks, {model}, {way}", ours * 1e3, "ms", GLOO, other * 1e3, GOAL))
    return figures


def plot(figures: Sequence[Figure], path: Path) -> None:
    """Gloo's time of a step by ours, a bar for each figure."""
    drawing = Drawing(figsize=(7, 0.5 * len(figures) + 1))
    axes = drawing.add_subplot()
    axes.barh([figure.name for figure in figures], [1 / figure.ratio for figure in figures], color="#2a6fbb")
    axes.axvline(1, color="#9aa3ad", lw=1)
    axes.invert_yaxis()
    axes.set_xlabel("gloo's time of a step / ours")
    plots.save(drawing, path)


def main(
    *,
    ranks: Annotated[int, typer.Option(help="Processes.", min=2)] = 4,
    turns: Annotated[int, typer.Option(help="Of each model.", min=1)] = 7,
    steps: Annotated[int, typer.Option(help="In a turn.", min=1)] = 20,
) -> None:
    """Measure and publish steps of DDP through the switch, beside gloo's."""
    figures: list[Figure] = []
    with (
        gloo(ranks, MEMBER) as theirs,
        shared_memory(ranks, "torch", in_callers=False, member=MEMBER) as process,
        shared_memory(ranks, "torch", in_callers=True, member=MEMBER) as callers,
    ):
        ways = {GLOO: theirs, PROCESS: process, CALLERS: callers}
        for model in MODELS:
            for way in ways.values():
                step_seconds(way, model, 1)
            seconds: dict[str, list[float]] = {name: [] for name in ways}
            for _ in range(turns):
                for name, way in ways.items():
                    seconds[name].append(step_seconds(way, model, steps))
            figures += figures_of(model, seconds, ranks)
    has_mpi = dist.is_mpi_available()
    notes = [
        f"{os.cpu_count()} cores for {ranks} ranks, a thread each, and the switch",
        "torch's MPI backend is not measured" if has_mpi else "torch's MPI backend is left out: this torch has none",
    ]
    publish("ddp", figures, notes)
    plot(figures, RESULTS / "ddp.svg")


if __name__ == "__main__":
    run_program(main)
