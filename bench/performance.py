"""`make bench-performance`: the simulator held to the co-simulation and its modes to one another, bugs that must be
noticed, events a second.

The co-simulation plays its points in two processes; that takes some minutes. Every row is printed with its bound; one
that is out of it, or a planted bug that turns none red, ends it with an error.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from functools import partial
from resource import RUSAGE_SELF, getrusage

from rich.table import Table

from bench.performance_modes import flow_rows, train_rows
from bench.performance_plants import PLANTS, PLANTS_IN_FLOW
from bench.performance_points import CALIBRATED, Played, Point, play_in_rtl
from bench.performance_rows import Row, points, rows
from bench.performance_simulated import play_simulated
from bench.report import RESULTS, Figure, publish
from catchment.plain_console import plain_console
from catchment.sim.performance.cluster import Cluster, rack_spine
from catchment.sim.performance.errors import PerformanceError
from catchment.sim.performance.models import LinkModel, SwitchModel
from catchment.sim.performance.rounds import Rounds
from catchment.sim.performance.run import simulate

_AIM = 10.0
_LOADS = ((64, 4 << 20), (1024, 1 << 20), (4096, 1 << 18))
_PER_RACK = 32
_SEED = 1
"""The seed of the clusters on which modes are compared."""


def expected() -> dict[Point, Played]:
    """What the co-simulation gives at all points."""
    wanted = points()
    assert not {p.size for p in wanted} & set(CALIBRATED) or all(
        len(p.workers) > 1 for p in wanted if p.size in CALIBRATED
    )
    play_in_rtl(wanted[0])  # builds the NICs once
    with ProcessPoolExecutor(2) as pool:
        return dict(zip(wanted, pool.map(play_in_rtl, wanted), strict=True))


def red_rows(truth: dict[Point, Played]) -> list[Row]:
    """The rows that do not hold, with a bug planted; a simulation that does not end is one."""
    chosen = {point: played for point, played in truth.items() if point.loss == 0}
    try:
        return [row for row in rows(chosen, play_simulated) if not row.holds]
    except PerformanceError as error:
        return [Row(str(error), 0, 1, 0)]


def red_flow_rows() -> list[Row]:
    """The rows of flow mode that do not hold, likewise."""
    return [row for row in flow_rows(_SEED) if not row.holds]


def speed() -> list[Figure]:
    """Million events a second of processor time, all models on."""
    figures = []
    for workers, size in _LOADS:
        racks = [[f"r{k}h{at}" for at in range(_PER_RACK)] for k in range(workers // _PER_RACK)]
        cluster = Cluster(rack_spine(racks=racks, spines=4), LinkModel(up_byte=20), SwitchModel(max_workers=128))
        record = simulate("allreduce", cluster, Rounds(size)).record
        assert record is not None
        figures.append(
            Figure(
                f"{workers} workers, {record.events:,} events",
                record.events_per_second / 1e6,
                "M events/s",
                "aim",
                _AIM,
            )
        )
    return figures


def print_rows(judged: Sequence[Row]) -> None:
    """A line for each row, with its bound."""
    table = Table(title="rows")
    for heading in ("what", "simulated", "expected", "off", "bound", "holds"):
        table.add_column(heading, justify="left" if heading == "what" else "right", no_wrap=True)
    for row in judged:
        apart = abs(row.simulated - row.expected)
        table.add_row(
            row.what, f"{row.simulated:,.2f}", f"{row.expected:,.2f}", f"{apart:,.2f}", f"{row.bound:,.2f}",
            "yes" if row.holds else "NO",
        )  # fmt: skip
    plain_console(width=150).print(table)


def write_rows(judged: Sequence[Row]) -> None:
    """The same as JSON, build/bench/performance-rows.json."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    told = [{**asdict(row), "holds": row.holds} for row in judged]
    (RESULTS / "performance-rows.json").write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")


def main() -> None:
    """Compare, plant, measure; write build/bench/performance.json and performance-rows.json."""
    truth = expected()
    judged = [*rows(truth, play_simulated), *train_rows(_SEED), *flow_rows(_SEED)]
    print_rows(judged)
    write_rows(judged)
    wrong = [f"{row.what}: {row.simulated:,.0f}, not {row.expected:,.0f} +- {row.bound:,.0f}"
             for row in judged if not row.holds]  # fmt: skip
    notes = [f"{len(judged)} rows, {len(wrong)} out of their bounds", *wrong]
    missed = []
    for plants, look in ((PLANTS, partial(red_rows, truth)), (PLANTS_IN_FLOW, red_flow_rows)):
        for bug, plant in plants.items():
            with plant():
                red = look()
            notes.append(
                f"planted: {bug}: {len(red)} rows red, first: {red[0].what}" if red else f"planted: {bug}: UNNOTICED"
            )
            missed += [] if red else [bug]
    figures = speed()
    notes.append(f"largest memory: {getrusage(RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")
    publish("performance", figures, notes)
    if wrong or missed:
        sys.exit("the simulator and what it is held to disagree" if wrong else "a planted bug was not noticed")


if __name__ == "__main__":
    main()
