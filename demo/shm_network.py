"""The demo's hosts as processes of this machine on a switch's shared-memory ports: no Mininet, no root."""

from __future__ import annotations

import subprocess
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self

from catchment.checkout import ROOT
from catchment.controlplane.diagnosis.stats import drops
from catchment.controlplane.diagnosis.waiting import diagnose
from catchment.controlplane.errors import ControlPlaneError
from catchment.controlplane.jobs import JobPlan
from catchment.controlplane.state.faults import set_loss
from catchment.sim.lab.errors import LabError
from catchment.sim.lab.members import Deliver, Member, ProcessMember, member_environment, module_command
from catchment.sim.lab.shm_lab import SWITCH, ShmLab
from catchment.sim.training.options import Plan, TrainingOptions
from catchment.softswitch.process import SwitchProcessError

_SLOTS = 1024


class ShmNetwork:
    """A switch that runs luwu.p4 for each optimizer node, with a port for the node and for each worker.

    Nobody keeps the jobs: who is lost ends the run. labs: the switch of each optimizer node, by the node's name.
    """

    def __init__(self, options: TrainingOptions) -> None:
        """Nothing is started before the context is entered."""
        self._options = options
        self.labs = {
            root: ShmLab(
                [*options.worker_names, root],
                lanes=options.lanes,
                slots=max(_SLOTS, 2 * options.slots),
                mtu=options.mtu,
            )
            for root in options.root_names
        }
        self._jobs: dict[str, JobPlan] = {}
        self._exits = ExitStack()

    def __enter__(self) -> Self:
        """Start the switches and deploy a job on each; leaves nothing behind on failure."""
        options = self._options
        try:
            with ExitStack() as exits:
                for root, lab in self.labs.items():
                    exits.enter_context(lab)
                    if options.loss:
                        set_loss(lab.client, lab.topology.ports(SWITCH), options.loss)
                    self._jobs[root] = lab.luwu(
                        options.worker_names, root, name=root, slots=options.slots, packed=options.packed
                    )
                self._exits = exits.pop_all()
        except (ControlPlaneError, SwitchProcessError) as error:
            raise LabError(str(error)) from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._exits.close()

    def describe(self) -> dict[str, dict[str, Any]]:
        """Each host's part in each optimizer node's job that it is in."""
        described: dict[str, dict[str, Any]] = {}
        for root, job in self._jobs.items():
            for host in (*self._options.worker_names, root):
                part = {**job.describe(host), "port": f"shm:{self.labs[root].path(host)}"}
                if len(self._jobs) == 1:
                    described[host] = part
                else:
                    who = {"role": part["role"], "wid": part["wid"], "parts": {}}
                    described.setdefault(host, who)["parts"][root] = part
        return described

    def start(self, host: str, plan: Plan, deliver: Deliver) -> Member:
        """A process of this machine."""
        command = module_command("catchment.demo.process", (str(plan.path), host), plan.options.logs / f"{host}.log")

        def popen(argv: list[str], **options: Any) -> subprocess.Popen[str]:
            return subprocess.Popen(argv, env=member_environment(), cwd=ROOT, **options)

        return ProcessMember(host, command, popen, deliver)

    def counters(self) -> dict[str, int]:
        """Read through P4Runtime."""
        totals: dict[str, int] = {}
        for lab in self.labs.values():
            for reason, packets in drops(lab.client).items():
                totals[reason] = totals.get(reason, 0) + packets
        return totals

    def diagnosis(self) -> list[str]:
        """The members that send nothing.

        Raises:
            LabError: a switch has ended.
        """
        silent: list[str] = []
        for root, lab in self.labs.items():
            try:
                lab.switch.check()
                silent += map(str, diagnose(self._jobs[root], {SWITCH: lab.client}))
            except (ControlPlaneError, SwitchProcessError) as error:
                raise LabError(str(error)) from error
        return silent
