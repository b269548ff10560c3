"""The plots of bench/optimizer.py."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from bench import plots
from catchment.host.layers import Span

_ROWS = {"push": 0, "pull": 1, "read": 2, "write": 3, "commit": 3, "update": 4}
_NAMES = ("network down", "network up", "disk, reads", "disk, writes", "update")
_COLOURS = {
    "push": "#e07b28",
    "pull": "#3a9a5b",
    "read": "#2a6fbb",
    "write": "#7d5bb0",
    "commit": "#c8443c",
    "update": "#c8443c",
}


def timeline(spans: Sequence[Span], layers: int, path: Path) -> None:
    """The figure of which resource was busy when: a row for each resource, a thin lane for each layer."""
    figure = Figure(figsize=(9, 3.6))
    axes = figure.add_subplot()
    origin = min(span.start for span in spans)
    for span in spans:
        lane = 0.8 / layers
        middle = _ROWS[span.kind] - 0.4 + lane * (span.layer + 0.5)
        length = 1e3 * (span.end - span.start)
        axes.barh(middle, length, left=1e3 * (span.start - origin), height=lane, color=_COLOURS[span.kind])
    axes.set_yticks(range(len(_NAMES)), _NAMES)
    axes.invert_yaxis()
    axes.set_xlabel("milliseconds; a lane within a row is a layer")
    plots.save(figure, path)


def devices(seconds: Sequence[float], compute: float, disk: Sequence[float], path: Path) -> None:
    """Iteration time against number of devices (LuWu, Figure 15)."""
    figure = Figure(figsize=(6, 3.2))
    axes = figure.add_subplot()
    counts = range(1, len(seconds) + 1)
    axes.plot(counts, seconds, "o-", color="#2a6fbb", label="measured")
    axes.plot(counts, disk, ":", color="#7d5bb0", label="bytes / rate of the devices")
    axes.axhline(compute, ls="--", color="#9aa3ad", label="compute time of the workers")
    axes.set_ylim(bottom=0)
    axes.set_xlabel("devices")
    axes.set_ylabel("seconds per step")
    axes.legend(frameon=False)
    plots.save(figure, path)
