"""`make bench-optimizer`: the out-of-core optimizer beside fio, torch, the memory, and the slowest of its parts."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from bench import optimizer_disk, optimizer_kernels, optimizer_steps
from bench.optimizer_network import UNLIMITED, TimedPort
from bench.optimizer_runs import step_seconds, store_in, table_of
from bench.report import RESULTS, Figure, publish
from catchment.host.optimizer.store import UNIT
from catchment.program import run_program


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


def main(*, train_layers: Annotated[int, typer.Option(help="Inside: train once, print the peak memory.")] = 0) -> None:
    """Measure and publish the out-of-core optimizer."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    if train_layers:
        train_and_tell(train_layers)
        return
    figures, notes = optimizer_kernels.measure()
    with tempfile.TemporaryDirectory(dir=RESULTS) as name:
        folder = Path(name)
        steps, limits = optimizer_steps.overlap(folder)
        figures += [*optimizer_disk.disk(folder), *steps, *optimizer_steps.by_devices(folder), *memory()]
    notes += [*limits, "Steps: the ratio is time, 1 is the limit.", f"Plots: {RESULTS}/optimizer-*.svg"]
    publish("optimizer", figures, notes)


if __name__ == "__main__":
    run_program(main)
