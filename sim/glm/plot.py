"""The plot of a training: loss and accuracy over epochs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from catchment.host.glm import GlmError, Loss, Report
from catchment.host.glm.targets import score_name

_LOSS, _SCORE = "#2a6fbb", "#e07b28"
_SETTINGS: Any = {"svg.fonttype": "none", "svg.hashsalt": "catchment", "font.size": 10, "axes.spines.top": False}


def check_plot(path: Path) -> None:
    """Refuse a file whose ending is no format of plots.

    Raises:
        GlmError: it names those that are.
    """
    formats = sorted(Figure().canvas.get_supported_filetypes())
    if path.suffix[1:].lower() not in formats:
        raise GlmError(
            f"{path}: its ending {path.suffix!r} names no kind of plot",
            f"one of {', '.join(formats)}",
        )


def save_plot(path: Path, title: str, loss: Loss, reports: Sequence[Report]) -> None:
    """Write the plot; the ending of `path` says which format.

    Raises:
        GlmError: it cannot be written.
    """
    epochs = [report.epoch for report in reports]
    with mpl.rc_context(_SETTINGS):
        figure = Figure(figsize=(7.5, 3.6))
        axis = figure.add_subplot()
        axis.plot(epochs, [report.loss for report in reports], color=_LOSS, marker="o", ms=3)
        axis.set_xlabel("epoch")
        axis.set_ylabel(f"mean {loss.value} loss", color=_LOSS)
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
        axis.set_title(title, fontsize=10, loc="left")
        other = axis.twinx()
        other.plot(epochs, [report.score for report in reports], color=_SCORE, marker="s", ms=3)
        other.set_ylabel(score_name(loss), color=_SCORE)
        metadata = {"Date": None} if path.suffix == ".svg" else None
        try:
            figure.savefig(path, bbox_inches="tight", metadata=metadata)
        except OSError as error:
            raise GlmError(f"{path}: {error.strerror}", "name a file that can be written") from None
