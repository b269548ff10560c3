"""`make bench-optimizer`: the out-of-core optimizer beside fio, torch, the memory, and the slowest of its parts."""

from __future__ import annotations

import argparse
import itertools
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import torch

from bench import optimizer_kernels, optimizer_plots
from bench.optimizer_disk import raw_limit
from bench.optimizer_lab import LabNetwork, traffic
from bench.optimizer_network import TimedPort
from bench.report import RESULTS, Figure, publish
from host.layers import LayerSpec, LayerTable, Timeline, TransferPort
from host.optimizer import NodeOptions
from host.optimizer.store import UNIT, Geometry, Store, StoreOptions
from host.optimizer.streaming import StreamingNode, StreamingOptions
from host.optimizer.streaming.task import Buffers, Work

UNLIMITED = 1e12
READ, WRITTEN = 16, 14
"""Bytes of disk a parameter takes in a step of Adam: 2 + 2 + 12 read, 14 written."""


def table_of(layers: int, numel: int) -> LayerTable:
    """A model of equal layers."""
    return LayerTable(tuple(LayerSpec.of(i, f"layer{i}", [(f"layer{i}.weight", (numel,))]) for i in range(layers)))


@contextmanager
def store_in(folder: Path, table: LayerTable, devices: int, **options: Any) -> Iterator[Store]:
    """A new store of `table` on files in `folder`, which go afterwards."""
    places = [folder / f"device{index}" for index in range(devices)]
    try:
        Store.create(places, Geometry(table, devices), lambda i: torch.randn(table[i].numel)).close()
        with Store.open(places, StoreOptions(**options)) as store:
            yield store
    finally:
        for place in places:
            place.unlink(missing_ok=True)


def arena_of(store: Store, layers: int) -> int:
    """Bytes for `layers` of the first layer."""
    return layers * Buffers.size(store.geometry, 0, Work.BACKWARD)


def step_seconds(
    store: Store, port: TransferPort, steps: int, *, arena_layers: int = 4, timeline: Timeline | None = None
) -> list[float]:
    """Seconds of each step but the first, from end to end."""
    ends: list[float] = []
    streaming = StreamingOptions(arena=arena_of(store, arena_layers))
    node = StreamingNode(
        port, store, NodeOptions(1), streaming, timeline=timeline, on_pass=lambda _: ends.append(time.monotonic())
    )
    node.run([True] * steps)
    return [later - earlier for earlier, later in itertools.pairwise(ends)]


def disk(folder: Path) -> list[Figure]:
    """Bytes per second of a training that nothing else holds up, beside the raw limit of the same files."""
    table, devices = table_of(32, 512 * UNIT), 2
    rounds = []
    for _ in range(3):  # in turn, so that both see the same machine
        with store_in(folder, table, devices) as store:
            marks: list[tuple[float, int]] = []
            node = StreamingNode(
                TimedPort(UNLIMITED, store.geometry.table),
                store,
                NodeOptions(1, threads=2),
                StreamingOptions(arena=arena_of(store, 12)),
                on_pass=lambda _, to=marks, of=store: to.append((time.monotonic(), bytes_moved(of))),  # type: ignore[misc]
            )
            node.run([True] * 6)
            (begun, before), (ended, after) = marks[1], marks[-1]  # then every place was written once, as fio's
            ours = (after - before) / (ended - begun)
            name, peer = raw_limit([folder / f"device{i}" for i in range(devices)], READ / (READ + WRITTEN))
        rounds.append((ours / peer, ours, peer))
    _, ours, peer = sorted(rounds)[1]
    return [Figure("disk, steps of a training", ours / 1e6, "MB/s", name, peer / 1e6, 0.9)]


def bytes_moved(store: Store) -> int:
    """On all devices, since the store was opened."""
    counted = ("parameter_read_bytes", "state_read_bytes", "state_write_bytes")
    return sum(stats[name] for stats in store.stats().values() for name in counted)


def overlap(folder: Path) -> list[Figure]:
    """Step time beside the slowest of network, disk and update alone, in turn with each of them the slowest.

    The network is real: a switch process and two endpoints. The devices are limited to rates that follow from it.
    """
    table, steps = table_of(16, 64 * UNIT), 6
    figures = []
    with store_in(folder, table, 2) as store:
        update = update_seconds(store)
    for slowest, share in (("disk", 2.0), ("network", 0.5), ("disk and network alike", 1.0)):
        before = network_seconds(table, steps)
        disk_seconds = share * before
        timeline = Timeline(enabled=True)
        rate = (READ + WRITTEN) * table.numel / disk_seconds / 2
        with store_in(folder, table, 2, rate=rate) as store, LabNetwork(table, steps) as network:
            begun = time.monotonic()
            seconds = median(step_seconds(store, network.port, steps, arena_layers=6, timeline=timeline))
        alone = max(disk_seconds, (before + network_seconds(table, steps)) / 2, update)
        spans = timeline.during(begun, float("inf"))
        last = max(span.end for span in spans)
        path = RESULTS / f"optimizer-{slowest.replace(' ', '-')}.svg"
        optimizer_plots.timeline(timeline.during(last - 2 * seconds, last), len(table), path)
        figures.append(Figure(f"step, {slowest} slowest", seconds, "s", "slowest part alone", alone, 1.1))
    return figures


def network_seconds(table: LayerTable, steps: int) -> float:
    """Median of a step's messages through switch and endpoints, with nothing else going on."""
    ends: list[float] = []
    with LabNetwork(table, steps) as network:
        traffic(network.port, table, steps, lambda: ends.append(time.monotonic()))
    return median(later - earlier for earlier, later in itertools.pairwise(ends))


def update_seconds(store: Store) -> float:
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


def memory() -> list[Figure]:
    """Peak memory of a process that trains a model somewhat larger than the arena, and one ten times as large."""
    peaks = []
    for layers in (6, 60):
        command = [sys.executable, "-m", "bench.optimizer", "--train-layers", str(layers)]
        ran = subprocess.run(command, capture_output=True, text=True, check=True)
        peaks.append(float(ran.stdout.split()[-1]))
    return [Figure("peak memory, states of 12 arenas", peaks[1] / 1e6, "MB", "of 1.2 arenas", peaks[0] / 1e6, 1.05)]


def train_and_tell(layers: int) -> None:
    """Train a model of `layers` layers with an arena of four, and print the process's peak memory in bytes."""
    with (
        tempfile.TemporaryDirectory(dir=RESULTS) as folder,
        store_in(Path(folder), table_of(layers, 512 * UNIT), 1) as s,
    ):
        step_seconds(s, TimedPort(UNLIMITED, s.geometry.table), 2)
    status = Path("/proc/self/status").read_text()  # getrusage's figure would be that of the parent, if larger
    print(next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM")))


def main() -> None:
    """Measure and publish."""
    options = argparse.ArgumentParser()
    options.add_argument("--train-layers", type=int, default=0, help="inside: train once, print the peak memory")
    layers = options.parse_args().train_layers
    RESULTS.mkdir(parents=True, exist_ok=True)
    if layers:
        train_and_tell(layers)
        return
    figures, notes = optimizer_kernels.measure()
    with tempfile.TemporaryDirectory(dir=RESULTS) as name:
        folder = Path(name)
        figures += [*disk(folder), *overlap(folder), *by_devices(folder), *memory()]
    notes.append(
        "Steps: the ratio is time, 1 is the limit. The network is a switch process and two endpoints on this machine."
    )
    notes.append(f"Plots: {RESULTS}/optimizer-*.svg")
    publish("optimizer", figures, notes)


if __name__ == "__main__":
    main()
