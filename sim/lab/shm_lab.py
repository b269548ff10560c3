"""A whole job on this machine without Mininet or root: one switch with shared-memory ports, and its endpoints.

    with ShmLab(["w0", "w1", "opt"]) as lab:
        job = lab.luwu(["w0", "w1"], root="opt")
        with lab.endpoint(job, "w0") as w0, lab.endpoint(job, "w1") as w1, lab.endpoint(job, "opt") as root:
            total = np.zeros(1000, np.float32)
            pull = root.pull(total)
            w0.push(ones, exponent=4); w1.push(ones, exponent=4)
            pull.wait()

The switch is the one that runs everywhere else, its program and the control plane too; only the cables are memory.
With `program=P4SGD, lanes=8` it takes jobs of `slots`, and `reducer` in place of `endpoint`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from catchment.checkout import ROOT
from catchment.controlplane.client import SwitchClient
from catchment.controlplane.deployment.fabric import Fabric
from catchment.controlplane.jobs import Allocator, JobPlan, deploy, plan_job, remove
from catchment.controlplane.programs.cache import cache_folder, programs_of
from catchment.controlplane.topology import star
from catchment.softswitch.process import SwitchProcess
from catchment.wire.generated.constants import UDP_PORT
from catchment.wire.socket_folder import socket_folder

if TYPE_CHECKING:  # each group of torchrun's waits for a switch to start, whose process has no endpoint
    from catchment.host import AllReducer, Endpoint
    from catchment.host.collectives import Communicator
    from catchment.softswitch.shm import Port

LUWU, P4SGD = (ROOT / "p4src" / name for name in ("luwu.p4", "p4sgd.p4"))
SWITCH = "s1"
IN_CALLERS = "CATCHMENT_IN_CALLERS"
"""0 in this variable leaves the program to the switch's process."""
_TIMEOUT = 240.0  # for a switch that is known to be there, on a machine that may be busy


