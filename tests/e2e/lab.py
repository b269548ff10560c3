"""A network under test: jobs on it, their members as processes, what the switch counted."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from fence import settle

from catchment.checkout import ROOT
from catchment.controlplane.client import SwitchClient
from catchment.controlplane.deployment.fabric import Fabric
from catchment.controlplane.diagnosis.stats import drops
from catchment.controlplane.diagnosis.waiting import diagnose
from catchment.controlplane.jobs import Allocator, JobPlan, deploy, remove
from catchment.controlplane.programs.cache import programs_of
from catchment.controlplane.state.faults import clear_loss, set_loss
from catchment.controlplane.topology import Target, Topology
from catchment.sim.lab.mininet import MininetNetwork

MEMBER, SLOTS_MEMBER = (Path(__file__).with_name(name) for name in ("member.py", "slots_member.py"))


def missing_tools(target: Target) -> str:
    """Why a target cannot be tested here; empty when it can."""
    if target is Target.BMV2:
        absent = [tool for tool in ("p4c-bm2-ss", "simple_switch_grpc") if shutil.which(tool) is None]
        return f"{' and '.join(absent)} not on the PATH" if absent else ""
    switch = ROOT / "build" / "native" / "softswitch" / "server" / "catchment-switch"
    return "" if switch.is_file() else f"{switch} is not built: run `make native`"


class Member:
    """A running member of a job."""

    def __init__(self, host: str, process: subprocess.Popen[str], complaints: Path) -> None:
        self.host = host
        self.process = process
        self.complaints = complaints

    def wait_ready(self) -> None:
        """Wait until it could begin."""
        self._wait("ready")

    def go(self) -> None:
        """Let it begin, or say what it has refused."""
        assert self.process.stdin is not None
        self.process.stdin.write("go\n")
        self.process.stdin.flush()

    def wait_started(self) -> None:
        """Wait until its requests are under way."""
        self._wait("started")

    def wait_done(self) -> None:
        """Wait until one that stays has what it wants."""
        self._wait("done")

    def rejects(self) -> Counter[str]:
        """What one that stays has refused so far, by reason."""
        self.go()
        return Counter(self._wait("rejects"))

    def _wait(self, what: str) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        said = json.loads(line or "{}").get(what)
        assert said, f"{self.host}: {line!r}\n{self.complaints.read_text()[-2000:]}"
        return said

    def result(self, timeout: float = 300.0) -> dict[str, Any]:
        """Its last line; one that stays is let go."""
        assert self.process.stdout is not None
        if self.process.stdin is not None:
            self.process.stdin.close()
        # Not communicate(): it would miss what `wait_started` has read ahead.
        watchdog = threading.Timer(timeout, self.process.kill)
        watchdog.start()
        try:
            lines = self.process.stdout.read().splitlines()
            self.process.wait()
        finally:
            watchdog.cancel()
        assert lines, f"{self.host} ended with code {self.process.returncode}:\n{self.complaints.read_text()[-2000:]}"
        return dict(json.loads(lines[-1]))


class Lab:
    """A network that is up, with programs on its switches; a context manager."""

    def __init__(self, topology: Topology, folder: Path) -> None:
        self.topology = topology
        self.folder = folder
        self.network = MininetNetwork(topology, log_folder=folder)
        self.allocator = Allocator(topology)
        self._deployed = 0
        self._exits = contextlib.ExitStack()
        self._tasks = 0
        switch = next(iter(topology.switches.values()))
        self.lanes = switch.lanes
        # BMv2 is a hundred times slower, its queues hold 64 packets, and what waits in them outlives a job.
        slow = switch.target is Target.BMV2
        self.has_registers = not slow
        self.most_slots = 8 if slow else 32
        self.most_elements = 3000 if slow else 80_000
        self.late_reasons = {"UNKNOWN_JOB", "NO_RECEIVER"} if slow else set()

    def __enter__(self) -> Self:
        programs = programs_of(self.topology)
        with contextlib.ExitStack() as exits:
            exits.enter_context(self.network)
            self.fabric = exits.enter_context(Fabric.connect(self.topology, self.network.addresses, timeout=60.0))
            self.fabric.push(programs)
            self._exits = exits.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._exits.close()

    @property
    def client(self) -> SwitchClient:
        """The only switch, or the first."""
        return next(iter(self.fabric.clients.values()))

    @contextlib.contextmanager
    def deployed(self, job: JobPlan) -> Iterator[JobPlan]:
        """A job on the switches for the length of a block."""
        deploy(job, self.topology, self.fabric.clients)
        self._deployed += 1
        try:
            yield job
            settle(self.network)  # or frames that its members sent last would be strangers' in the next test
        finally:
            remove(job, self.fabric.clients)
            self._deployed -= 1
            if self._deployed == 0:
                self.allocator = Allocator(
                    self.topology, next_generation=self.allocator.next_generation, order=self.allocator.order
                )

    @contextlib.contextmanager
    def loss(self, probability: float) -> Iterator[None]:
        """Loss of our frames on every port of every switch, in and out."""
        for name, client in self.fabric.clients.items():
            set_loss(client, self.topology.ports(name), probability)
        try:
            yield
        finally:
            for client in self.fabric.clients.values():
                clear_loss(client)

    def drops(self) -> Counter[str]:
        """Drops by reason, over all switches, of everything that hosts have sent so far."""
        settle(self.network)
        total: Counter[str] = Counter()
        for client in self.fabric.clients.values():
            total.update(drops(client))
        return total

    def start(
        self,
        job: JobPlan,
        *,
        seed: int,
        sizes: Sequence[int],
        dtype: str = "int32",
        exponent: int = 4,
        timeout: float = 60.0,
        hosts: Sequence[str] | None = None,
        stays: bool = False,
    ) -> dict[str, Member]:
        """Start a job's members (or some of them) on their hosts; they begin when all are there.

        One that stays goes on to look at what comes when it has what it wants, until its result is asked for.
        """
        members = {}
        script = SLOTS_MEMBER if job.kind == "slots" else MEMBER
        for host in hosts if hosts is not None else job.ports:
            task = {
                "description": job.describe(host), "workers": len(job.workers), "seed": seed, "sizes": list(sizes),
                "dtype": dtype, "exponent": exponent, "timeout": timeout, "patience": 3 * timeout,
                "stays": stays,
            }  # fmt: skip
            path = self.write(task)
            process = self.python(host, script, path, stdin=subprocess.PIPE)
            members[host] = Member(host, process, self.complaints(host))
        for member in members.values():
            member.wait_ready()
        for member in members.values():
            member.go()
        return members

    def run(self, job: JobPlan, **task: Any) -> dict[str, dict[str, Any]]:
        """Run a job's members to their end."""
        members = self.start(job, **task)
        return {host: member.result() for host, member in members.items()}

    def write(self, value: Mapping[str, Any]) -> Path:
        """A JSON file for a process."""
        self._tasks += 1
        path = self.folder / f"task-{self._tasks}.json"
        path.write_text(json.dumps(value), encoding="utf-8")
        return path

    def complaints(self, host: str) -> Path:
        """Standard error of the latest program on a host."""
        return self.folder / f"{host}-{self._tasks}.err"

    def python(self, host: str, *argv: str | Path, module: str | None = None, **options: Any) -> subprocess.Popen[str]:
        """A Python program of ours on a host; its complaints go to the log folder."""
        command = [sys.executable, *(("-m", module) if module else ()), *map(str, argv)]
        with self.complaints(host).open("wb") as log:
            return self.network.popen(host, command, stdout=subprocess.PIPE, stderr=log, text=True, cwd=ROOT, **options)


def missing(lab: Lab, job: JobPlan, count: int, interval: float = 1.5) -> list[tuple[str, str]]:
    """The silent workers and their switches, once they are so many: on a busy machine the living pause, too."""
    for _ in range(4):
        found = diagnose(job, lab.fabric.clients, interval=interval)
        if len(found) == count:
            break
    return [(one.member, one.switch) for one in found]


def all_exact(results: Mapping[str, Mapping[str, Any]]) -> None:
    """Every member of a job got every bit right."""
    bad = {host: result for host, result in results.items() if result.get("error") or result.get("wrong")}
    assert not bad, bad
    assert results
    assert all("wrong" in result for result in results.values())
