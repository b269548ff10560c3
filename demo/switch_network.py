"""The demo's hosts in namespaces on one switch that runs luwu.p4, under a controller as anybody else's job is."""

from __future__ import annotations

import os
import subprocess
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from catchment.checkout import ROOT
from catchment.controlplane.controller import messages
from catchment.controlplane.controller.settings import Timing
from catchment.controlplane.deployment.fabric import Fabric
from catchment.controlplane.diagnosis.stats import drops_of_all
from catchment.controlplane.errors import ControlPlaneError
from catchment.controlplane.jobs import JobRequest
from catchment.controlplane.programs.cache import programs_of
from catchment.controlplane.state.faults import set_loss
from catchment.controlplane.topology import Target, star
from catchment.sim.lab.controller_process import ControllerProcess
from catchment.sim.lab.errors import LabError
from catchment.sim.lab.members import Deliver, Member, ProcessMember, member_environment, module_command
from catchment.sim.lab.mininet import MininetNetwork, NetworkError
from catchment.sim.lab.mininet.preflight import NoNamespacesError
from catchment.sim.training.options import Plan, TrainingOptions
from catchment.wire.socket_folder import socket_folder

JOB = "demo"


class SwitchNetwork:
    """Hosts `w0`.. and `opt` (or `opt0`..) in namespaces on one switch that runs luwu.p4.

    A controller loads the program and makes the job; every host joins it with the job's token and a certificate of its
    own, beats while it trains, and leaves at the end. The controller says who is missing.
    """

    def __init__(self, options: TrainingOptions) -> None:
        """Nothing is started before the context is entered."""
        self._options = options
        hosts = [*options.worker_names, *options.root_names]
        self._topology = star(
            hosts,
            program=ROOT / "p4src" / "luwu.p4",
            name=options.name,
            target=Target(options.target),
            lanes=options.lanes,
            mtu=options.mtu,
        )
        self._exits = ExitStack()

    def __enter__(self) -> Self:
        """Bring network and controller up and create the job; leaves nothing behind on failure."""
        try:
            with ExitStack() as exits:
                programs_of(self._topology)  # compiled before anybody waits for it
                self._network = exits.enter_context(MininetNetwork(self._topology, log_folder=self._options.logs))
                # Keys, token and socket: nobody else's, and gone with the run.
                folder = Path(exits.enter_context(socket_folder()))
                self._controller = exits.enter_context(
                    ControllerProcess(
                        self._topology, self._network.addresses, folder, self._timing(),
                        log=self._options.logs / "controller.log",
                    )
                )  # fmt: skip
                self._operator = exits.enter_context(self._controller.operator())
                self._controller.wait_until_up(self._operator)
                self._fabric = exits.enter_context(self._look())
                if self._options.loss:
                    self._lose_frames()
                self._create_job(folder / "token")
                self._exits = exits.pop_all()
        except NoNamespacesError as error:
            raise LabError(f"{error}; or take --network shm (`make demo NETWORK=shm`), which has none") from error
        except (ControlPlaneError, NetworkError) as error:
            raise LabError(str(error)) from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._exits.close()

    def _timing(self) -> Timing:
        # A loss ends the run, so a busy machine must not pass for a hung worker; a dead one breaks its connection.
        return Timing(
            silence=self._options.timeout / 2,
            reunion=1.0,
            request=self._options.timeout,
            hang=self._options.timeout / 2,
        )

    def _look(self) -> Fabric:
        return Fabric.connect(self._topology, self._network.addresses, read_only=True)

    def _lose_frames(self) -> None:
        with Fabric.connect(self._topology, self._network.addresses) as fabric:
            for name, client in fabric.clients.items():
                set_loss(client, self._topology.ports(name), self._options.loss)

    def _create_job(self, token: Path) -> None:
        roots = self._options.root_names
        request = JobRequest(
            JOB, "luwu", self._options.worker_names, root=roots[0] if len(roots) == 1 else None,
            roots=roots if len(roots) > 1 else (), slots=self._options.slots, packed=self._options.packed,
        )  # fmt: skip
        created = self._operator.create(request)
        with os.fdopen(os.open(token, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(created.token)
        place = {
            "address": self._controller.address,
            "certificates": str(self._controller.certificates),
            "job": JOB,
            "token": str(token),
        }
        self._described = {}
        for member in created.job.members:
            described = messages.described(member.description)
            # In a group a host has the same role and index in each of its jobs.
            part = next(iter(described.get("parts", {"": described}).values()))
            who = {"role": part["role"], "wid": part["wid"]}
            self._described[member.host] = {**who, **described, "controller": place}

    def describe(self) -> dict[str, dict[str, Any]]:
        """Each host's part in the job, and where the controller is."""
        return self._described

    def start(self, host: str, plan: Plan, deliver: Deliver) -> Member:
        """A process in the host's namespace."""
        command = module_command("catchment.demo.process", (str(plan.path), host), plan.options.logs / f"{host}.log")

        def popen(argv: list[str], **options: Any) -> subprocess.Popen[str]:
            return self._network.popen(host, argv, env=member_environment(), cwd=ROOT, **options)

        return ProcessMember(host, command, popen, deliver)

    def counters(self) -> dict[str, int]:
        """Read through P4Runtime."""
        return drops_of_all(self._fabric.clients.values())

    def diagnosis(self) -> list[str]:
        """The members that are missing, as the controller says.

        Raises:
            LabError: the switch does not answer, or the controller does not.
        """
        try:
            down = [switch.detail for switch in self._operator.switches() if switch.state == "down"]
            trouble = self._operator.job(JOB).trouble
        except ControlPlaneError as error:
            raise LabError(str(error)) from error
        if down:
            raise LabError("; ".join(down))
        return [trouble] if trouble else []
