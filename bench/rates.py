"""`make bench-rates`: how exactly a port keeps to its rate, from 10 Mb/s to 1 Gb/s, in each direction.

One rank sums arrays through a port of shared memory of which one direction is limited, and is counted at the port while
it does: bytes that passed, by the port's own statistics, in the time between two looks.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np

from bench.report import Figure, publish
from catchment.sim.lab.shm_lab import ShmLab
from catchment.softswitch.admin import SwitchAdmin

RATES = (10_000_000, 100_000_000, 1_000_000_000)
LANES, SLOTS = 256, 1024
SECONDS, ROUNDS = 0.5, 5
ELEMENTS = 1 << 20


def passed(direction: str, rate: int) -> list[float]:
    """Bits per second that passed in a direction, measured several times."""
    counter = {"in": "rx_bytes", "out": "tx_bytes"}[direction]
    fault = f"1:{direction}.rate={rate // 1000}kbit,{direction}.queue=2m,seed=1"
    with (
        tempfile.TemporaryDirectory(prefix="rates") as folder,
        ShmLab(("w0",), lanes=LANES, extra=("--fault", fault, "--admin", str(Path(folder) / "admin"))) as lab,
        SwitchAdmin(Path(folder) / "admin") as admin,
        lab.communicator(lab.allreduce(("w0",), slots=SLOTS), "w0", timeout=60.0) as rank,
    ):
        array = np.ones(ELEMENTS, np.float32)
        works = [rank.all_reduce(array) for _ in range(4)]
        time.sleep(SECONDS / 2)  # the window fills
        found = []
        for _ in range(ROUNDS):
            before, began = admin.port(1)[counter], time.perf_counter()
            while (elapsed := time.perf_counter() - began) < SECONDS:
                works = [work for work in works if not work.done()]
                while len(works) < 3:
                    works.append(rank.all_reduce(array))
                time.sleep(0.01)
            after, elapsed = admin.port(1)[counter], time.perf_counter() - began
            found.append(8 * (after - before) / elapsed)
    return found


def main() -> None:
    """Measure and report."""
    figures, notes = [], []
    for rate in RATES:
        for direction in ("in", "out"):
            found = passed(direction, rate)
            name = f"{rate / 1e6:g} Mb/s, {direction}"
            figures.append(Figure(name, median(found) / 1e6, "Mb/s", "rate", rate / 1e6, 1.0))
            notes.append(f"{name}: {min(found) / rate:.4f} to {max(found) / rate:.4f} of the rate.")
    publish("bench-rates", figures, notes)


if __name__ == "__main__":
    main()
