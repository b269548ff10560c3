"""Labs of workers: hosts in Mininet, or processes on shared-memory ports; one switch that runs p4sgd.p4."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from catchment.checkout import ROOT
from catchment.controlplane.client import SwitchClient
from catchment.controlplane.deployment.fabric import Fabric
from catchment.controlplane.errors import ControlPlaneError
from catchment.controlplane.jobs import Allocator, deploy, plan_job
from catchment.controlplane.networks.port_faults import SwitchPorts
from catchment.controlplane.networks.state import NetworkError
from catchment.controlplane.programs.cache import programs_of
from catchment.controlplane.programs.pipeline_config import PipelineConfig
from catchment.controlplane.state.faults import set_loss
from catchment.controlplane.topology import star
from catchment.host.glm import GlmError
from catchment.sim.lab.members import member_environment
from catchment.sim.lab.shm_lab import P4SGD, SWITCH, ShmLab
from catchment.softswitch.process import SwitchProcessError

SLOTS = 64


class LabKind(StrEnum):
    """The kind of lab that a training's workers run in."""

    MININET = "mininet"
    """Real packets between network namespaces; needs root."""
    SHM = "shm"
    """Processes of this machine on the switch's shared-memory ports."""
    LOCAL = "local"
    """One process, no switch."""


class Lab(Protocol):
    """A running switch with a job of all workers on it; a context manager."""

    def description(self, wid: int) -> dict[str, Any]:
        """A worker's part in the job."""

    def port(self, wid: int) -> str | None:
        """Its shared-memory port; None for UDP."""

    def popen(self, wid: int, argv: list[str], **options: Any) -> subprocess.Popen[str]:
        """A process on a worker's host."""

    def trouble(self) -> str:
        """What is wrong with the switch; nothing if it runs the job's program."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


def open_lab(kind: LabKind, workers: int, *, lanes: int, loss: float, faults: str, logs: Path) -> Lab:
    """A lab that is not running yet.

    Args:
        kind: not LOCAL.
        workers: hosts.
        lanes: of the switch program: 8 for partial activations.
        loss: share of frames that the switch loses on purpose, each way.
        faults: of the switch's ports ("dup=0.01,reorder=0.05"), with MININET; none if empty.
        logs: folder for what processes say.
    """
    if kind == LabKind.MININET:
        return _MininetLab(workers, lanes, loss, faults, logs)
    return _ShmLab(workers, lanes, loss)


def _trouble(check: Callable[[], None], client: SwitchClient, program: PipelineConfig) -> str:
    try:
        check()
        return "" if client.runs(program) else f"the switch {SWITCH} has lost its program: it was started again"
    except (ControlPlaneError, NetworkError, SwitchProcessError) as error:
        return f"the switch {SWITCH} is lost: {error}"


def _hosts(workers: int) -> list[str]:
    return [f"w{wid}" for wid in range(workers)]


class _ShmLab:
    def __init__(self, workers: int, lanes: int, loss: float) -> None:
        self._hosts = _hosts(workers)
        self.lab = ShmLab(self._hosts, program=P4SGD, lanes=lanes, slots=SLOTS)
        self._loss = loss

    def __enter__(self) -> Self:
        try:
            with ExitStack() as exits:
                exits.enter_context(self.lab)
                self._program = programs_of(self.lab.topology)[SWITCH]
                self._job = self.lab.slots(self._hosts, slots=SLOTS, name="glm")
                if self._loss:
                    set_loss(self.lab.client, self.lab.topology.ports(SWITCH), self._loss)
                self._exits = exits.pop_all()
        except ControlPlaneError as error:
            raise GlmError(str(error)) from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._exits.close()

    def description(self, wid: int) -> dict[str, Any]:
        return self._job.describe(self._hosts[wid])

    def port(self, wid: int) -> str | None:
        return f"shm:{self.lab.path(self._hosts[wid])}"

    def popen(self, wid: int, argv: list[str], **options: Any) -> subprocess.Popen[str]:
        return subprocess.Popen(argv, env=member_environment(), cwd=ROOT, **options)

    def trouble(self) -> str:
        return _trouble(self.lab.switch.check, self.lab.client, self._program)


class _MininetLab:
    def __init__(self, workers: int, lanes: int, loss: float, faults: str, logs: Path) -> None:
        self._hosts = _hosts(workers)
        self._faults = faults
        self._topology = star(self._hosts, program=P4SGD, name=f"glm{os.getpid()}", lanes=lanes, slots=SLOTS)
        self._loss = loss
        self._logs = logs

    def __enter__(self) -> Self:
        from catchment.sim.lab.mininet import MininetNetwork  # noqa: PLC0415  only where Mininet is wanted

        try:
            with ExitStack() as exits:
                programs = programs_of(self._topology)  # compiled before the network stands
                self.network = exits.enter_context(MininetNetwork(self._topology, log_folder=self._logs))
                fabric = exits.enter_context(Fabric.connect(self._topology, self.network.addresses, timeout=60))
                fabric.push(programs)
                self._job = plan_job(
                    "slots",
                    self._topology,
                    name="glm",
                    workers=self._hosts,
                    slots=SLOTS,
                    allocator=Allocator(self._topology),
                )
                deploy(self._job, self._topology, fabric.clients)
                self._client, self._program = fabric.clients[SWITCH], programs[SWITCH]
                ports = self._topology.ports(SWITCH)
                if self._loss:
                    set_loss(self._client, ports, self._loss)
                if self._faults:
                    SwitchPorts().write(self.network.addresses[SWITCH], dict.fromkeys(ports, self._faults))
                self._exits = exits.pop_all()
        except (ControlPlaneError, NetworkError) as error:
            raise GlmError(str(error)) from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._exits.close()

    def description(self, wid: int) -> dict[str, Any]:
        return self._job.describe(self._hosts[wid])

    def port(self, wid: int) -> str | None:
        return None

    def popen(self, wid: int, argv: list[str], **options: Any) -> subprocess.Popen[str]:
        return self.network.popen(self._hosts[wid], argv, env=member_environment(), cwd=ROOT, **options)

    def trouble(self) -> str:
        return _trouble(lambda: self.network.check_switch(SWITCH), self._client, self._program)