class ShmLab:
    """A switch with one shared-memory port per host, its program loaded; a context manager.

    Args:
        hosts: names; host number i is on port i + 1.
        program: P4 source that the jobs run on.
        lanes: of the program.
        slots: of the program, for all jobs together.
        mtu: of the plans; bounds the parameters' payload.
        options: of every port, as after shm:PATH ("cells=256,bytes=2112").
        extra: more arguments for the switch.
        uplink: LOCAL,PEER, each IP:PORT, of a port behind the hosts', where there is one (`catchment.sim.lab.leaf`).
        tags: the program takes jobs whose frames carry tags.
        in_callers: processes of this user run the switch's program themselves (docs/explanation/switch-in-callers.md);
            None: unless CATCHMENT_IN_CALLERS=0.

    Attributes:
        topology: what the control plane plans on.
        switch: the switch's process.
        fabric: the control plane's connection to it.
        allocator: of what jobs hold there.
        in_callers: whether processes of this user run the switch's program themselves.
    """

    def __init__(
        self,
        hosts: Sequence[str],
        *,
        program: Path = LUWU,
        lanes: int = 64,
        slots: int = 1024,
        mtu: int = 1500,
        options: str = "",
        extra: tuple[str, ...] = (),
        uplink: str = "",
        tags: bool = False,
        in_callers: bool | None = None,
    ) -> None:
        self.topology = star(hosts, program=program, name="shm-lab", lanes=lanes, slots=slots, mtu=mtu, tags=tags)
        self._options = f",{options}" if options else ""
        self.in_callers = os.environ.get(IN_CALLERS) != "0" if in_callers is None else in_callers
        self._extra = (*extra, *(("--in-callers",) if self.in_callers else ()))
        self._uplink = uplink
        self.allocator = Allocator(self.topology)
        self._jobs: list[JobPlan] = []
        self._exits = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as exits:
            self._folder = Path(exits.enter_context(socket_folder()))
            self._programs = programs_of(self.topology)
            self._address = f"unix:{self._folder}/grpc"
            self.switch = self._start()
            exits.callback(self._stop)
            self.fabric = exits.enter_context(Fabric.connect(self.topology, {SWITCH: self._address}, timeout=_TIMEOUT))
            self.fabric.push(self._programs)
            self._exits = exits.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._exits.close()

    @property
    def client(self) -> SwitchClient:
        """The control plane's connection to the switch."""
        return self.fabric.clients[SWITCH]

    def path(self, host: str) -> Path:
        """The socket of a host's port."""
        return self._folder / host

    def luwu(self, workers: Sequence[str], root: str, **plan: Any) -> JobPlan:
        """Plan and deploy a job; further arguments as for `plan_job`."""
        return self._deploy(
            plan_job(
                "luwu", self.topology, workers=workers, root=root, allocator=self.allocator, **{"name": "job", **plan}
            )
        )

    def allreduce(self, workers: Sequence[str], **plan: Any) -> JobPlan:
        """Plan and deploy a job; further arguments as for `plan_job`."""
        return self._deploy(
            plan_job("allreduce", self.topology, workers=workers, allocator=self.allocator, **{"name": "job", **plan})
        )

    @property
    def free_slots(self) -> int:
        """The slots of the switch that no job has."""
        return self.topology.switch(SWITCH).slots - self.allocator.load(SWITCH)[1]

    def remove(self, job: JobPlan) -> None:
        """Take a deployed job off the switch; what it held can be given to others."""
        remove(job, self.fabric.clients)
        self._jobs.remove(job)
        job.release(self.allocator)

    def slots(self, workers: Sequence[str], **plan: Any) -> JobPlan:
        """Plan and deploy a job; further arguments as for `plan_job`."""
        return self._deploy(
            plan_job("slots", self.topology, workers=workers, allocator=self.allocator, **{"name": "job", **plan})
        )

    def reducer(self, job: JobPlan, host: str, **options: Any) -> AllReducer:
        """A member of a slots job on its port; `options` as for `host.AllReducer` (timeout, window, spin)."""
        from catchment.host import AllReducer, Stream  # noqa: PLC0415  see above

        description = job.describe(host)
        return AllReducer(
            stream=Stream(**description["sums"]),
            wid=description["wid"],
            **{**self._where(host, description), **options},
        )

    def endpoint(self, job: JobPlan, host: str, **options: Any) -> Endpoint:
        """A member's endpoint on its port; `options` as for `host.Endpoint` (timeout, window)."""
        from catchment.host import Endpoint, Stream  # noqa: PLC0415  see above

        description = job.describe(host)
        where = {**self._where(host, description), **options}
        if description["role"] == "peer":
            return Endpoint.peer(stream=Stream(**description["sums"]), wid=description["wid"], **where)
        where |= {"gradients": Stream(**description["gradients"]), "parameters": Stream(**description["parameters"])}
        return (
            Endpoint.root(**where)
            if description["role"] == "root"
            else Endpoint.worker(wid=description["wid"], **where)
        )

    def communicator(self, job: JobPlan, host: str, **options: Any) -> Communicator:
        """A rank of an all-reduce job on its port; `options` as for `catchment.host.collectives.Communicator`."""
        from catchment.host.collectives import Communicator  # noqa: PLC0415  see above

        return Communicator.of_job(job.describe(host), **{"port": f"shm:{self.path(host)}", **options})

    def _where(self, host: str, description: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "local": tuple(description["local"]),
            "switch": tuple(description["switch"]),
            "port": f"shm:{self.path(host)}",
        }

    def port(self, host: str, *, timeout: float | None = _TIMEOUT) -> Port:
        """A host's port itself, for frames of one's own making."""
        from catchment.softswitch.shm import Port  # noqa: PLC0415  see above

        return Port.attach(self.path(host), timeout=timeout)

    def kill_switch(self) -> None:
        """End the switch as a crash would: no goodbye, its sockets left lying."""
        self.switch.kill()

    def restart_switch(self) -> None:
        """Start a switch on the same ports and give it all that the killed one had; its registers are empty."""
        self.switch = self._start()
        self.fabric.restore_switch(SWITCH, self._programs[SWITCH], self._jobs)

    def _start(self) -> SwitchProcess:
        ports = {host.link.port: f"shm:{self.path(name)}{self._options}" for name, host in self.topology.hosts.items()}
        if self._uplink:
            ports[len(ports) + 1] = f"udp:{self._uplink},as={self.topology.switch(SWITCH).ip}:{UDP_PORT}"
        return SwitchProcess(ports=ports, grpc=self._address, program_dir=cache_folder(), extra=self._extra)

    def _stop(self) -> None:
        self.switch.stop()

    def _deploy(self, job: JobPlan) -> JobPlan:
        deploy(job, self.topology, self.fabric.clients)
        self._jobs.append(job)
        return job
