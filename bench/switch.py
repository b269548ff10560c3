"""`make bench-switch`: luwu.p4 beside a bare forwarder on the same interfaces, one run.

Eight workers' frames come in on eight interfaces, one sum for eight leaves by a ninth. The limit is a loop of recvmmsg
and sendmmsg on the same interfaces with the same frames, in two forms: it forwards every frame, or, as a switch that
adds up does, one of eight. The load generator keeps a window of sequence numbers under way and shares the machine's
cores with the switch, so beside the frames that pass there is what the switch's process can do: frames per second of
its processor time while it drains full queues, filled while it was stopped. Then the same program over shared memory
and in-process, and on BMv2 where that is on the PATH.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Annotated

import typer

from bench import shm_ports, switch_inprocess, switch_updates
from bench.aggregation import GEN, GROUP, PING_GEN, ROOT_PORT, SEQ_OFFSET, SLOTS, entries, frame
from bench.interfaces import add_pairs, enter_new_network
from bench.report import Figure, publish
from catchment.checkout import ROOT
from catchment.controlplane.client import SwitchClient, TableEntry
from catchment.controlplane.programs.cache import compile_for
from catchment.controlplane.topology import Target
from catchment.program import run_program
from catchment.sim.lab.held_address import HeldAddress
from catchment.sim.lab.switch_process import COMMANDS, start_switch

WORKERS = 8
TOOLS = ROOT / "build" / "native" / "bench"
INPUTS = ",".join(f"h{k + 1}" for k in range(WORKERS))
SHARE_AIM, TRIP_AIM, SHM_AIM, INPROCESS_AIM, COMPILE_AIM = 0.7, 1.5, 3e6, 5e6, 20.0


@dataclass(frozen=True, slots=True)
class Rate:
    """Workers' frames per second that passed, and that one core of the switch can take."""

    passed: float
    per_core: float

    @classmethod
    def measure(cls, load: Load, pid: int, returns: int) -> Rate:
        """Both, of the process that runs."""
        return cls(load.rate(returns), load.capacity(pid, returns))


@dataclass(frozen=True, slots=True)
class Trip:
    """Round trip in seconds."""

    median: float
    p99: float


class Load:
    """The load generator with frames of one size."""

    def __init__(self, folder: Path, lanes: int, seconds: float) -> None:
        self._seconds = seconds
        self._files = {}
        for name, gen, workers in (("rate", GEN, WORKERS), ("ping", PING_GEN, 1)):
            path = folder / f"{name}-{lanes}.frames"
            frames = [frame(lanes, worker, 0, gen) for worker in range(workers)]
            path.write_bytes(b"".join(len(one).to_bytes(4, "big") + one for one in frames))
            self._files[name] = path

    def rate(self, returns: int, window: int = SLOTS) -> float:
        """Frames that pass in a second, `window` sequence numbers under way; `returns` come back for each."""
        result = self._run("rate", INPUTS, returns, window)
        return result["frames"] / result["seconds"]

    def capacity(self, pid: int, returns: int) -> float:
        """Frames per second of processor time of the switch, which never waits for any."""
        used = switch_updates.processor_time(pid)
        result = self._run("drain", INPUTS, returns, SLOTS, str(pid))
        return result["frames"] / (switch_updates.processor_time(pid) - used)

    def ping(self) -> Trip:
        """One frame at a time."""
        result = self._run("ping", "h1", 1, SLOTS)
        return Trip(result["median"], result["p99"])

    def _run(self, kind: str, inputs: str, returns: int, window: int, *more: str) -> dict[str, float]:
        frames = self._files["ping" if kind == "ping" else "rate"]
        command = [
            str(TOOLS / "switch-load"), kind, str(frames), str(SEQ_OFFSET), inputs, f"h{ROOT_PORT}",
            str(window), str(self._seconds), str(returns), *more,
        ]  # fmt: skip
        result = subprocess.run(command, check=False, capture_output=True, text=True)
        if result.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}: {result.stderr.strip()}")
        answer: dict[str, float] = json.loads(result.stdout)
        return answer


@contextlib.contextmanager
def bare(mode: str, inputs: int = WORKERS) -> Iterator[int]:
    """The bare forwarder."""
    sources = ",".join(f"s{k + 1}" for k in range(inputs))
    command = [str(TOOLS / "bare-forwarder"), sources, f"s{ROOT_PORT}", mode]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        if process.stdout.readline() != b"ready\n":
            raise RuntimeError("the bare forwarder did not start")
        try:
            yield process.pid
        finally:
            process.terminate()


@contextlib.contextmanager
def luwu(target: Target, lanes: int, folder: Path) -> Iterator[int]:
    """luwu.p4 on a switch of this kind, both jobs in its tables."""
    config = compile_for(target, ROOT / "p4src" / "luwu.p4", {"LANES": str(lanes), "SLOTS": str(SLOTS)})
    ports = {k + 1: f"s{k + 1}" for k in range(WORKERS)} | {ROOT_PORT: f"s{ROOT_PORT}"}
    log = folder / f"{target}-{lanes}.log"
    with (
        HeldAddress() as held,
        start_switch("s1", COMMANDS[target](held.address, 1, ports), log=log, environment=os.environ) as process,
        SwitchClient.connect(held.address) as client,
    ):
        client.push_pipeline(config)
        client.insert(*(TableEntry(e.table, dict(e.match), e.action, dict(e.params)) for e in entries(WORKERS)))
        client.set_group(GROUP, range(1, WORKERS + 1))
        yield process.pid


def median_rate(rates: list[Rate]) -> Rate:
    """The median of each figure."""
    return Rate(median(r.passed for r in rates), median(r.per_core for r in rates))


