"""`make bench-performance`: the simulator held to the co-simulation, bugs that must be noticed, events a second.

The co-simulation plays its points in two processes; that takes some minutes. Any row out of its bound, or a planted bug
that turns none red, ends it with an error.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from resource import RUSAGE_SELF, getrusage

from bench.performance_plants import PLANTS
from bench.performance_points import CALIBRATED, Played, Point, play_in_rtl
from bench.performance_rows import Row, points, rows
from bench.performance_simulated import play_simulated
from bench.report import Figure, publish
from catchment.sim.performance.cluster import Cluster, rack_spine
from catchment.sim.performance.errors import PerformanceError
from catchment.sim.performance.models import LinkModel, SwitchModel
from catchment.sim.performance.rounds import Rounds
from catchment.sim.performance.run import simulate

_AIM = 10.0
_LOADS = ((64, 4 << 20), (1024, 1 << 20), (4096, 1 << 18))
_PER_RACK = 32


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


def report(judged: Iterable[Row]) -> list[Figure]:
    """Rows as figures; what is expected to be 0 has no ratio."""
    return [Figure(row.what, row.simulated, "", "co-simulation", row.expected) for row in judged if row.expected > 0]


def main() -> None:
    """Compare, plant, measure; write build/bench/performance.json."""
    truth = expected()
    judged = rows(truth, play_simulated)
    wrong = [f"{row.what}: {row.simulated:,.0f}, not {row.expected:,.0f} +- {row.bound:,.0f}"
             for row in judged if not row.holds]  # fmt: skip
    notes = [f"{len(judged)} rows, {len(wrong)} out of their bounds", *wrong]
    missed = []
    for bug, plant in PLANTS.items():
        with plant():
            red = red_rows(truth)
        notes.append(
            f"planted: {bug}: {len(red)} rows red, first: {red[0].what}" if red else f"planted: {bug}: UNNOTICED"
        )
        missed += [] if red else [bug]
    figures = [*report(judged), *speed()]
    notes.append(f"largest memory: {getrusage(RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")
    publish("performance", figures, notes)
    if wrong or missed:
        sys.exit("the simulator and the co-simulation disagree" if wrong else "a planted bug was not noticed")


if __name__ == "__main__":
    main()
