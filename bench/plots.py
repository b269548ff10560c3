"""How figures are written: as SVG that changes only when what it shows does."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure


def save(figure: Figure, path: Path) -> None:
    """Write `figure` to `path`; makes its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "catchment"}):
        figure.savefig(path, format="svg", bbox_inches="tight", metadata={"Date": None})
