"""The page's figure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from catchment.sim.performance.quantities import size_text


def plot_gains(workers: Sequence[int], sizes: Sequence[int], gains: Sequence[Sequence[float]], path: Path) -> None:
    """How many times longer a ring takes than sums in switches, by workers; a line for each size."""
    mpl.rcParams["svg.hashsalt"] = "catchment"
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.add_subplot()
    for column, size in enumerate(sizes):
        axes.plot(workers, [row[column] for row in gains], marker="o", label=size_text(size))
    axes.set(xscale="log", yscale="log", xlabel="workers", ylabel="ring / sums in switches")
    axes.set_xticks(list(workers), [str(each) for each in workers])
    axes.axhline(1, color="grey", linewidth=0.8)
    axes.grid(visible=True, alpha=0.3)
    axes.legend(title="bytes")
    figure.savefig(path, metadata={"Date": None})
