"""A figure of a sweep: what each combination took, by the key that was swept first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from catchment.sim.performance.errors import PerformanceError
from catchment.sim.performance.quantities import Dimension, quantity

FORMATS = {".svg": "Date", ".png": "Software", ".pdf": "CreationDate"}
"""Endings of files -> what such a file would say that differs from run to run."""
_WIDE = 20
"""Values whose largest is so many times the smallest are on a logarithmic axis."""

Taken = Sequence[tuple[Mapping[str, str], float]]
"""Combinations, key -> value in the order of the sweep's keys, and how long each took."""


def check_plot(path: Path, sweeps: Sequence[str]) -> None:
    """See that a sweep can be drawn in this file.

    Raises:
        PerformanceError: there is no sweep, or the file's name has no known ending.
    """
    if not sweeps:
        raise PerformanceError("--plot is of a sweep: give --sweep KEY=VALUE,VALUE")
    if path.suffix.lower() not in FORMATS:
        raise PerformanceError(f"{path}: a plot is a file that ends in {', '.join(FORMATS)}")


def plot_sweep(path: Path, title: str, taken: Taken, what: str) -> None:
    """Write the figure; a line for each combination of the other keys.

    Args:
        what: the vertical axis, with its unit.

    Raises:
        OSError: the file cannot be written.
    """
    key, *others = taken[0][0]
    texts = list(dict.fromkeys(values[key] for values, _ in taken))
    places = _numbers(texts) or list(range(len(texts)))
    at = dict(zip(texts, places, strict=True))
    lines: dict[str, list[tuple[float, float]]] = {}
    for values, seconds in taken:
        name = ", ".join(f"{other}={values[other]}" for other in others)
        lines.setdefault(name, []).append((at[values[key]], seconds))
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.add_subplot()
    for name, points in lines.items():
        axes.plot(*zip(*sorted(points), strict=True), marker="o", label=name or None)
    axes.set(title=title, xlabel=key, ylabel=what)
    axes.set_xscale("log" if _wide(places) else "linear")
    axes.set_yscale("log" if _wide([seconds for _, seconds in taken]) else "linear")
    axes.set_xticks(places, texts, minor=False)
    axes.set_xticks([], minor=True)
    axes.grid(visible=True, alpha=0.3)
    if others:
        axes.legend()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "catchment"}):
        figure.savefig(path, metadata={FORMATS[path.suffix.lower()]: None})


def _wide(values: Sequence[float]) -> bool:
    return min(values) > 0 and max(values) > _WIDE * min(values)


def _numbers(texts: Sequence[str]) -> list[float]:
    """What they stand for, all in one dimension; [] where they are no numbers."""
    readers: list[Callable[[str], float]] = [float, *(partial(quantity, dimension=each) for each in Dimension)]
    for read in readers:
        try:
            return [read(text) for text in texts]
        except ValueError:
            continue
    return []
