"""The plot of bench/allreduce.py."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from bench import plots

_COLOURS = {2: "#2a6fbb", 4: "#e07b28", 8: "#3a9a5b"}


def plot(points: Sequence[tuple[str, int, int, float]], path: Path) -> None:
    """How many times faster than gloo, by size; a line for each (way, ranks) of (way, ranks, bytes, ratio)."""
    figure = Figure(figsize=(7, 4))
    axes = figure.add_subplot()
    for way, ranks in dict.fromkeys((way, ranks) for way, ranks, _, _ in points):
        line = sorted((size, ratio) for w, r, size, ratio in points if (w, r) == (way, ranks))
        axes.plot(
            [size for size, _ in line],
            [ratio for _, ratio in line],
            "o-" if way == "shared memory" else "s:",
            color=_COLOURS.get(ranks, "#7d5bb0"),
            label=f"{ranks} ranks, {way}",
        )
    axes.axhline(1, color="#9aa3ad", lw=1)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlabel("bytes of fp32")
    axes.set_ylabel("gloo's time / ours")
    axes.legend(frameon=False, fontsize="small")
    plots.save(figure, path)
