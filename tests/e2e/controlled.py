"""A network whose switches and jobs a controller keeps: its members, and how to kill each part."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from lab import ROOT

from catchment.controlplane.client import SwitchClient
from catchment.controlplane.controller.settings import Timing
from catchment.controlplane.deployment.fabric import Fabric
from catchment.controlplane.jobs import JobRequest
from catchment.controlplane.state.faults import set_loss
from catchment.controlplane.topology import Target, Topology
from catchment.sim.lab.controller_process import ControllerProcess
from catchment.sim.lab.mininet import MininetNetwork

MEMBER = Path(__file__).with_name("controlled_member.py")
# Python processes on a busy machine may be late: what is measured for speed is in bench/.
PATIENT = Timing(silence=15.0, reunion=1.0, request=10.0, hang=5.0)


def until(ready: Callable[[], Any], what: str, seconds: float = 120.0) -> Any:
    """Wait for something that others bring about."""
    pause = threading.Event()
    for _ in range(int(seconds / 0.05)):
        if found := ready():
            return found
        pause.wait(0.05)
    raise AssertionError(f"never: {what}")


class ControlledMember:
    """A member as a process; its lines are read as they come."""

    def __init__(self, network: MininetNetwork, host: str, task: Path, log: Path) -> None:
        self.host = host
        with log.open("wb") as complaints:
            self.process = network.popen(
                host, [sys.executable, "-X", "faulthandler", str(MEMBER), str(task)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=complaints, text=True, cwd=ROOT,
            )  # fmt: skip
        self._log = log

    def event(self, name: str, timeout: float = 300.0) -> dict[str, Any]:
        """Its next line that holds `name`, or an error."""
        assert self.process.stdout is not None
        watchdog = threading.Timer(timeout, self.process.kill)
        watchdog.start()
        try:
            for line in self.process.stdout:
                event: dict[str, Any] = json.loads(line)
                if name in event or "error" in event:
                    return event
        finally:
            watchdog.cancel()
        raise AssertionError(f"{self.host} ended without {name!r}:\n{self._log.read_text()[-2000:]}")

    def go(self) -> None:
        """Let it begin."""
        assert self.process.stdin is not None
        self.process.stdin.write("go\n")
        self.process.stdin.flush()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def finish(self) -> None:
        """Let it go; who does not end is aborted, and says where it was."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            code = self.process.wait(120)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGABRT)
            code = self.process.wait()
        assert code == 0, f"{self.host}: exit code {code}\n{self._log.read_text()[-8000:]}"


class ControlledLab:
    """A context manager: network, controller, switches up."""

    def __init__(self, topology: Topology, folder: Path) -> None:
        self.topology = topology
        self.folder = folder
        self.network = MininetNetwork(topology, log_folder=folder)
        self._tasks = 0
        slow = next(iter(topology.switches.values())).target is Target.BMV2
        self.is_slow = slow
        self.lanes = next(iter(topology.switches.values())).lanes
        self.sizes = [240] * 12 if slow else [80_000] * 12
        self._exits = contextlib.ExitStack()

    def __enter__(self) -> ControlledLab:
        with contextlib.ExitStack() as exits:
            exits.enter_context(self.network)
            self.controller = exits.enter_context(
                ControllerProcess(self.topology, self.network.addresses, self.folder / "c", PATIENT)
            )
            self.operator = exits.enter_context(self.controller.operator())
            self.wait_until_up()
            self._exits = exits.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._exits.close()

    def wait_until_up(self) -> None:
        """Wait until the controller has every switch as it should be."""
        self.controller.wait_until_up(self.operator)

    @contextlib.contextmanager
    def job(self, name: str, workers: Sequence[str], *, root: str | None = "opt", slots: int = 4,
            kind: str | None = None) -> Iterator[str]:  # fmt: skip
        """A job for the length of a block; gives its token."""
        kind = kind or ("luwu" if root else "allreduce")
        reply = self.operator.create(JobRequest(name, kind, tuple(workers), root, slots))
        try:
            yield reply.token
        finally:
            self.operator.remove(name)

    def start(self, job: str, token: str, hosts: Sequence[str], *, seed: int, workers: int, timeout: float = 60.0,
              sizes: Sequence[int] | None = None) -> dict[str, ControlledMember]:  # fmt: skip
        """Members of a job on their hosts, each of which has joined; they begin when all are there."""
        members = {}
        for host in hosts:
            self._tasks += 1
            task = {
                "controller": self.controller.address, "certificates": str(self.controller.certificates), "job": job,
                "host": host, "token": token, "workers": workers, "seed": seed,
                "sizes": list(sizes or self.sizes), "dtype": "int32", "exponent": 4, "timeout": timeout,
                "patience": 3 * timeout,
            }  # fmt: skip
            path = self.folder / f"task-{self._tasks}.json"
            path.write_text(json.dumps(task), encoding="utf-8")
            members[host] = ControlledMember(self.network, host, path, self.folder / f"{host}-{self._tasks}.err")
        for member in members.values():
            event = member.event("joined")
            assert event.get("joined"), event
        for member in members.values():
            event = member.event("ready")
            assert event.get("ready"), event
        for member in members.values():
            member.go()
        return members

    def contents(self) -> dict[str, Any]:
        """Every entry and group of every switch."""
        found = {}
        for name, switch in self.topology.switches.items():
            address = self.network.address(name)
            with SwitchClient.connect(address, switch.device_id, name=name, read_only=True, timeout=60.0) as client:
                found[name] = (sorted(f"{e.key()} {e.action} {e.params}" for e in client.read()), client.groups())
        return found

    @contextlib.contextmanager
    def loss(self, probability: float) -> Iterator[None]:
        """Loss of our frames on every port of every switch, in and out."""
        with Fabric.connect(self.topology, self.network.addresses, timeout=60.0) as fabric:
            for name, client in fabric.clients.items():
                set_loss(client, self.topology.ports(name), probability)
            try:
                yield
            finally:
                for name, client in fabric.clients.items():
                    set_loss(client, self.topology.ports(name), 0.0)
