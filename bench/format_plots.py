"""The plots of bench/formats.py."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from bench import plots
from bench.format_error import EDGES, ErrorDistribution
from bench.format_training import EXACT, Curve

_COLOURS = {
    "floats": "#9aa3ad",
    "block": "#2a6fbb",
    "block of 64": "#7db0e0",
    "delayed": "#3a9a5b",
    "fixed": "#e07b28",
}
_ROUNDING = {"fp32": 2.0**-24, "fp16": 2.0**-11, "bf16": 2.0**-8}


def errors(found: Mapping[str, ErrorDistribution], path: Path) -> None:
    """Draws for each format the share of elements whose relative error is above x."""
    figure = Figure(figsize=(11, 3.6))
    axes = figure.subplots(1, len(_ROUNDING), sharey=True)
    for axis, (name, unit) in zip(axes, _ROUNDING.items(), strict=True):
        for label, colour in _COLOURS.items():
            axis.plot(EDGES, found[f"{name} {label}"].exceeding(), color=colour, label=label)
        axis.axvline(unit, color="black", lw=0.6, ls=":")
        axis.set(xscale="log", yscale="log", ylim=(1e-7, 1.5), title=name, xlabel="relative error of an element")
    axes[0].set_ylabel("share of elements above")
    axes[0].legend(frameon=False, fontsize=8)
    plots.save(figure, path)


def convergence(curves: Mapping[str, Curve], path: Path) -> None:
    """The loss of every run, and how far each is from the exact one."""
    figure = Figure(figsize=(11, 3.6))
    left, right = figure.subplots(1, 2)
    for label, curve in curves.items():
        left.plot(curve.train, lw=1, label=label)
        if label != EXACT:
            apart = np.abs(np.asarray(curve.train) - np.asarray(curves[EXACT].train))
            right.plot(np.maximum(apart, 1e-9), lw=1, label=label)
    left.set(xlabel="step", ylabel="training loss, nats per byte")
    right.set(xlabel="step", ylabel="distance from exact sums", yscale="log")
    right.legend(frameon=False, fontsize=8)
    plots.save(figure, path)
