"""`make bench-latency`: an all-reduce of 8 x int32 through p4sgd.p4, beside gloo's smallest, in one run.

Two, four and eight workers, each a process: on shared-memory ports of one switch, whose program they run themselves or
leave to its process, over UDP through the same switch in Mininet (needs root; left out, and said, otherwise), and gloo
over loopback TCP.  Median and 99th percentile over all rounds of all workers.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from bench.report import Figure, publish
from catchment.checkout import ROOT
from catchment.controlplane.deployment.fabric import Fabric
from catchment.controlplane.jobs import deploy, plan_job
from catchment.controlplane.programs.cache import programs_of
from catchment.controlplane.topology import Topology
from catchment.program import run_program
from catchment.sim.lab.mininet import MininetNetwork
from catchment.sim.lab.shm_lab import ShmLab

PROGRAM = ROOT / "p4src" / "p4sgd.p4"
TOPOLOGY = ROOT / "sim" / "topologies" / "slots.yaml"
SLOTS = 16
GOAL = 20.0
PATIENCE = 120.0
WORKERS = [2, 4, 8]

Start = Callable[[str, list[str]], "subprocess.Popen[str]"]


@dataclass(frozen=True, slots=True)
class Latency:
    """Seconds of a round."""

    median: float
    p99: float


def _run(start: Start, tasks: dict[str, dict[str, object]]) -> Latency:
    """The members of one job, to their end."""
    command = [sys.executable, "-m", "bench.latency_member"]
    running = {name: start(name, [*command, json.dumps(task)]) for name, task in tasks.items()}
    times: list[float] = []
    try:
        for name, process in running.items():
            output, complaint = process.communicate(timeout=PATIENCE)
            if process.returncode != 0:
                raise SystemExit(f"worker {name} failed:\n{complaint}")
            times += json.loads(output)
    finally:
        for process in running.values():
            process.kill()
            process.wait()
    return Latency(float(np.median(times)), float(np.percentile(times, 99)))


def _local(_: str, command: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT)


def shared_memory(workers: int, options: dict[str, object], *, in_callers: bool = False) -> Latency:
    """The ranks are processes on shared-memory ports; `in_callers`: they run the switch's program themselves."""
    names = [f"w{i}" for i in range(workers)]
    with ShmLab(names, program=PROGRAM, lanes=8, slots=SLOTS, in_callers=in_callers) as lab:
        job = plan_job("slots", lab.topology, name="latency", workers=names, slots=SLOTS)
        deploy(job, lab.topology, lab.fabric.clients)
        tasks = {
            n: {"kind": "slots", "description": job.describe(n), "port": f"shm:{lab.path(n)}", **options} for n in names
        }
        return _run(_local, tasks)


def udp(workers: int, options: dict[str, object]) -> Latency:
    """The ranks are hosts in network namespaces, behind AF_PACKET ports."""
    topology = Topology.load(TOPOLOGY)
    names = list(topology.hosts)[:workers]
    with (
        tempfile.TemporaryDirectory() as folder,
        MininetNetwork(topology, log_folder=Path(folder)) as network,
        Fabric.connect(topology, network.addresses) as fabric,
    ):
        fabric.push(programs_of(topology))
        job = plan_job("slots", topology, name="latency", workers=names, slots=SLOTS)
        deploy(job, topology, fabric.clients)

        def start(host: str, command: list[str]) -> subprocess.Popen[str]:
            return network.popen(host, command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT)

        tasks = {n: {"kind": "slots", "description": job.describe(n), "port": None, **options} for n in names}
        return _run(start, tasks)


def gloo(workers: int, options: dict[str, object]) -> Latency:
    """torch.distributed's gloo, over loopback."""
    with tempfile.TemporaryDirectory() as folder:
        tasks = {
            str(rank): {
                "kind": "gloo",
                "rank": rank,
                "workers": workers,
                "rendezvous": str(Path(folder) / "rendezvous"),
                **options,
            }
            for rank in range(workers)
        }
        return _run(_local, tasks)


def figures(workers: int, rounds: int, spin: float) -> list[Figure]:
    """All ways, for one number of workers."""
    options: dict[str, object] = {"rounds": rounds, "warmup": rounds // 10, "spin": spin}
    reference = gloo(workers, {"rounds": max(100, rounds // 10), "warmup": 20})
    ways: dict[str, Callable[[int, dict[str, object]], Latency]] = {
        "in the callers": partial(shared_memory, in_callers=True),
        "shared memory": shared_memory,
        **({"UDP": udp} if os.geteuid() == 0 else {}),
    }
    rows = []
    for name, way in ways.items():
        ours = way(workers, options)
        for what, mine, theirs in (("median", ours.median, reference.median), ("p99", ours.p99, reference.p99)):
            # As rates, so that a ratio above 1 is better.
            goal = GOAL if what == "median" else None
            rows.append(
                Figure(f"{workers} workers, {name}, 1/{what}", 1 / mine, "1/s", f"gloo, 1/{what}", 1 / theirs, goal)
            )
        print(
            f"{workers} workers: {name} {ours.median * 1e6:.1f} us median, {ours.p99 * 1e6:.1f} us p99; "
            f"gloo {reference.median * 1e6:.0f} us median, {reference.p99 * 1e6:.0f} us p99",
            flush=True,
        )
    return rows


def main(
    *,
    rounds: int = 5000,
    spin: Annotated[float, typer.Option(help="Seconds that a worker polls before it sleeps.")] = 200e-6,
    workers: Annotated[list[int], typer.Option(help="Number of workers, repeatable.")] = WORKERS,
) -> None:
    """Measure and publish the latency of a small all-reduce."""
    rows = [row for count in workers for row in figures(count, rounds, spin)]
    notes = [f"{os.cpu_count()} cores for the workers and the switch together"]
    if os.geteuid() != 0:
        notes.append("UDP is left out: network namespaces need root")
    publish("latency", rows, notes)


if __name__ == "__main__":
    run_program(main)
