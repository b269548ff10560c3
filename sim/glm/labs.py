"""Where the workers are: hosts in Mininet, or processes on shared-memory ports; one switch that runs p4sgd.p4."""

from __future__ import annotations

import os
import subprocess
from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from controlplane.errors import ControlPlaneError
from controlplane.fabric import Fabric
from controlplane.faults import set_loss
from controlplane.jobs import Allocator, JobPlan, deploy
from controlplane.programs import programs_of
from controlplane.topology import star
from host.glm import GlmError
from sim.demo.members import REPOSITORY, member_environment
from sim.shm_lab import P4SGD, ShmLab

SLOTS = 64


class LabKind(StrEnum):
    """Where the workers of a training are."""

    MININET = "mininet"
    """Real packets between network namespaces; needs root."""
    SHM = "shm"
    """Processes of this machine on the switch's shared-memory ports."""
    LOCAL = "local"
    """One process, no switch."""


class Lab(Protocol):
    """A running switch with a job of all workers on it; a context manager."""

    def told(self, wid: int) -> dict[str, Any]:
        """A worker's part in the job."""

    def port(self, wid: int) -> str | None:
        """Its shared-memory port; None for UDP."""

    def popen(self, wid: int, argv: list[str], **options: Any) -> subprocess.Popen[str]:
        """A process on a worker's host."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


def open_lab(kind: LabKind, workers: int, *, lanes: int, loss: float, logs: Path) -> Lab:
    """A lab that is not running yet.

    Args:
        kind: not LOCAL.
        workers: hosts.
        lanes: of the switch program: 8 for partial activations.
        loss: share of frames that the switch loses on purpose, each way.
        logs: folder for what processes say.
    """
    if kind == LabKind.MININET:
        return _MininetLab(workers, lanes, loss, logs)
    return _ShmLab(workers, lanes, loss)


def _hosts(workers: int) -> list[str]:
    return [f"w{wid}" for wid in range(workers)]


class _ShmLab:
    def __init__(self, workers: int, lanes: int, loss: float) -> None:
        self._hosts = _hosts(workers)
        self._lab = ShmLab(self._hosts, program=P4SGD, lanes=lanes, slots=SLOTS)
        self._loss = loss

    def __enter__(self) -> Self:
        try:
            with ExitStack() as exits:
                exits.enter_context(self._lab)
                self._job = self._lab.slots(self._hosts, slots=SLOTS, name="glm")
                if self._loss:
                    set_loss(self._lab.client, self._lab.topology.ports("s1"), self._loss)
                self._exits = exits.pop_all()
        except ControlPlaneError as error:
            raise GlmError(str(error)) from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._exits.close()

    def told(self, wid: int) -> dict[str, Any]:
        return self._job.describe(self._hosts[wid])

    def port(self, wid: int) -> str | None:
        return f"shm:{self._lab.path(self._hosts[wid])}"

    def popen(self, wid: int, argv: list[str], **options: Any) -> subprocess.Popen[str]:
        return subprocess.Popen(argv, env=member_environment(), cwd=REPOSITORY, **options)


class _MininetLab:
    def __init__(self, workers: int, lanes: int, loss: float, logs: Path) -> None:
        self._hosts = _hosts(workers)
        self._topology = star(self._hosts, program=P4SGD, name=f"glm{os.getpid()}", lanes=lanes, slots=SLOTS)
        self._loss = loss
        self._logs = logs

    def __enter__(self) -> Self:
        from sim.mininet import MininetNetwork, NetworkError  # noqa: PLC0415  only where Mininet is wanted

        try:
            with ExitStack() as exits:
                programs = programs_of(self._topology)  # compiled before the network stands
                self._network = exits.enter_context(MininetNetwork(self._topology, log_folder=self._logs))
                fabric = exits.enter_context(Fabric.connect(self._topology, self._network.addresses))
                fabric.push(programs)
                self._job = JobPlan.slots_job(
                    self._topology, name="glm", workers=self._hosts, slots=SLOTS, allocator=Allocator(self._topology)
                )
                deploy(self._job, self._topology, fabric.clients)
                if self._loss:
                    set_loss(fabric.clients["s1"], self._topology.ports("s1"), self._loss)
                self._exits = exits.pop_all()
        except (ControlPlaneError, NetworkError) as error:
            raise GlmError(str(error)) from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._exits.close()

    def told(self, wid: int) -> dict[str, Any]:
        return self._job.describe(self._hosts[wid])

    def port(self, wid: int) -> str | None:
        return None

    def popen(self, wid: int, argv: list[str], **options: Any) -> subprocess.Popen[str]:
        return self._network.popen(self._hosts[wid], argv, env=member_environment(), cwd=REPOSITORY, **options)
