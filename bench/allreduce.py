"""`make bench-allreduce`: all_reduce of fp32 through the switch beside torch's gloo, in one run, taking turns.

The same number of ranks on the same machine: ours on shared-memory ports of one switch and over UDP through a switch in
Mininet (needs root; left out, and said, otherwise), gloo over loopback TCP.  Both are `dist.all_reduce` of the same
tensors in the same loop, and only the backend's name differs; `--api communicator` drives ours without
torch.distributed.  Block scaling, the default.  The time of an operation is the median over all operations of all ranks
in the turn whose ratio is the median of all turns'; the algorithm's bandwidth is the array's bytes by that time.  A
point takes `--seconds`, or three turns where those are longer: a whole run is a matter of five to ten minutes, of
twenty at most.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Annotated, Any, Literal

import typer

from bench.allreduce_plot import plot
from bench.report import RESULTS, Figure, publish
from catchment.checkout import ROOT
from catchment.controlplane.deployment.fabric import Fabric
from catchment.controlplane.jobs import JobPlan, deploy, plan_job
from catchment.controlplane.programs.cache import programs_of
from catchment.controlplane.state.faults import set_loss
from catchment.controlplane.topology import Topology, star
from catchment.program import one_of, run_program
from catchment.sim.lab.local_switch import LANES, SLOTS, rings
from catchment.sim.lab.mininet import MininetNetwork
from catchment.sim.lab.shm_lab import LUWU, ShmLab

KIB, MIB = 1 << 10, 1 << 20
RANKS, WAYS = [2, 4, 8], ["shared-memory", "udp"]
SIZES = [KIB << shift for shift in range(0, 17, 2)]
PORTS = rings(LANES, SLOTS)
SMALL, LARGE = 64 * KIB, MIB
LATENCY_GOAL, BANDWIDTH_GOAL, LOSS_GOAL = 5.0, 1.0, 0.7
LOSS = 0.01
LOSS_TURNS, LOSS_ROUNDS = 60, 5
LEAST_TURNS = 3

Start = Callable[[str, list[str]], "subprocess.Popen[str]"]
Lose = Callable[[float], None]
Way = Callable[..., AbstractContextManager["Ranks"]]


class Ranks:
    """The processes of one communicator, waiting for orders."""

    def __init__(self, start: Start, tasks: dict[str, dict[str, Any]], lose: Lose | None = None) -> None:
        self.lose = lose
        command = [sys.executable, "-m", "bench.allreduce_member"]
        self._members = {name: start(name, [*command, json.dumps(task)]) for name, task in tasks.items()}
        self.count = len(tasks)
        for name in self._members:
            self._line(name)

    def seconds(self, size: int, rounds: int) -> float:
        """Median time of an all-reduce of `size` bytes."""
        return median(time for times in self.times(size, rounds) for time in times)

    def times(self, size: int, rounds: int) -> list[list[float]]:
        """Each rank's times of `rounds` all-reduces of `size` bytes."""
        order = json.dumps({"bytes": size, "warmup": max(1, rounds // 5), "rounds": rounds})
        for member in self._members.values():
            assert member.stdin is not None
            print(order, file=member.stdin, flush=True)
        return [json.loads(self._line(name)) for name in self._members]

    def _line(self, name: str) -> str:
        member = self._members[name]
        assert member.stdout is not None
        line = member.stdout.readline()
        if not line:
            raise SystemExit(f"rank {name} failed:\n{member.stderr.read() if member.stderr else ''}")
        return line

    def end(self) -> None:
        """End the processes."""
        for member in self._members.values():
            member.kill()
            member.communicate()


def _popen(command: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
    )


@contextmanager
def gloo(ranks: int) -> Iterator[Ranks]:
    """torch.distributed's gloo over loopback."""
    with tempfile.TemporaryDirectory() as folder:
        tasks = torch_tasks("gloo", [str(rank) for rank in range(ranks)], Path(folder), {})
        with _members(lambda _, command: _popen(command), tasks) as members:
            yield members


@contextmanager
def shared_memory(ranks: int, api: str) -> Iterator[Ranks]:
    """The ranks are processes on shared-memory ports."""
    names = [f"w{i}" for i in range(ranks)]
    with (
        tempfile.TemporaryDirectory() as folder,
        ShmLab(names, lanes=LANES, slots=SLOTS, mtu=9000, options=PORTS) as lab,
    ):
        job = lab.allreduce(names, slots=SLOTS)
        tasks = our_tasks(api, job, Path(folder), {name: f"shm:{lab.path(name)}" for name in names})
        lose = partial(_lose, lab.fabric, lab.topology)
        with _members(lambda _, command: _popen(command), tasks, lose) as members:
            yield members


@contextmanager
def udp(ranks: int, api: str) -> Iterator[Ranks]:
    """The ranks are hosts in network namespaces, behind AF_PACKET ports."""
    names = [f"w{i}" for i in range(ranks)]
    topology = star(names, program=LUWU, name=f"bench-{os.getpid()}", lanes=LANES, slots=SLOTS, mtu=9000)
    with ExitStack() as exits:
        folder = Path(exits.enter_context(tempfile.TemporaryDirectory()))
        network = exits.enter_context(MininetNetwork(topology, log_folder=folder))
        fabric = exits.enter_context(Fabric.connect(topology, network.addresses))
        fabric.push(programs_of(topology))
        job = plan_job("allreduce", topology, name="allreduce", workers=names, slots=SLOTS)
        deploy(job, topology, fabric.clients)

        def start(host: str, command: list[str]) -> subprocess.Popen[str]:
            return network.popen(
                host,
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                cwd=ROOT,
            )

        tasks = our_tasks(api, job, folder, dict.fromkeys(names, "udp"))
        yield exits.enter_context(_members(start, tasks, partial(_lose, fabric, topology)))


@contextmanager
def _members(start: Start, tasks: dict[str, dict[str, Any]], lose: Lose | None = None) -> Iterator[Ranks]:
    members = Ranks(start, tasks, lose)
    try:
        yield members
    finally:
        members.end()


def our_tasks(api: str, job: JobPlan, folder: Path, ports: dict[str, str]) -> dict[str, dict[str, Any]]:
    """What the ranks of a job are to do, each on its port (``udp`` or ``shm:PATH``)."""
    if api == "communicator":
        return {name: {"description": job.describe(name), "port": port} for name, port in ports.items()}
    description = job.describe_all()
    for name, port in ports.items():
        if port != "udp":
            description["members"][name]["port"] = port
    file = folder / "job.json"
    file.write_text(json.dumps(description))
    return torch_tasks("catchment", list(ports), folder, {"CATCHMENT_JOB": str(file), "CATCHMENT_COMPANION": "0"})


def torch_tasks(
    backend: str, names: Sequence[str], folder: Path, environment: dict[str, str]
) -> dict[str, dict[str, Any]]:
    """The same for every backend of torch.distributed."""
    return {
        name: {
            "backend": backend,
            "rendezvous": str(folder / "rendezvous"),
            "rank": rank,
            "ranks": len(names),
            "environment": {**environment, "CATCHMENT_HOST": name},
        }
        for rank, name in enumerate(names)
    }


def _lose(fabric: Fabric, topology: Topology, loss: float) -> None:
    """Lose `loss` of the frames on each port in each direction."""
    for name, client in fabric.clients.items():
        set_loss(client, topology.ports(name), loss)


@dataclass(frozen=True, slots=True)
class Point:
    """Median seconds of one operation, ours and gloo's."""

    way: str
    ranks: int
    bytes: int
    seconds: float
    gloo: float

    def figure(self) -> Figure:
        """Bytes per second, so that a ratio above 1 is better."""
        name = f"{self.ranks} ranks, {self.way}, {_size(self.bytes)}"
        if self.bytes <= SMALL:
            return Figure(name, 1 / self.seconds, "1/s", "gloo", 1 / self.gloo, LATENCY_GOAL)
        goal = BANDWIDTH_GOAL if self.bytes >= LARGE and self.way == "shared memory" else None
        return Figure(name, self.bytes / self.seconds / 1e9, "GB/s", "gloo", self.bytes / self.gloo / 1e9, goal)


def measure(way: str, ours: Ranks, theirs: Ranks, *, sizes: Sequence[int], turns: int, seconds: float) -> list[Point]:
    """Both, in turns."""
    points = []
    ranks = ours.count
    for size in sizes:
        rounds = max(1, min(40, 16 * MIB // size))
        pairs: list[tuple[float, float]] = []
        begun = time.monotonic()
        while len(pairs) < turns and (len(pairs) < LEAST_TURNS or time.monotonic() - begun < seconds):
            other = theirs.seconds(size, max(1, rounds // 2))
            pairs.append((ours.seconds(size, rounds), other))
        # The turn whose ratio is the median: both were measured in the same moment of the machine.
        mine, other = sorted(pairs, key=lambda pair: pair[1] / pair[0])[len(pairs) // 2]
        point = Point(way, ranks, size, mine, other)
        points.append(point)
        print(
            f"{ranks} ranks, {way}, {_size(size)}: {point.seconds * 1e6:,.0f} us, gloo {point.gloo * 1e6:,.0f} us, "
            f"ratio {point.gloo / point.seconds:.2f}",
            flush=True,
        )
    return points


def loss_figure(way: str, ways: dict[str, Way], ranks: int, size: int, api: str) -> Figure:
    """What 1% of loss leaves of the goodput: the same ranks, with and without it in turns of a few operations.

    All bytes by all time, as a training job pays it: timeouts count as often as they happen.
    """
    took = {0.0: 0.0, LOSS: 0.0}
    with ways[way](ranks, api) as members:
        assert members.lose is not None
        members.seconds(size, LOSS_ROUNDS)
        for turn in range(LOSS_TURNS):
            for loss in sorted(took, reverse=turn % 2 == 1):  # there and back: neither comes always first
                members.lose(loss)
                # An operation takes as long as its slowest rank.
                took[loss] += sum(max(times) for times in zip(*members.times(size, LOSS_ROUNDS), strict=True))
    whole, left = (LOSS_TURNS * LOSS_ROUNDS * size / time / 1e9 for time in took.values())
    name = f"{ranks} ranks, {way}, {_size(size)}, {LOSS:.0%} of frames lost"
    return Figure(name, left, "GB/s", "without loss", whole, LOSS_GOAL)


def _size(size: int) -> str:
    return f"{size // MIB} MiB" if size >= MIB else f"{size // KIB} KiB"


def main(
    *,
    ranks: Annotated[list[int], typer.Option(help="Number of ranks, repeatable.")] = RANKS,
    sizes: Annotated[list[int], typer.Option(help="Of the array, repeatable.", metavar="BYTES")] = SIZES,
    ways: Annotated[list[str], typer.Option(help="Repeatable.", metavar="|".join(WAYS), callback=one_of(WAYS))] = WAYS,
    api: Annotated[Literal["torch", "communicator"], typer.Option(help="What drives ours.")] = "torch",
    turns: Annotated[int, typer.Option(help="Of each point, ours and gloo's one after the other.")] = 9,
    seconds: Annotated[float, typer.Option(help="After which a point gets no more turns.")] = 15.0,
    no_loss: Annotated[bool, typer.Option("--no-loss", help="Leave out the comparison under loss.")] = False,
) -> None:
    """Measure and publish all_reduce through the switch, beside gloo."""
    opened: dict[str, Way] = {"shared memory": shared_memory} if "shared-memory" in ways else {}
    notes = [
        f"{os.cpu_count()} cores for the ranks and the switch; {LANES} lanes, {SLOTS} slots, block scaling",
        "gloo runs over loopback beside both",
        "ours and gloo's are dist.all_reduce" if api == "torch" else "ours is driven without torch.distributed",
    ]
    if "udp" in ways and os.geteuid() == 0:
        opened["UDP"] = udp
    elif "udp" in ways:
        notes.append("UDP is left out: network namespaces need root")
    points = []
    for count in ranks:
        with gloo(count) as theirs:
            for way, open_ranks in opened.items():
                with open_ranks(count, api) as ours:
                    points += measure(way, ours, theirs, sizes=sizes, turns=turns, seconds=seconds)
    figures = [point.figure() for point in points]
    if not no_loss:
        figures += [loss_figure(way, opened, 2, 4 * MIB, api) for way in opened]
    publish("allreduce", figures, notes)
    plot([(p.way, p.ranks, p.bytes, p.gloo / p.seconds) for p in points], RESULTS / "allreduce.svg")


if __name__ == "__main__":
    run_program(main)
