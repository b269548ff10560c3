"""Switches of any topology on this machine without Mininet or root: hosts and cables between switches in shared memory.

with TreeLab(racks([["w0", "w1"], ["w2", "w3"]], program=LUWU)) as lab:
    job = lab.allreduce(["w0", "w1", "w2", "w3"])
    with lab.communicator(job, "w0") as rank: ...

With switches that run p4sgd.p4 it takes jobs of `slots`, and `reducer` in place of `communicator`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from catchment.controlplane.deployment.fabric import Fabric
from catchment.controlplane.jobs import Allocator, JobPlan, deploy, plan_job
from catchment.controlplane.programs.cache import cache_folder, programs_of
from catchment.controlplane.topology import PortRef, Topology
from catchment.controlplane.topology.rates import port_faults
from catchment.host import AllReducer, Stream
from catchment.host.collectives import Communicator
from catchment.softswitch.process import SwitchProcess
from catchment.wire.socket_folder import socket_folder

_TIMEOUT = 240.0


class TreeLab:
    """Every switch of a topology as a process, its program loaded; a context manager.

    Args:
        topology: of the switches and hosts; ports keep to the rates of its NICs and links.

    Attributes:
        topology: the one given.
        fabric: the control plane's connection to them.
    """

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self._allocator = Allocator(self.topology)
        self._exits = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as exits:
            self._folder = Path(exits.enter_context(socket_folder()))
            programs = programs_of(self.topology)
            addresses = {name: f"unix:{self._folder}/{name}.grpc" for name in self.topology.switches}
            for name, switch in self.topology.switches.items():
                exits.enter_context(
                    SwitchProcess(
                        ports=self._ports(name),
                        grpc=addresses[name],
                        device_id=switch.device_id,
                        program_dir=cache_folder(),
                        extra=self._limits(name),
                    )
                )
            self.fabric = exits.enter_context(Fabric.connect(self.topology, addresses, timeout=_TIMEOUT))
            self.fabric.push(programs)
            self._exits = exits.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._exits.close()

    def allreduce(self, workers: Sequence[str], **plan: Any) -> JobPlan:
        """Plan and deploy a job; further arguments as for `plan_job`."""
        return self._deploy("allreduce", workers, plan)

    def slots(self, workers: Sequence[str], **plan: Any) -> JobPlan:
        """Plan and deploy a job of slots; further arguments as for `plan_job`."""
        return self._deploy("slots", workers, plan)

    def _deploy(self, kind: str, workers: Sequence[str], plan: Mapping[str, Any]) -> JobPlan:
        job = plan_job(kind, self.topology, workers=workers, allocator=self._allocator, **{"name": "job", **plan})
        deploy(job, self.topology, self.fabric.clients)
        return job

    def reducer(self, job: JobPlan, host: str, **options: Any) -> AllReducer:
        """A member of a slots job on its port; `options` as for `host.AllReducer` (timeout, window, spin)."""
        description = job.describe(host)
        return AllReducer(
            stream=Stream(**description["sums"]),
            wid=description["wid"],
            local=tuple(description["local"]),
            switch=tuple(description["switch"]),
            **{"port": f"shm:{self._path(host)}", **options},
        )

    def communicator(self, job: JobPlan, host: str, **options: Any) -> Communicator:
        """A rank of an all-reduce job on its port; `options` as for `catchment.host.collectives.Communicator`."""
        return Communicator.of_job(job.describe(host), **{"port": f"shm:{self._path(host)}", **options})

    def _path(self, host: str) -> Path:
        return self._folder / host

    def _limits(self, switch: str) -> tuple[str, ...]:
        limits = port_faults(self.topology, switch)
        return tuple(word for port, limit in limits.items() for word in ("--fault", f"{port}:{limit}"))

    def _ports(self, switch: str) -> dict[int, str]:
        hosts = {
            host.link.port: f"shm:{self._path(name)}"
            for name, host in self.topology.hosts.items()
            if host.link.switch == switch
        }
        return hosts | {
            port: self._cable(PortRef(switch, port), peer) for port, peer in self.topology.wiring.trunks[switch].items()
        }

    def _cable(self, own: PortRef, peer: PortRef) -> str:
        """An end of a cable between two switches: that of the first of both ports has the memory."""
        first = min(own, peer)
        path = self._folder / f"{first.switch}.{first.port}"
        return f"shm:{path}" if own == first else f"cable:{path}"
