"""Steps of a training through a real network beside the slowest of their parts, for bench/optimizer.py.

Disks and link have limited rates, so that a step takes as long as the paper's. Without limits everything on this
machine is as fast as its processor, which switch, endpoints and node share: that one is measured, too.
"""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median

from bench import optimizer_plots
from bench.optimizer_lab import LabNetwork, traffic
from bench.optimizer_network import UNLIMITED, TimedPort
from bench.optimizer_runs import READ, WRITTEN, between, step_seconds, store_in, table_of
from bench.report import RESULTS, Figure
from catchment.host.layers import LayerTable, Timeline
from catchment.host.optimizer.store import UNIT, Store

_STEPS = 6
_LINK_SECONDS = 0.4  # of a step, for the link alone
_ON_LINK = 6  # bytes of a parameter on the busier direction: 2 for the forward, then 4 of gradients up while 2 go down


def overlap(folder: Path) -> tuple[list[Figure], list[str]]:
    """Step time beside the slowest of network, disk and update alone, in turn with each of them the slowest."""
    table = table_of(16, 64 * UNIT)
    link = _ON_LINK * table.numel / _LINK_SECONDS
    with store_in(folder, table, 2) as store:
        update = _update_seconds(store)
    figures, rates = [], []
    before = _network_seconds(table, link)
    for slowest, share in (("disk", 2.0), ("network", 0.5), ("disk and network alike", 1.0)):
        disk = share * before
        rate = (READ + WRITTEN) * table.numel / disk / 2
        rates.append(f"{rate / 1e6:.0f}")
        timeline = Timeline(enabled=True)
        with store_in(folder, table, 2, rate=rate) as store, LabNetwork(table, _STEPS, rate=link) as lab:
            seconds = median(step_seconds(store, lab.port, _STEPS, arena_layers=6, timeline=timeline))
        after = _network_seconds(table, link)  # in turn, so that both see the same machine
        alone, before = max(disk, (before + after) / 2, update), after
        figures.append(Figure(f"step, {slowest} slowest", seconds, "s", "slowest part alone", alone, 1.1))
        _plot(timeline, seconds, len(table), RESULTS / f"optimizer-{slowest.replace(' ', '-')}.svg")
    notes = [
        f"Steps beside their slowest part: a link of {link / 1e6:.0f} MB/s each way, two devices of {', '.join(rates)} "
        f"MB/s each; alone the network takes {before:.3f} s, the update {update:.3f} s."
    ]
    return [*figures, _unlimited(folder, table)], notes


def _plot(timeline: Timeline, seconds: float, layers: int, path: Path) -> None:
    """The last two steps."""
    last = max(span.end for span in timeline.during(0, float("inf")))
    optimizer_plots.timeline(timeline.during(last - 2 * seconds, last), layers, path)


def _unlimited(folder: Path, table: LayerTable) -> Figure:
    """A step with nothing limited, beside the processor time of node, endpoints and switch together."""
    steps = 5 * _STEPS
    with store_in(folder, table, 2) as store, LabNetwork(table, steps) as lab:
        before = lab.processor_seconds()
        seconds = median(step_seconds(store, lab.port, steps, arena_layers=6))
        busy = (lab.processor_seconds() - before) / steps
    return Figure("step, nothing limited", seconds, "s", "its time on one core", busy)


def _network_seconds(table: LayerTable, link: float) -> float:
    """Median of a step's messages through switch, endpoints and link, with nothing else going on."""
    ends: list[float] = []
    with LabNetwork(table, _STEPS, rate=link) as lab:
        traffic(lab.port, table, _STEPS, lambda: ends.append(time.monotonic()))
    return median(between(ends))


def _update_seconds(store: Store) -> float:
    """Seconds that the update of the whole model takes with nothing else going on: the updates' spans of a step."""
    timeline = Timeline(enabled=True)
    step_seconds(store, TimedPort(UNLIMITED, store.geometry.table), 2, timeline=timeline)
    spans = [span for span in timeline.during(0, float("inf")) if span.kind == "update"]
    return sum(span.end - span.start for span in spans) / 2


def by_devices(folder: Path, most: int = 6) -> list[Figure]:
    """LuWu's Figure 15: iteration time against the number of devices, each of a limited rate."""
    table, compute = table_of(12, 64 * UNIT), 0.3
    total = (READ + WRITTEN) * table.numel
    rate = total / compute / 3.5  # three and a half devices keep up with the workers
    measured = []
    for devices in range(1, most + 1):
        with (
            store_in(folder, table, devices, rate=rate) as store,
            LabNetwork(table, 5, compute / 2 / len(table)) as network,
        ):
            measured.append(median(step_seconds(store, network.port, 5, arena_layers=8)))
    limits = [total / (rate * devices) for devices in range(1, most + 1)]
    optimizer_plots.devices(measured, compute, limits, RESULTS / "optimizer-devices.svg")
    return [
        Figure(
            f"step, {devices} limited device{'s' * (devices > 1)}", seconds, "s", "disk or compute", max(limit, compute)
        )
        for devices, seconds, limit in zip(range(1, most + 1), measured, limits, strict=True)
    ]
