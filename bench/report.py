"""How every benchmark reports: a table of ratios on the terminal, the same as JSON on disk."""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from time import perf_counter

from rich.table import Table

from catchment.json_text import json_text
from catchment.plain_console import plain_console

RESULTS = Path("build/bench")
LESS_IS_BETTER = frozenset({"s", "ms", "us", "ns", "clocks", "clocks/packet", "clocks/push", "B", "MB"})
"""Units of which a goal is a ceiling: times, and bytes sent or held."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured value beside what it is compared with, both in `unit`, both from this run.

    `goal` is the ratio value / reference that the project aims for: at most that of what is `LESS_IS_BETTER`, at least
    that of all else. None where nothing is promised.
    """

    name: str
    value: float
    unit: str
    reference_name: str
    reference: float
    goal: float | None = None

    @property
    def ratio(self) -> float:
        return self.value / self.reference

    @property
    def met(self) -> bool | None:
        """Whether the goal is reached; None where there is none."""
        if self.goal is None:
            return None
        return self.ratio <= self.goal if self.unit in LESS_IS_BETTER else self.ratio >= self.goal


def rate(work: Callable[[], int], seconds: float = 0.5, rounds: int = 5) -> float:
    """Median over `rounds` of units per second; `work` does one batch and returns its number of units."""
    work()
    rates = []
    for _ in range(rounds):
        done, start = 0, perf_counter()
        while (elapsed := perf_counter() - start) < seconds:
            done += work()
        rates.append(done / elapsed)
    return median(rates)


def publish(benchmark: str, figures: Sequence[Figure], notes: Sequence[str] = ()) -> Path:
    """Print `figures` as a table and write build/bench/BENCHMARK.json; returns that path."""
    table = Table(title=benchmark)
    for heading in ("figure", "value", "compared with", "reference", "ratio", "goal", "met"):
        table.add_column(heading, justify="left" if heading in ("figure", "compared with") else "right")
    for f in figures:
        goal = "" if f.goal is None else f"{f.goal:.2f}"
        table.add_row(
            f.name, f"{f.value:,.4g} {f.unit}", f.reference_name, f"{f.reference:,.4g} {f.unit}", f"{f.ratio:.2f}",
            goal, {None: "", True: "yes", False: "no"}[f.met],
        )  # fmt: skip
    console = plain_console()
    console.print(table)
    for note in notes:
        console.print(note)
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"{benchmark}.json"
    rows = [{**asdict(f), "ratio": f.ratio, "met": f.met} for f in figures]
    document = {"benchmark": benchmark, "machine": platform.processor() or platform.machine(), "figures": rows}
    path.write_text(json_text({**document, "notes": list(notes)}, indent=2) + "\n")
    return path
