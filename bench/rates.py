"""`make bench-rates`: how exactly a port keeps to its rate, from 10 Mb/s to 1 Gb/s, in each direction.

A rank, in a process of its own, sums arrays through a port of which one direction is limited: one of shared memory, or
a network interface (AF_PACKET, in Mininet; needs root, and is left out, and said, otherwise). Bytes that passed are
counted by the port's own statistics, in the time between two looks.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from statistics import median
from typing import Annotated

import typer

from bench.rates_member import summing
from bench.report import Figure, publish
from catchment.controlplane.deployment.fabric import Fabric
from catchment.controlplane.jobs import deploy, plan_job
from catchment.controlplane.networks.state import admin_socket
from catchment.controlplane.programs.cache import programs_of
from catchment.controlplane.topology import star
from catchment.program import run_program
from catchment.sim.lab.mininet import MininetNetwork
from catchment.sim.lab.shm_lab import LUWU, SWITCH, ShmLab
from catchment.softswitch.admin import SwitchAdmin

MBIT = 10**6
RATES = (10, 100, 1000)
HOST, LANES, SLOTS = "w0", 256, 1024
SECONDS, ROUNDS = 1.0, 5
WITHIN = 0.02
COUNTERS = {"in": "rx_bytes", "out": "tx_bytes"}
Place = Callable[[], AbstractContextManager[SwitchAdmin]]


@contextmanager
def memory() -> Iterator[SwitchAdmin]:
    """A rank that sums through port 1 of a switch, which is of shared memory; the switch's statistics."""
    with (
        tempfile.TemporaryDirectory(prefix="rates") as folder,
        ShmLab((HOST,), lanes=LANES, extra=("--admin", str(Path(folder) / "admin"))) as lab,
        SwitchAdmin(Path(folder) / "admin") as admin,
        summing(lab.allreduce((HOST,), slots=SLOTS).describe(HOST), f"shm:{lab.path(HOST)}"),
    ):
        yield admin


@contextmanager
def interface() -> Iterator[SwitchAdmin]:
    """The same over a network interface."""
    topology = star((HOST,), program=LUWU, lanes=LANES)
    with (
        tempfile.TemporaryDirectory(prefix="rates") as folder,
        MininetNetwork(topology, log_folder=Path(folder)) as network,
        Fabric.connect(topology, network.addresses) as fabric,
    ):
        fabric.push(programs_of(topology))
        job = plan_job("allreduce", topology, name="rates", workers=(HOST,), slots=SLOTS)
        deploy(job, topology, fabric.clients)
        path = admin_socket(network.address(SWITCH))
        assert path is not None
        with SwitchAdmin(path) as admin, summing(job.describe(HOST), "udp", network.popen):
            yield admin


def passed(admin: SwitchAdmin, direction: str) -> list[float]:
    """Bits per second that passed port 1 in a direction, measured several times."""
    time.sleep(SECONDS / 2)  # the window fills
    found = []
    for _ in range(ROUNDS):
        before, began = admin.port(1)[COUNTERS[direction]], time.perf_counter()
        time.sleep(SECONDS)
        after, elapsed = admin.port(1)[COUNTERS[direction]], time.perf_counter() - began
        found.append(8 * (after - before) / elapsed)
    return found


def measured(name: str, place: Place) -> tuple[list[Figure], list[str]]:
    """Each rate in each direction: how near the median is to it, and where all rounds lie."""
    figures, notes = [], []
    with place() as admin:
        for rate in RATES:
            for direction in COUNTERS:
                admin.set_faults(1, f"{direction}.rate={rate}mbit,{direction}.queue=2m,seed=1")
                found = [bits / (rate * MBIT) for bits in passed(admin, direction)]
                row = f"{name}, {rate} Mb/s, {direction}"
                figures.append(Figure(row, 1 - abs(median(found) - 1), "x", "the rate", 1.0, 1 - WITHIN))
                notes.append(f"{row}: {min(found):.4f} to {max(found):.4f} of the rate.")
                admin.set_faults(1, "off")
    return figures, notes


def main(*, only: Annotated[str, typer.Option(help="memory or interface; both unless given.")] = "") -> None:
    """Measure and report."""
    places: dict[str, Place] = {"memory": memory, "interface": interface}
    figures, notes = [], []
    for name, place in places.items():
        if only not in ("", name):
            continue
        if place is interface and os.geteuid() != 0:
            notes.append("Network interfaces are left out: they need root.")
            continue
        found, said = measured(name, place)
        figures += found
        notes += said
    publish("bench-rates", figures, notes)


if __name__ == "__main__":
    run_program(main)
