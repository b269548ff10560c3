"""The report's plots, each as an SVG text to be put into the page."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from catchment.demo.outcome import Outcome

_BLUE, _ORANGE, _GREEN, _GREY, _RED, _PURPLE = "#2a6fbb", "#e07b28", "#3a9a5b", "#9aa3ad", "#c8443c", "#7d5bb0"
_KINDS = {"forward": _BLUE, "backward": _PURPLE, "wait": _GREY, "push": _ORANGE, "pull": _GREEN, "update": _RED}
_SETTINGS: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "catchment",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e6e8eb",
    "axes.axisbelow": True,
}


def _svg(figure: Figure) -> str:
    text = io.StringIO()
    figure.savefig(text, format="svg", bbox_inches="tight", metadata={"Date": None, "Creator": None})
    return text.getvalue()[text.getvalue().index("<svg") :]


def _axes(width: float, height: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(width, height))
    return figure, figure.add_subplot()


def _means(rows: Sequence[Sequence[float]]) -> list[float]:
    return [sum(row) / len(row) for row in rows]


def loss_curves(outcome: Outcome, passes: Sequence[bool]) -> str:
    """Loss over training steps: in the network, and in one process; validation as points."""
    with mpl.rc_context(_SETTINGS):
        figure, axes = _axes(8.5, 3.6)
        steps = [sum(passes[: index + 1]) for index in range(len(passes))]
        series = (
            (_means(outcome.reference_losses), _ORANGE, "x", 4.5, "in one process"),
            (_means(outcome.losses), _BLUE, "o", 1.4, "in the network"),
        )
        for means, colour, marker, width, name in series:
            training = [(steps[i], means[i]) for i in range(len(means)) if passes[i]]
            validation = [(steps[i], means[i]) for i in range(len(means)) if not passes[i]]
            if not means:
                continue
            axes.plot(*zip(*training, strict=True), color=colour, lw=width, alpha=0.8, label=name)
            axes.plot(
                *zip(*validation, strict=True), marker, color=colour, ms=7, mfc="none", label=f"{name}, validation"
            )
        axes.set_xlabel("training step")
        axes.set_ylabel("loss, nats per byte")
        axes.legend(frameon=False)
        return _svg(figure)


def loss_gap(outcome: Outcome) -> str:
    """Distance of the two mean losses, pass by pass, on a logarithmic axis."""
    with mpl.rc_context(_SETTINGS):
        figure, axes = _axes(8.5, 2.2)
        pairs = zip(_means(outcome.losses), _means(outcome.reference_losses), strict=False)
        gaps = [abs(a - b) for a, b in pairs]
        axes.semilogy(range(len(gaps)), [max(gap, 1e-9) for gap in gaps], color=_BLUE)
        if outcome.comparison is not None:
            axes.axhline(outcome.comparison.tolerance, color=_RED, lw=1, ls=":")
        axes.set_xlabel("pass")
        axes.set_ylabel("|difference of loss|")
        return _svg(figure)


def volume_bars(volumes: Sequence[dict[str, Any]]) -> str:
    """Bytes sent and received by one worker in one step, beside what other schemes move."""
    with mpl.rc_context(_SETTINGS):
        figure, axes = _axes(8.5, 0.55 * len(volumes) + 0.9)
        names = [str(volume["scheme"]) for volume in volumes]
        sent = [volume["sent"] / 1e6 for volume in volumes]
        received = [volume["received"] / 1e6 for volume in volumes]
        axes.barh(names, sent, color=_ORANGE, label="sent", height=0.6)
        axes.barh(names, received, left=sent, color=_BLUE, label="received", height=0.6)
        axes.invert_yaxis()
        axes.grid(axis="y", visible=False)
        axes.set_xlabel("MB per worker and step (payload)")
        axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
        return _svg(figure)


def step_times(seconds: Sequence[float]) -> str:
    """Seconds of each training step, the slowest worker's."""
    with mpl.rc_context(_SETTINGS):
        figure, axes = _axes(8.5, 2.2)
        axes.plot(range(1, len(seconds) + 1), seconds, color=_BLUE, lw=1)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("training step")
        axes.set_ylabel("seconds")
        return _svg(figure)


def step_timeline(timeline: dict[str, list[dict[str, Any]]]) -> str:
    """The figure of which part was busy with which layer in one step; one row per member and lane of work."""
    rows: list[tuple[str, list[dict[str, Any]]]] = []
    for member, spans in timeline.items():
        for title, kinds in (("compute", ("forward", "backward", "wait", "update")), ("network", ("push", "pull"))):
            chosen = [span for span in spans if span["kind"] in kinds]
            if chosen:
                rows.append((f"{member} {title}", chosen))
    if not rows:
        return ""
    with mpl.rc_context(_SETTINGS):
        origin = min(span["start"] for _, spans in rows for span in spans)
        figure, axes = _axes(8.5, 0.34 * len(rows) + 0.9)
        for row, (_, spans) in enumerate(rows):
            layers = 1 + max(span["layer"] for span in spans)
            for span in spans:
                start, length = 1e3 * (span["start"] - origin), 1e3 * (span["end"] - span["start"])
                overlaps = span["kind"] in ("push", "pull")  # several in flight: a thin lane for each layer
                height = 0.8 / layers if overlaps else 0.8
                middle = row - 0.4 + height * (span["layer"] + 0.5) if overlaps else row
                axes.barh(middle, length, left=start, height=height, color=_KINDS[span["kind"]], lw=0.4)
        axes.set_yticks(range(len(rows)), [name for name, _ in rows])
        axes.invert_yaxis()
        axes.grid(axis="y", visible=False)
        axes.set_xlabel("milliseconds")
        used = {span["kind"] for _, spans in rows for span in spans}
        handles = [mpl.patches.Patch(color=colour, label=kind) for kind, colour in _KINDS.items() if kind in used]
        axes.legend(handles=handles, frameon=False, ncols=6, loc="lower center", bbox_to_anchor=(0.5, 1.0))
        return _svg(figure)