def rates(load: Load, lanes: int, folder: Path, rounds: int) -> tuple[Rate, Rate, Rate]:
    """The bare forwarder of every frame, of one in eight, and luwu.p4 over AF_PACKET; taken in turns."""
    every, one_of_eight, aggregating = [], [], []
    for _ in range(rounds):
        with bare("every") as pid:
            every.append(Rate.measure(load, pid, WORKERS))
        with bare("last") as pid:
            one_of_eight.append(Rate.measure(load, pid, 1))
        with luwu(Target.EMBEDDED, lanes, folder) as pid:
            aggregating.append(Rate.measure(load, pid, 1))
    return median_rate(every), median_rate(one_of_eight), median_rate(aggregating)


def rate_figures(lanes: int, every: Rate, one_of_eight: Rate, luwu_rate: Rate) -> list[Figure]:
    """luwu.p4 beside both forms of the limit."""
    name, goal = f"luwu.p4 on AF_PACKET, {lanes} lanes", SHARE_AIM if lanes == 64 else None
    figures = []
    for unit, value in (("frames/s", "passed"), ("frames/s/core", "per_core")):
        for limit, text in ((every, "bare forwarder, every frame"), (one_of_eight, "bare forwarder, one of eight")):
            figures.append(Figure(name, getattr(luwu_rate, value), unit, text, getattr(limit, value), goal))
    return figures


def trips(load: Load, folder: Path, seconds: float, rounds: int) -> list[Figure]:
    """Round trips of one frame over interfaces and over shared memory; medians of the rounds."""
    limit, ours, shared = [], [], []
    for _ in range(rounds):
        with bare("every", 1):
            limit.append(load.ping())
        with luwu(Target.EMBEDDED, 64, folder):
            ours.append(load.ping())
        with shm_ports.luwu(64) as ports:
            shared.append(shm_ports.ping(ports, seconds=seconds))
    figures = []
    for quantile in ("median", "p99"):
        bare_trip, on_interfaces, on_memory = (
            median(getattr(trip, quantile) for trip in side) * 1e6 for side in (limit, ours, shared)
        )
        name = f"round trip, {quantile}"
        figures.append(Figure(f"{name}, AF_PACKET", on_interfaces, "us", "bare forwarder", bare_trip, TRIP_AIM))
        figures.append(Figure(f"{name}, shared memory", on_memory, "us", "bare forwarder", bare_trip))
    return figures


def without_kernel(lanes: int, seconds: float, rounds: int) -> list[Figure]:
    """luwu.p4 over shared memory and in-process, beside the aims for 64 lanes."""
    inside = switch_inprocess.measure(lanes, WORKERS, 1.0).value
    with shm_ports.luwu(lanes) as ports:
        passed = median(shm_ports.rate(ports, seconds=seconds).passed for _ in range(rounds))
    figures = [Figure(f"luwu.p4 on shared memory, {lanes} lanes", passed, "frames/s", "in-process", inside)]
    if lanes == 64:
        for name, value, aim in (("on shared memory", passed, SHM_AIM), ("in-process", inside, INPROCESS_AIM)):
            figures.append(Figure(f"luwu.p4 {name}, 64 lanes", value, "frames/s", f"aim {aim:,.0f}", aim, goal=1.0))
    return figures


def bmv2(load: Load, folder: Path, ours: Rate) -> list[Figure]:
    """luwu.p4 on BMv2, where it is installed."""
    if shutil.which("simple_switch_grpc") is None or shutil.which("p4c-bm2-ss") is None:
        return []
    with luwu(Target.BMV2, 64, folder):
        theirs = load.rate(1, window=64)
    return [Figure("luwu.p4 on AF_PACKET, 64 lanes", ours.passed, "frames/s", "BMv2", theirs)]


def compile_time(folder: Path) -> list[Figure]:
    """Time the way from P4 to a shared object with nothing cached."""
    figures = []
    for program in ("luwu", "p4sgd"):
        source = ROOT / "p4src" / f"{program}.p4"
        if source.exists():
            start = time.perf_counter()
            compile_for(Target.EMBEDDED, source, {}, folder=folder / f"compiled-{program}")
            took = time.perf_counter() - start
            figures.append(Figure(f"compile {program}.p4", took, "s", f"aim {COMPILE_AIM:g} s", COMPILE_AIM, goal=1.0))
    return figures


def verdict(figure: Figure) -> str:
    """Whether an aim was reached, in a line."""
    assert figure.goal is not None
    compared = f"{figure.ratio:.2f} of {figure.reference_name}, aim {figure.goal:.2f}"
    return f"{'met   ' if figure.met else 'MISSED'} {figure.name} ({figure.unit}): {compared}"


def main(
    *,
    seconds: Annotated[float, typer.Option(help="Length of one measurement.")] = 1.0,
    rounds: Annotated[int, typer.Option(help="For 64 lanes and the round trip.")] = 3,
) -> None:
    """Measure and publish luwu.p4 beside a bare forwarder on the same interfaces."""
    enter_new_network()
    add_pairs([*range(1, WORKERS + 1), ROOT_PORT])
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for lanes, turns in ((64, rounds), (8, 1), (256, 1)):
            load = Load(folder, lanes, seconds)
            every, one_of_eight, ours = rates(load, lanes, folder, turns)
            figures += rate_figures(lanes, every, one_of_eight, ours)
            if lanes == 64:
                figures += bmv2(load, folder, ours)
                figures += trips(load, folder, seconds, rounds)
            figures += without_kernel(lanes, seconds, turns)
        figures += compile_time(folder)
    figures += switch_updates.measure_all(batches=(1000,))
    notes = [f"{WORKERS} workers, {SLOTS} slots; the load generator shares the machine's cores"]
    publish("switch", figures, notes + [verdict(figure) for figure in figures if figure.goal is not None])


if __name__ == "__main__":
    run_program(main)
