"""The ranks of `make bench-allreduce`: processes that wait for orders, ours and those of the peers beside them."""

from __future__ import annotations

import json
import os
import select
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import IO, Any

from catchment.checkout import ROOT
from catchment.controlplane.deployment.fabric import Fabric
from catchment.controlplane.jobs import JobPlan, deploy, plan_job
from catchment.controlplane.programs.cache import programs_of
from catchment.controlplane.state.faults import set_loss
from catchment.controlplane.topology import Topology, star
from catchment.sim.lab.local_switch import LANES, SLOTS, SLOTS_OF_SHARERS, rings, slots_of
from catchment.sim.lab.mininet import MininetNetwork
from catchment.sim.lab.shm_lab import LUWU, ShmLab

PORTS = rings(LANES, SLOTS)
MEMBER = "bench.allreduce_member"

Start = Callable[[str, list[str]], "subprocess.Popen[str]"]
Lose = Callable[[float], None]
Way = Callable[..., AbstractContextManager["Ranks"]]


@dataclass(frozen=True, slots=True)
class Member:
    """One rank: where it takes orders, where it answers, and what is known when it does not."""

    orders: IO[str]
    answers: IO[str]
    failure: Callable[[], str]


class Ranks:
    """The processes of one communicator, waiting for orders."""

    def __init__(self, members: dict[str, Member], lose: Lose | None = None) -> None:
        self.lose = lose
        self.count = len(members)
        self._members = members
        for name in members:
            self._line(name)

    def seconds(self, size: int, rounds: int) -> float:
        """Median time of an all-reduce of `size` bytes."""
        return median(time for times in self.times(size, rounds) for time in times)

    def times(self, size: int, rounds: int) -> list[list[float]]:
        """Each rank's times of `rounds` all-reduces of `size` bytes."""
        return self.answers({"bytes": size, "warmup": max(1, rounds // 5), "rounds": rounds})

    def answers(self, order: dict[str, Any]) -> list[list[float]]:
        """What each rank says when it has done what it is told."""
        for member in self._members.values():
            print(json.dumps(order), file=member.orders, flush=True)
        return [json.loads(self._line(name)) for name in self._members]

    def _line(self, name: str) -> str:
        line = self._members[name].answers.readline()
        if not line:
            raise SystemExit(f"rank {name} failed:\n{self._members[name].failure()}")
        return line


def _popen(command: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
    )


@contextmanager
def gloo(ranks: int, member: str = MEMBER) -> Iterator[Ranks]:
    """torch.distributed's gloo over loopback; `member`: the module that a rank runs."""
    with tempfile.TemporaryDirectory() as folder:
        tasks = torch_tasks("gloo", [str(rank) for rank in range(ranks)], Path(folder), {})
        with _members(lambda _, command: _popen(command), tasks, member=member) as members:
            yield members


@contextmanager
def shared_memory(ranks: int, api: str, *, in_callers: bool | None = None, member: str = MEMBER) -> Iterator[Ranks]:
    """The ranks are processes on shared-memory ports; `in_callers`: they run the switch's program (`ShmLab`)."""
    names = [f"w{i}" for i in range(ranks)]
    with (
        tempfile.TemporaryDirectory() as folder,
        ShmLab(names, lanes=LANES, slots=SLOTS, mtu=9000, options=PORTS, in_callers=in_callers) as lab,
    ):
        job = lab.allreduce(names, slots=slots_of(in_callers=lab.in_callers))
        tasks = our_tasks(api, job, Path(folder), {name: f"shm:{lab.path(name)}" for name in names})
        lose = partial(_lose, lab.fabric, lab.topology)
        with _members(lambda _, command: _popen(command), tasks, lose, member) as members:
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
        # Ranks, switch and kernel share the processors' caches.
        job = plan_job("allreduce", topology, name="allreduce", workers=names, slots=SLOTS_OF_SHARERS)
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


def without_open_mpi() -> str:
    """Why Open MPI cannot be measured on this machine, or nothing."""
    if shutil.which("mpirun") is None:
        return "there is no mpirun: apt-get install openmpi-bin"
    if find_spec("mpi4py") is None:
        return "there is no mpi4py: pip install -r requirements.txt"
    return ""


@contextmanager
def open_mpi(ranks: int) -> Iterator[Ranks]:
    """`MPI.Allreduce` of Open MPI over shared memory, without torch.distributed.

    A rank that waited for orders within MPI would keep a processor from whoever is measured, so each takes them from a
    socket.
    """
    with ExitStack() as exits:
        path = Path(exits.enter_context(tempfile.TemporaryDirectory())) / "orders"
        listener = exits.enter_context(socket.socket(socket.AF_UNIX))
        listener.bind(str(path))
        listener.listen(ranks)
        as_root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
        command = [
            "mpirun",
            "--oversubscribe",
            *as_root,
            "-n",
            str(ranks),
            sys.executable,
            "-m",
            MEMBER,
            json.dumps({"orders": str(path)}),
        ]
        launcher = _popen(command)
        exits.callback(_end_launcher, launcher)
        yield Ranks({f"Open MPI's {n}": _accept(listener, launcher, exits) for n in range(ranks)})


def _accept(listener: socket.socket, launcher: subprocess.Popen[str], exits: ExitStack) -> Member:
    while not select.select([listener], [], [], 1.0)[0]:
        if launcher.poll() is not None:
            raise SystemExit(f"Open MPI's ranks do not start:\n{_last_words(launcher)}")
    connection = exits.enter_context(listener.accept()[0])
    return Member(connection.makefile("w"), connection.makefile("r"), partial(_last_words, launcher))


def _end_launcher(launcher: subprocess.Popen[str]) -> None:
    launcher.terminate()  # it ends its ranks
    launcher.communicate()


@contextmanager
def _members(
    start: Start, tasks: dict[str, dict[str, Any]], lose: Lose | None = None, member: str = MEMBER
) -> Iterator[Ranks]:
    command = [sys.executable, "-m", member]
    processes = {name: start(name, [*command, json.dumps(task)]) for name, task in tasks.items()}
    try:
        yield Ranks({name: _member(process) for name, process in processes.items()}, lose)
    finally:
        for process in processes.values():
            process.kill()
            process.communicate()


def _member(process: subprocess.Popen[str]) -> Member:
    assert process.stdin is not None
    assert process.stdout is not None
    return Member(process.stdin, process.stdout, partial(_last_words, process))


def _last_words(process: subprocess.Popen[str]) -> str:
    return process.stderr.read() if process.stderr else ""


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
