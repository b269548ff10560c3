"""`make bench-optimizer`: the out-of-core optimizer beside fio, torch, the memory, and the slowest of its parts."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from bench import optimizer_disk, optimizer_kernels, optimizer_steps
from bench.optimizer_network import UNLIMITED, TimedPort
from bench.optimizer_runs import step_seconds, store_in, table_of
from bench.report import RESULTS, Figure, publish
from catchment.host.optimizer.store import UNIT


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
        steps, limits = optimizer_steps.overlap(folder)
        figures += [*optimizer_disk.disk(folder), *steps, *optimizer_steps.by_devices(folder), *memory()]
    notes += [*limits, "Steps: the ratio is time, 1 is the limit.", f"Plots: {RESULTS}/optimizer-*.svg"]
    publish("optimizer", figures, notes)


if __name__ == "__main__":
    main()
