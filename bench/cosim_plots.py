"""The plots of bench/cosim.py."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure as Canvas

from bench import plots
from bench.cosim_flow import Flow

_PARTS = ("payload", "headers", "ethernet", "heartbeats", "resent", "idle")


def plot_flows(flows: Sequence[Flow], path: Path) -> None:
    """Each share of a worker's link, by frame size and workers."""
    sizes = sorted({flow.vector_bytes for flow in flows})
    figure = Canvas(figsize=(9, 3.6), layout="constrained")
    axes = figure.subplots(1, len(sizes), sharey=True, squeeze=False)[0]
    for axis, size in zip(axes, sizes, strict=True):
        here = [flow for flow in flows if flow.vector_bytes == size]
        names = [str(flow.workers) for flow in here]
        floor = [0.0] * len(here)
        for part in _PARTS:
            heights = [100 * max(0.0, getattr(flow, part)) for flow in here]
            axis.bar(names, heights, bottom=floor, label=part)
            floor = [low + high for low, high in zip(floor, heights, strict=True)]
        axis.set_title(f"vectors of {size} B")
        axis.set_xlabel("workers")
    axes[0].set_ylabel("% of 100 Gb/s, worker to switch")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right upper")
    plots.save(figure, path)


def plot_latency(points: Sequence[tuple[int, float, float]], path: Path) -> None:
    """Push to the last byte in memory: (bytes, us measured, us that the link alone takes)."""
    figure = Canvas(figsize=(5.5, 3.6), layout="constrained")
    axis = figure.subplots()
    sizes = [size for size, *_ in points]
    axis.loglog(sizes, [us for _, us, _ in points], marker="o", label="push to memory")
    axis.loglog(sizes, [us for *_, us in points], linestyle="--", label="link alone")
    axis.set_xlabel("bytes pushed by each worker")
    axis.set_ylabel("us")
    axis.legend()
    plots.save(figure, path)


def plot_speed(points: Sequence[tuple[int, float, float]], path: Path) -> None:
    """Simulated clocks a second by NICs: (NICs, busy, idle)."""
    figure = Canvas(figsize=(5.5, 3.6), layout="constrained")
    axis = figure.subplots()
    nics = [count for count, *_ in points]
    axis.plot(nics, [busy / 1000 for _, busy, _ in points], marker="o", label="all pushing at line rate")
    axis.plot(nics, [idle / 1000 for *_, idle in points], marker="s", label="nothing to do")
    axis.axhline(20, linestyle="--", color="grey", label="aim, 9 NICs")
    axis.set_ylim(bottom=0)
    axis.set_xlabel("NICs")
    axis.set_ylabel("thousand clocks a second")
    axis.legend()
    plots.save(figure, path)
