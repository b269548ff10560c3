"""The paper's figures 9 to 12 from the cycle model (sim/golden/glm_cycles.py), each as a plot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench import glm_table3, plots, report
from catchment.sim.cosim.glm import clocks
from catchment.sim.golden import glm_cycles as cycles

PIPELINE = cycles.Pipeline()
_BATCHES = (16, 64, 256, 1024)
_GISETTE, _REAL_SIM, _RCV1, _AMAZON, _AVAZU = cycles.PAPER_WORKLOADS
_COLOURS = ("#2a6fbb", "#e07b28", "#3a9a5b", "#7d5bb0", "#c8443c")
STATED = {("rcv1", 16): 2.0, ("amazon_fashion", 16): 4.8, ("amazon_fashion", 1024): 1.0}
"""How much faster model parallelism is, as section V-C says; the other bars of Figure 9 have no numbers in the text."""


def measure(folder: Path) -> tuple[list[report.Figure], list[str]]:
    """Figures and notes; plots go to `folder`."""
    figures, notes = _ideal_clocks()
    for part in (glm_table3.all_reduce, glm_table3.area):
        found, said = part()
        figures += found
        notes += said
    found, said = _parallelism(folder)
    figures += found + _scaling(folder) + _mini_batches(folder)
    notes += said
    notes += [
        f"cycle model: {cycles.CLOCK_HZ / 1e6:.0f} MHz, all-reduce {cycles.PAPER_NETWORK.latency * 1e6:.1f} us"
        f" + {cycles.PAPER_NETWORK.bandwidth / 1e9:.0f} Gb/s (both as the paper states), pipeline {PIPELINE}",
        "figures 10 to 12 have no numbers in the paper's text but the trends of section V-D, which are counted above;"
        " its one number is 'closely linear' for a million features (Figure 12)",
    ]
    return figures, notes


def _steady(workload: cycles.Workload, setting: cycles.Setting) -> float:
    return cycles.steady_iteration(workload, setting, PIPELINE)


def _ideal_clocks() -> tuple[list[report.Figure], list[str]]:
    """Clocks a micro-batch in the middle of a mini-batch, in the Verilated hardware, by ceil(D / 4096) * bits."""
    setting = cycles.Setting()
    found, constants = [], set()
    for workload in cycles.PAPER_WORKLOADS:
        seen = clocks.of_paper(workload, setting)
        assert seen.ideal == cycles.pass_clocks(setting.shares(workload), setting.bits)
        found.append(
            report.Figure(f"{workload.name}: a micro-batch", seen.micro_batch, "clocks", "ideal", seen.ideal, 1.0)
        )
        constants.add(seen.constant)
        constants.add(_constant(workload, setting, seen.all_reduce))
    note = (
        f"clocks at 8 workers x 8 engines x {setting.bits} bits: a worker of rtl/glm with 8 engines, Verilated, its"
        f" share of each workload (random samples: only their number matters), sums returned after"
        f" {2 * clocks.PAPER_HOP} clocks; ideal is ceil(D / 4096) * bits; a mini-batch takes one all-reduce and"
        f" {' or '.join(map(str, sorted(constants)))} clocks more, in hardware and cycle model"
    )
    return found, [note]


def _constant(workload: cycles.Workload, setting: cycles.Setting, all_reduce: int) -> int:
    """What a mini-batch takes beyond its micro-batches and an all-reduce, as the cycle model says."""
    shares = setting.shares(workload)
    done = cycles.mini_batches([8, 8], shares.engine_chunks, setting.bits, all_reduce, PIPELINE)
    return done[1] - done[0] - 8 * cycles.pass_clocks(shares, setting.bits) - all_reduce


@dataclass(frozen=True, slots=True)
class _Transfer:
    """What the stated ratios of B = 16 say about the paper's data parallelism, if both ways have the same overhead.

    Attributes:
        bandwidth: elements of a gradient a second.
        overhead: seconds of an iteration beyond Equations 1 and 3.
    """

    bandwidth: float
    overhead: float


def _model_parallel(workload: cycles.Workload, batch: int) -> float:
    return cycles.micro_batch_iteration(workload, cycles.Setting(workers=4, batch=batch))


def _data_parallel(workload: cycles.Workload, batch: int, network: cycles.Network = cycles.PAPER_NETWORK) -> float:
    return cycles.data_parallel_iteration(workload, cycles.Setting(workers=4, batch=batch), network)


_FREE = cycles.Network(cycles.PAPER_NETWORK.latency, float("inf"))
"""Gradients that cost their latency only, as if their transfer hid behind the computation."""


def _implied() -> _Transfer:
    """Solves DP + D / bandwidth + overhead = stated ratio * (MP + overhead) for rcv1 and amazon_fashion."""
    rows, rights = [], []
    for workload in (_RCV1, _AMAZON):
        ratio = STATED[workload.name, 16]
        rows.append((workload.features, 1 - ratio))
        rights.append(ratio * _model_parallel(workload, 16) - _data_parallel(workload, 16, _FREE))
    per_element, overhead = np.linalg.solve(np.array(rows), np.array(rights))
    return _Transfer(1 / float(per_element), float(overhead))


def _parallelism(folder: Path) -> tuple[list[report.Figure], list[str]]:
    """Figure 9: time per epoch, data-parallel over model-parallel, 4 workers of 8 engines."""
    found, bounds = [], []
    implied = _implied()
    figure = Figure(figsize=(9, 3.4))
    for axis, workload in zip(figure.subplots(1, 2), (_RCV1, _AMAZON), strict=True):
        ratios = [_data_parallel(workload, batch) / _model_parallel(workload, batch) for batch in _BATCHES]
        free = [_data_parallel(workload, batch, _FREE) / _model_parallel(workload, batch) for batch in _BATCHES]
        fitted = [
            (_data_parallel(workload, batch, _FREE) + workload.features / implied.bandwidth + implied.overhead)
            / (_model_parallel(workload, batch) + implied.overhead)
            for batch in _BATCHES
        ]
        for batch, ratio, least, fit in zip(_BATCHES, ratios, free, fitted, strict=True):
            if (stated := STATED.get((workload.name, batch))) is None:
                continue
            name = f"{workload.name}, B={batch}: DP / MP (Figure 9)"
            found.append(report.Figure(name, ratio, "x", "paper, stated", stated))
            bounds.append(f"{workload.name} B={batch}: {least:.2f} to {ratio:.2f}, fitted {fit:.2f}, stated {stated:g}")
        axis.plot(_BATCHES, ratios, marker="o", color=_COLOURS[0], label="Equations 1 and 3, 32-bit gradients")
        axis.plot(_BATCHES, free, marker="o", ls="--", color=_COLOURS[2], label="gradients' transfer hidden")
        axis.plot(_BATCHES, fitted, ":", color=_COLOURS[3], label="fitted to what is stated")
        points = [(batch, value) for (name, batch), value in STATED.items() if name == workload.name]
        axis.plot(*zip(*points, strict=True), "x", ms=8, color=_COLOURS[4], label="paper, stated in V-C")
        _finish(axis, f"{workload.name}, 4 workers", "mini-batch", "time of DP / time of MP", _BATCHES)
    figure.tight_layout()
    plots.save(figure, folder / "glm-figure-9.svg")
    link_bits = cycles.PAPER_NETWORK.bandwidth / implied.bandwidth
    said = (
        f"Figure 9, from gradients that cost nothing to 32 bits an element at 100 Gb/s: {'; '.join(bounds)}."
        f" The ratios stated for B=16 are those of {link_bits:.0f} bits an element and"
        f" {implied.overhead * 1e6:.1f} us more an iteration, both ways"
    )
    return found, [said]


def _scaling(folder: Path) -> list[report.Figure]:
    """Figures 11 and 12: more engines in one worker, more workers of eight engines."""
    counts = (1, 2, 4, 8)
    one = cycles.Setting(workers=1, engines=1, batch=64)
    up = [replace(one, engines=count) for count in counts]
    out = [cycles.Setting(workers=count, batch=16) for count in counts]
    figure = Figure(figsize=(9, 3.4))
    left, right = figure.subplots(1, 2)
    _curves(left, (_GISETTE, _REAL_SIM, _RCV1), counts, up)
    up_curves = _curves(left, (_GISETTE, _REAL_SIM, _RCV1), counts, up)
    left.plot(counts, counts, ":", color="black", lw=0.8, label="linear")
    _finish(left, "Figure 11: 1 worker, B=64 (paper: more features, more speed-up)", "engines", "speed-up", counts)
    out_curves = _curves(right, cycles.PAPER_WORKLOADS, counts, out)
    right.plot(counts, counts, ":", color="black", lw=0.8, label="linear; paper: avazu is close")
    _finish(right, "Figure 12: 8 engines, B=16 (paper: more features, more speed-up)", "workers", "speed-up", counts)
    figure.tight_layout()
    plots.save(figure, folder / "glm-figures-11-12.svg")
    found = [
        report.Figure(f"{workload.name}: 8 {what} over 1 (Figure {number})", curve[-1], "x", "linear", 8.0)
        for number, what, curves in ((11, "engines", up_curves), (12, "workers", out_curves))
        for workload, curve in curves.items()
    ]
    for number, curves in ((11, up_curves), (12, out_curves)):
        ordered = [curve for _, curve in sorted(curves.items(), key=lambda item: item[0].features)]
        trends = (
            all(curve == sorted(curve) for curve in ordered),
            all(list(step) == sorted(step) for step in zip(*ordered, strict=True)),
        )
        found.append(
            report.Figure(f"Figure {number}: trends of V-D that hold", sum(trends), "of", "paper", len(trends))
        )
    return found


def _mini_batches(folder: Path) -> list[report.Figure]:
    """Figure 10: throughput over that at B = 16, 8 workers of 8 engines."""
    figure = Figure(figsize=(4.8, 3.4))
    axis = figure.add_subplot()
    found = {}
    for workload, colour in zip(cycles.PAPER_WORKLOADS, _COLOURS, strict=True):
        rates = [batch / _steady(workload, cycles.Setting(batch=batch)) for batch in _BATCHES]
        axis.plot(_BATCHES, [rate / rates[0] for rate in rates], marker="o", color=colour, label=workload.name)
        found[workload.name] = rates[-1] / rates[0]
    _finish(axis, "Figure 10 (paper: fewer features gain more)", "mini-batch", "speed-up over B=16", _BATCHES)
    figure.tight_layout()
    plots.save(figure, folder / "glm-figure-10.svg")
    gains = list(found.values())
    trends = min(gains) > 1, gains == sorted(gains, reverse=True)  # of workloads by rising features
    return [
        *(
            report.Figure(f"{name}: B=1024 over B=16 (Figure 10)", gain, "x", "none", 1.0)
            for name, gain in found.items()
        ),
        report.Figure("Figure 10: trends of V-D that hold", sum(trends), "of", "paper", len(trends)),
    ]


def _curves(
    axis: Axes, workloads: Sequence[cycles.Workload], counts: Sequence[int], settings: Sequence[cycles.Setting]
) -> dict[cycles.Workload, list[float]]:
    """Each workload's speed-up over the first setting."""
    curves = {}
    for workload, colour in zip(workloads, _COLOURS, strict=False):
        times = [_steady(workload, setting) for setting in settings]
        curves[workload] = [times[0] / time for time in times]
        axis.plot(counts, curves[workload], marker="o", color=colour, label=workload.name)
    return curves


def _finish(axis: Axes, title: str, x: str, y: str, ticks: Sequence[int]) -> None:
    axis.set_xscale("log", base=2)
    axis.set_xticks(ticks, [str(tick) for tick in ticks])
    axis.set_title(title, fontsize=9, loc="left")
    axis.set_xlabel(x)
    axis.set_ylabel(y)
    axis.legend(frameon=False, fontsize=8)
