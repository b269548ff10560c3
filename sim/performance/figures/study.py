"""Sums in switches beside a ring: workers, sizes, loss, oversubscription, slots, stragglers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import mean

from catchment.sim.performance.cluster import Cluster, Node, Straggle, rack_spine
from catchment.sim.performance.errors import PerformanceError
from catchment.sim.performance.flow import flow_seconds
from catchment.sim.performance.models import LinkModel, SwitchModel
from catchment.sim.performance.quantities import size_text
from catchment.sim.performance.rounds import Rounds
from catchment.sim.performance.run import simulate, simulate_folded
from catchment.sim.world import Faults
from catchment.wire.generated.constants import MAX_WORKERS

WORKERS = (8, 32, 128, 512, 1024, 4096)
SIZES = (1 << 10, 1 << 15, 1 << 20, 1 << 25, 1 << 30)
LOSSES = (0.0, 0.0001, 0.001, 0.01)
OVERSUBSCRIPTIONS = (1, 2, 4, 8, 32, 64, 128)
SLOTS = (16, 64, 256, 1024, 4096)
SIGMAS = (0.0, 0.05, 0.2)
_PER_RACK = 32
_SMALL = 1 << 20
_SEEDS = range(1, 6)


@dataclass(frozen=True, slots=True)
class Table:
    """A part of the study: heads, and rows of text; `mode`: how it was simulated."""

    title: str
    mode: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def cluster_of(workers: int, *, spines: int = 4, up_byte: int = 20) -> Cluster:
    """Racks of 32 hosts (or one smaller rack) at 100 Gb/s, under spines with 400 Gb/s to each rack."""
    racks = [[f"r{k}h{at}" for at in range(min(workers, _PER_RACK))] for k in range(max(1, workers // _PER_RACK))]
    topology = rack_spine(racks=racks, spines=spines if len(racks) > 1 else 0)
    return Cluster(topology, LinkModel(up_byte=up_byte), SwitchModel(max_workers=max(MAX_WORKERS, len(racks))))


def _both(cluster: Cluster, size: int) -> tuple[float, float]:
    switch, ring = (flow_seconds(kind, cluster, cluster.hosts, size) for kind in ("allreduce", "ring"))
    return switch, ring


def gains() -> list[list[float]]:
    """The time of a ring by that of sums in switches: a row for each number of workers, a column a size."""
    rows = []
    for workers in WORKERS:
        cluster = cluster_of(workers)
        times = [_both(cluster, size) for size in SIZES]
        rows.append([ring / switch for switch, ring in times])
    return rows


def by_workers() -> Table:
    """The table of `gains`, with the times of sums in switches."""
    rows = []
    for workers, gain in zip(WORKERS, gains(), strict=True):
        cluster = cluster_of(workers)
        cells = [
            f"{flow_seconds('allreduce', cluster, cluster.hosts, size) * 1e6:,.0f} ({each:.2f}x)"
            for size, each in zip(SIZES, gain, strict=True)
        ]
        rows.append((str(workers), *cells))
    title = "Workers and sizes: us of sums in switches (the ring's time by that)"
    return Table(title, "flow", ("workers", *map(size_text, SIZES)), tuple(rows))


def by_loss() -> Table:
    """32 workers in four racks, 1 MiB, frames lost on every line."""
    rows = []
    racks = [[f"r{k}h{at}" for at in range(8)] for k in range(4)]
    calm = Cluster(rack_spine(racks=racks, spines=1), LinkModel(up_byte=20))
    for loss in LOSSES:
        cluster = replace(calm, links=replace(calm.links, faults=Faults(loss=loss)))
        times = [_mean_us(kind, cluster) for kind in ("allreduce", "ring", "tree")]
        rows.append((f"{100 * loss:g} %", *(f"{each:,.0f}" for each in times)))
    return Table("Loss on every line: us, 32 workers in 4 racks, 1 MiB, mean of 5 seeds", "frame",
                 ("loss", "sums in switches", "ring", "double tree"), tuple(rows))  # fmt: skip


def _mean_us(kind: str, cluster: Cluster) -> float:
    seeds: Sequence[int] = _SEEDS if cluster.links.faults.loss else (1,)
    return 1e6 * mean(simulate(kind, cluster, Rounds(_SMALL), seed=seed).rounds[0] for seed in seeds)


def by_oversubscription() -> Table:
    """1024 workers, 32 MiB, one spine whose links are slower than what a rack's hosts could send."""
    rows = []
    for over in OVERSUBSCRIPTIONS:
        up_byte = max(1, round(80 * over / _PER_RACK))
        shared = cluster_of(1024, spines=1, up_byte=up_byte)
        switch, ring = _both(shared, 1 << 25)
        rows.append((f"{over}:1", f"{switch * 1e6:,.0f}", f"{ring * 1e6:,.0f}"))
    return Table("Oversubscription: us, 1024 workers, 32 MiB", "flow", ("hosts to uplink", "sums in switches", "ring"),
                 tuple(rows))  # fmt: skip


def by_slots() -> Table:
    """4096 workers, 1 MiB, by the job's slots, which are the window."""
    rows = []
    for slots in SLOTS:
        cluster = replace(cluster_of(4096), switch=SwitchModel(max_workers=128, slots=slots))
        try:
            took = f"{simulate_folded('allreduce', cluster, Rounds(_SMALL)).rounds[0] * 1e6:,.0f}"
        except PerformanceError:
            took = "resends"
        rows.append((str(slots), took))
    return Table("Slots of a job: us, 4096 workers, 1 MiB", "fold", ("slots", "sums in switches"), tuple(rows))


def by_stragglers() -> Table:
    """64 workers, 1 MiB after 500 us of computing, whose lognormal factor has this sigma; ten rounds."""
    rows = []
    for sigma in SIGMAS:
        cluster = replace(cluster_of(64), node=Node(straggle=Straggle(sigma)))
        outcome = simulate("allreduce", cluster, Rounds(_SMALL, 10, None, 500_000_000))
        ring = simulate("ring", cluster, Rounds(_SMALL, 3, None, 500_000_000))
        rows.append((f"{sigma:g}", f"{mean(outcome.rounds) * 1e6:,.0f}", f"{100 * outcome.straggler_cost:.0f} %",
                     f"{mean(ring.rounds) * 1e6:,.0f}"))  # fmt: skip
    heads = ("sigma", "sums in switches", "of that: waiting for the slowest", "ring")
    return Table("Stragglers: us a round, 64 workers, 500 us of computing and 1 MiB", "frame", heads, tuple(rows))


def tables() -> list[Table]:
    """The whole study."""
    return [by_workers(), by_loss(), by_oversubscription(), by_slots(), by_stragglers()]
