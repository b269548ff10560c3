"""Labs of workers: hosts in Mininet, or processes on shared-memory ports; one switch that runs p4sgd.p4."""

from __future__ import annotations

import os
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from catchment.checkout import ROOT
from catchment.controlplane.client import SwitchClient
from catchment.controlplane.deployment.fabric import Fabric
from catchment.controlplane.errors import ControlPlaneError
from catchment.controlplane.jobs import Allocator, JobPlan, deploy, plan_job
from catchment.controlplane.networks.port_faults import SwitchPorts
from catchment.controlplane.networks.state import NetworkError
from catchment.controlplane.programs.cache import programs_of
from catchment.controlplane.programs.pipeline_config import PipelineConfig
from catchment.controlplane.state.faults import set_loss
from catchment.controlplane.topology import Topology, star
from catchment.host.glm import GlmError
from catchment.sim.lab.members import member_environment, start_here
from catchment.sim.lab.shm_lab import P4SGD, SWITCH, ShmLab
from catchment.softswitch.process import SwitchProcessError

SLOTS = 64
_LOOK_SECONDS = 10.0


class LabKind(StrEnum):
    """The kind of lab that a training's workers run in."""

    MININET = "mininet"
    """Real packets between network namespaces; needs root."""
    SHM = "shm"
    """Processes of this machine on the switch's shared-memory ports."""
    LOCAL = "local"
    """One process, no switch."""


class Lab(ABC):
    """A running switch with a job of all workers on it; a context manager."""

    def __init__(self, workers: int, loss: float) -> None:
        self._hosts = [f"w{wid}" for wid in range(workers)]
        self._loss = loss

    def __enter__(self) -> Self:
        try:
            with ExitStack() as exits:
                self._topology, client, self._program, self._job = self._open(exits)
                if self._loss:
                    set_loss(client, self._topology.ports(SWITCH), self._loss)
                self._exits = exits.pop_all()
        except (ControlPlaneError, NetworkError) as error:
            raise GlmError(str(error)) from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._exits.close()

    def description(self, wid: int) -> dict[str, Any]:
        """A worker's part in the job."""
        return self._job.describe(self._hosts[wid])

    def trouble(self) -> str:
        """What is wrong with the switch; nothing if it runs the job's program.

        One that stands still is asked no longer than any other that may be: whoever asks knows that nothing moves.
        """
        try:
            self._check_switch()
            with Fabric.connect(self._topology, self._addresses(), timeout=_LOOK_SECONDS, read_only=True) as fabric:
                if fabric.clients[SWITCH].runs(self._program):
                    return ""
        except (ControlPlaneError, NetworkError, SwitchProcessError) as error:
            return f"the switch {SWITCH} is lost: {error}"
        return f"the switch {SWITCH} has lost its program: it was started again"

    @abstractmethod
    def _open(self, exits: ExitStack) -> tuple[Topology, SwitchClient, PipelineConfig, JobPlan]:
        """Start the network; what ends it goes to `exits`."""

    @abstractmethod
    def _addresses(self) -> Mapping[str, str]:
        """The address at which each switch listens."""

    @abstractmethod
    def _check_switch(self) -> None:
        """Raise what is wrong with the switch's process."""

    @abstractmethod
    def port(self, wid: int) -> str | None:
        """The shared-memory port of a worker; None for UDP."""

    @abstractmethod
    def popen(self, wid: int, argv: list[str], **options: Any) -> subprocess.Popen[str]:
        """A process on a worker's host."""


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


class _ShmLab(Lab):
    def __init__(self, workers: int, lanes: int, loss: float) -> None:
        super().__init__(workers, loss)
        self.lab = ShmLab(self._hosts, program=P4SGD, lanes=lanes, slots=SLOTS)

    def _open(self, exits: ExitStack) -> tuple[Topology, SwitchClient, PipelineConfig, JobPlan]:
        exits.enter_context(self.lab)
        job = self.lab.slots(self._hosts, slots=SLOTS, name="glm")
        return self.lab.topology, self.lab.client, programs_of(self.lab.topology)[SWITCH], job

    def _addresses(self) -> Mapping[str, str]:
        return {SWITCH: self.lab.switch.address}

    def _check_switch(self) -> None:
        self.lab.switch.check()

    def port(self, wid: int) -> str | None:
        return f"shm:{self.lab.path(self._hosts[wid])}"

    def popen(self, wid: int, argv: list[str], **options: Any) -> subprocess.Popen[str]:
        return start_here(argv, **options)


class _MininetLab(Lab):
    def __init__(self, workers: int, lanes: int, loss: float, faults: str, logs: Path) -> None:
        super().__init__(workers, loss)
        self._faults = faults
        self._lanes = lanes
        self._logs = logs

    def _open(self, exits: ExitStack) -> tuple[Topology, SwitchClient, PipelineConfig, JobPlan]:
        from catchment.sim.lab.mininet import MininetNetwork  # noqa: PLC0415  only where Mininet is wanted

        topology = star(self._hosts, program=P4SGD, name=f"glm{os.getpid()}", lanes=self._lanes, slots=SLOTS)
        programs = programs_of(topology)  # compiled before the network stands
        self.network = exits.enter_context(MininetNetwork(topology, log_folder=self._logs))
        fabric = exits.enter_context(Fabric.connect(topology, self.network.addresses, timeout=60))
        fabric.push(programs)
        job = plan_job("slots", topology, name="glm", workers=self._hosts, slots=SLOTS, allocator=Allocator(topology))
        deploy(job, topology, fabric.clients)
        if self._faults:
            ports = dict.fromkeys(topology.ports(SWITCH), self._faults)
            SwitchPorts().write(self.network.addresses[SWITCH], ports)
        return topology, fabric.clients[SWITCH], programs[SWITCH], job

    def _addresses(self) -> Mapping[str, str]:
        return self.network.addresses

    def _check_switch(self) -> None:
        self.network.check_switch(SWITCH)

    def port(self, wid: int) -> str | None:
        return None

    def popen(self, wid: int, argv: list[str], **options: Any) -> subprocess.Popen[str]:
        return self.network.popen(self._hosts[wid], argv, env=member_environment(), cwd=ROOT, **options)
