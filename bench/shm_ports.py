"""`make bench-shm-ports`: luwu.p4 through shared-memory ports, beside the same frames in-process.

Eight workers' frames go in by eight ports, one sum for eight leaves by a ninth; one process generates them and
takes the sums, so that it and the switch have a core each where there are two. From another benchmark:

    with luwu(64, options="") as ports:          # a switch with luwu.p4 of 64 lanes on nine ports
        passed = rate(ports, seconds=1.5)        # bench.shm_ports.Rate: frames/s that passed, and per core
        trip = ping(ports, seconds=1.5)          # bench.shm_ports.Trip: median and p99 in seconds
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from statistics import median
from typing import Annotated

import typer

from bench import switch_inprocess, switch_updates
from bench.aggregation import GEN, GROUP, PING_GEN, ROOT_PORT, SEQ_OFFSET, SLOTS, entries, frame
from bench.report import Figure, publish
from catchment.checkout import ROOT
from catchment.controlplane.client import SwitchClient, TableEntry
from catchment.controlplane.programs.cache import cache_folder, compile_for
from catchment.controlplane.topology import Target
from catchment.program import run_program
from catchment.softswitch.process import SwitchProcess

WORKERS = 8
TOOL = ROOT / "build" / "native" / "bench" / "shm-load"
GOAL_RATE, GOAL_TRIP = 3e6, 10e-6


@dataclass(frozen=True, slots=True)
class Ports:
    """A running switch and the frames for it."""

    pid: int
    folder: Path
    firsts: Iterator[int]
    """First sequence numbers: a slot takes later ones only."""


@dataclass(frozen=True, slots=True)
class Rate:
    """Workers' frames per second that passed, and per second of the switch's processor time."""

    passed: float
    per_core: float


@dataclass(frozen=True, slots=True)
class Trip:
    """Round trip in seconds."""

    median: float
    p99: float


@contextlib.contextmanager
def luwu(lanes: int, *, options: str = "") -> Iterator[Ports]:
    """luwu.p4 on shared-memory ports 1 to WORKERS and ROOT_PORT, both jobs of bench.aggregation in its tables.

    Args:
        lanes: of the program.
        options: of every port, with a comma in front.
    """
    config = compile_for(Target.EMBEDDED, ROOT / "p4src" / "luwu.p4", {"LANES": str(lanes), "SLOTS": str(SLOTS)})
    with tempfile.TemporaryDirectory(prefix="catchment-") as name:
        folder = Path(name)
        for kind, gen, workers in (("rate", GEN, WORKERS), ("ping", PING_GEN, 1)):
            frames = [frame(lanes, worker, 0, gen) for worker in range(workers)]
            (folder / kind).write_bytes(b"".join(len(one).to_bytes(4, "big") + one for one in frames))
        ports = {n: f"shm:{folder}/{n}{options}" for n in [*range(1, WORKERS + 1), ROOT_PORT]}
        with SwitchProcess(ports=ports, program_dir=cache_folder()) as switch:
            with SwitchClient.connect(switch.address) as client:
                client.push_pipeline(config)
                client.insert(*(TableEntry(e.table, dict(e.match), e.action, dict(e.params)) for e in entries(WORKERS)))
                client.set_group(GROUP, range(1, WORKERS + 1))
            yield Ports(switch.pid, folder, count(0, 1 << 24))


def rate(ports: Ports, *, seconds: float, window: int = SLOTS) -> Rate:
    """Measure the rate of frames with `window` sequence numbers under way."""
    used = switch_updates.processor_time(ports.pid)
    result = _run(ports, "rate", window, seconds)
    used = switch_updates.processor_time(ports.pid) - used
    return Rate(result["frames"] / result["seconds"], result["frames"] / used)


def ping(ports: Ports, *, seconds: float) -> Trip:
    """One frame at a time."""
    result = _run(ports, "ping", SLOTS, seconds)
    return Trip(result["median"], result["p99"])


def _run(ports: Ports, kind: str, window: int, seconds: float) -> dict[str, float]:
    inputs = ",".join(str(ports.folder / str(n)) for n in range(1, (WORKERS if kind == "rate" else 1) + 1))
    command = [
        str(TOOL), kind, str(ports.folder / kind), str(SEQ_OFFSET), inputs, str(ports.folder / str(ROOT_PORT)),
        str(window), str(seconds), str(next(ports.firsts)),
    ]  # fmt: skip
    result = subprocess.run(command, check=False, capture_output=True, text=True)
    if result.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {result.stderr.strip()}")
    answer: dict[str, float] = json.loads(result.stdout)
    return answer


def measure(lanes: int, *, seconds: float, rounds: int) -> list[Figure]:
    """Rates and, for 64 lanes, round trips; medians of the rounds."""
    with luwu(lanes) as ports:
        rates = [rate(ports, seconds=seconds) for _ in range(rounds)]
        trips = [ping(ports, seconds=seconds) for _ in range(rounds)] if lanes == 64 else []
    inside = switch_inprocess.measure(lanes, WORKERS, 1.0).value
    passed = median(r.passed for r in rates)
    figures = [
        Figure(f"luwu.p4 on shared memory, {lanes} lanes", passed, "frames/s", "in-process", inside),
        Figure(
            f"luwu.p4 on shared memory, {lanes} lanes, per core",
            median(r.per_core for r in rates), "frames/s", "in-process", inside,
        ),
    ]  # fmt: skip
    if lanes == 64:
        figures.append(Figure("aim", passed, "frames/s", f"aim {GOAL_RATE:,.0f}", GOAL_RATE, goal=1.0))
    for name in ("median", "p99"):
        if trips:
            value = median(getattr(trip, name) for trip in trips)
            goal = 1.0 if name == "median" else None
            figures.append(
                Figure(f"round trip on shared memory, {name}", value * 1e6, "us", "aim", GOAL_TRIP * 1e6, goal)
            )
    return figures


def main(*, seconds: Annotated[float, typer.Option(help="Length of one measurement.")] = 1.5, rounds: int = 3) -> None:
    """Measure and publish luwu.p4 through shared-memory ports, beside the same frames in-process."""
    figures = [figure for lanes in (64, 8, 256) for figure in measure(lanes, seconds=seconds, rounds=rounds)]
    publish("shm_ports", figures, [f"{WORKERS} workers, {SLOTS} slots; the load generator is one process"])


if __name__ == "__main__":
    run_program(main)
