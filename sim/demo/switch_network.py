"""The demo's hosts in namespaces on one switch that runs luwu.p4; everything is set up through P4Runtime."""

from __future__ import annotations

import subprocess
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self

from controlplane.diagnosis import diagnose
from controlplane.errors import ControlPlaneError
from controlplane.fabric import Fabric
from controlplane.faults import set_loss
from controlplane.jobs import JobPlan, deploy
from controlplane.programs import program_for
from controlplane.stats import drops
from controlplane.topology import Target, star
from sim.demo.errors import DemoError
from sim.demo.members import REPOSITORY, Deliver, Member, ProcessMember, member_environment, module_command
from sim.demo.options import ROOT_HOST, DemoOptions, Plan
from sim.mininet import MininetNetwork, NetworkError


class SwitchNetwork:
    """Hosts `w0`.. and `opt` in namespaces on one switch that runs luwu.p4, all through P4Runtime."""

    def __init__(self, options: DemoOptions) -> None:
        """Nothing is started before the context is entered."""
        self._options = options
        hosts = [*options.worker_names, ROOT_HOST]
        self._topology = star(
            hosts,
            program=REPOSITORY / "p4src" / "luwu.p4",
            name=options.name,
            target=Target(options.target),
            lanes=options.lanes,
            mtu=options.mtu,
        )
        self._job = JobPlan.luwu(
            self._topology, name="demo", workers=list(options.worker_names), root=ROOT_HOST, slots=options.slots
        )
        self._exits = ExitStack()

    def __enter__(self) -> Self:
        """Compile the program if need be, bring the network up, deploy the job; leaves nothing behind on failure."""
        try:
            with ExitStack() as exits:
                (switch,) = self._topology.switches.values()
                program = program_for(switch)
                self._network = exits.enter_context(MininetNetwork(self._topology, log_folder=self._options.logs))
                self._fabric = exits.enter_context(Fabric.connect(self._topology, self._network.addresses))
                self._fabric.push({switch.name: program})
                deploy(self._job, self._topology, self._fabric.clients)
                if self._options.loss:
                    for name, client in self._fabric.clients.items():
                        set_loss(client, self._topology.ports(name), self._options.loss)
                self._exits = exits.pop_all()
        except (ControlPlaneError, NetworkError) as error:
            raise DemoError(str(error)) from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._exits.close()

    def describe(self) -> dict[str, dict[str, Any]]:
        """As the job plan describes each host."""
        return {host: self._job.describe(host) for host in (*self._options.worker_names, ROOT_HOST)}

    def start(self, host: str, plan: Plan, deliver: Deliver) -> Member:
        """A process in the host's namespace."""
        command = module_command("sim.demo.process", (str(plan.path), host), plan.options.logs / f"{host}.log")

        def popen(argv: list[str], **options: Any) -> subprocess.Popen[str]:
            return self._network.popen(host, argv, env=member_environment(), cwd=REPOSITORY, **options)

        return ProcessMember(host, command, popen, deliver)

    def counters(self) -> dict[str, int]:
        """Read through P4Runtime."""
        totals: dict[str, int] = {}
        for client in self._fabric.clients.values():
            for reason, packets in drops(client).items():
                totals[reason] = totals.get(reason, 0) + packets
        return totals

    def diagnosis(self) -> list[str]:
        """Who sends nothing, as the switch's counters show it.

        Raises:
            DemoError: the switch does not answer.
        """
        try:
            found = diagnose(self._job, self._fabric.clients)
        except ControlPlaneError as error:
            raise DemoError(f"the switch cannot be asked: {error}") from error
        if any(missing.packets is None for missing in found):
            raise DemoError("; ".join(str(missing) for missing in found))
        return [str(missing) for missing in found]
