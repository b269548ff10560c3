"""Writes docs/measurements/papers.md, papers-elsewhere.md, switch-or-ring.md and its figure."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path

from catchment.sim.performance.figures import coarse, luwu, mics, nezha, p4sgd, study
from catchment.sim.performance.figures.claim import Claim
from catchment.sim.performance.figures.elsewhere import ROWS
from catchment.sim.performance.figures.plot import plot_gains
from catchment.wire.generated.constants import MAX_WORKERS

_HEADS = ("where", "what", "paper's", "ours", "tolerance", "holds", "ours is", "inputs from the paper", "note")
_STUDY = (
    "Hosts at 100 Gb/s in racks of 32, spines with 400 Gb/s to a rack (where nothing else is said); vectors of "
    f"256 B in switches, frames of 1 KiB on the ring. More than {MAX_WORKERS} racks need a switch program for more "
    f"members than today's {MAX_WORKERS}.",
    "A sum in switches takes each line once, so that its time hardly depends on how many add; a ring has 2 (p - 1) "
    "steps, each with a latency. One lost frame keeps all workers of a sum waiting: at 1 % on every line the ring "
    "is faster. Both cross each rack's uplink once, at one host's rate, so a single job notices oversubscription "
    "only where the uplink is slower than a host.",
)
STUDY = "switch-or-ring.md"
ELSEWHERE = "papers-elsewhere.md"
_FIGURE = "the ring's time by that of sums in switches"


def all_claims() -> list[Claim]:
    """Every claim that can be compared here."""
    return [claim for part in (luwu, p4sgd, nezha, mics, coarse) for claim in part.claims()]


def pages_at(page: Path) -> tuple[Path, Path, Path]:
    """The page of the papers, and those beside it: of what has no row, and of the study."""
    return page, page.with_name(ELSEWHERE), page.with_name(STUDY)


def figure_of(page: Path) -> Path:
    """The study's figure, in the folder `figures` beside that of the page."""
    return page.absolute().parent.parent / "figures" / "in-switch-by-ring.svg"


def write_pages(page: Path) -> tuple[int, int]:
    """Write the page of the papers, beside it those of what has no row and of the study, and its figure in `figures/`.

    Returns:
        How many claims there are, and how many hold.

    Raises:
        OSError: one cannot be written.
    """
    figure = figure_of(page)
    figure.parent.mkdir(exist_ok=True)
    plot_gains(study.WORKERS, study.SIZES, study.gains(), figure)
    claims = all_claims()
    page.write_text(render_papers(claims), encoding="utf-8")
    _, elsewhere, of_study = pages_at(page)
    elsewhere.write_text(render_elsewhere(), encoding="utf-8")
    of_study.write_text(render_study(study.tables()), encoding="utf-8")
    return len(claims), sum(claim.holds for claim in claims)


def render_papers(claims: Sequence[Claim]) -> str:
    """The text of the page of the papers: a section for each."""
    parts = [
        "# The papers beside this project\n",
        "What the five papers claim, beside what comes out here; `catchment simulate figures` has written it.\n"
        "Models and constants are in [performance.md](../explanation/performance.md). What none of them has is\n"
        f"[how many times longer a ring takes than sums in switches]({STUDY}), up to 4096 workers. What has no row\n"
        f"is on [a page of its own]({ELSEWHERE}).\n",
        f"![{_FIGURE}](../figures/in-switch-by-ring.svg)\n",
    ]
    for paper in dict.fromkeys(claim.paper for claim in claims):
        parts.append(f"## {paper}\n")
        parts.append(_table(_HEADS, [_cells(claim) for claim in claims if claim.paper == paper]))
    return "\n".join(parts)


def render_elsewhere() -> str:
    """The text of the page of what no claim is of."""
    return "\n".join([
        "# Figures and tables of the papers that have no row\n",
        "Beside those on [the papers' page](papers.md): drawings, what a real run measures on a page of its own, and\n"
        "what cannot be had here, with what is missing for it; `catchment simulate figures` has written it.\n",
        _table(("paper", "where", "what"), [(row.paper, ", ".join(row.places), row.why) for row in ROWS]),
    ])  # fmt: skip


def render_study(tables: Sequence[study.Table]) -> str:
    """The text of the page of the study."""
    parts = [
        "# In switches, or on a ring?\n",
        "When sums in switches are faster than a ring, and when not, as the simulator has it; `catchment simulate\n"
        "figures` has written it. Models and constants are in [performance.md](../explanation/performance.md).\n",
        f"![{_FIGURE}](../figures/in-switch-by-ring.svg)\n",
        *(textwrap.fill(text, 120, break_long_words=False) + "\n" for text in _STUDY),
    ]
    for table in tables:
        parts.append(f"**{table.title}** (mode `{table.mode}`)\n")
        parts.append(_table(table.heads, table.rows))
    return "\n".join(parts)


def _cells(claim: Claim) -> tuple[str, ...]:
    return (
        claim.place, claim.what, f"{claim.theirs:,.4g}", f"{claim.ours:,.4g}",
        "exact" if claim.tolerance == 0 else f"{100 * claim.tolerance:g} %", "yes" if claim.holds else "**no**",
        claim.source, claim.inputs, claim.note,
    )  # fmt: skip


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
