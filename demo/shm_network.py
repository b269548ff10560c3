"""The demo's hosts as processes of this machine on a switch's shared-memory ports: no Mininet, no root."""

from __future__ import annotations

from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self

from catchment.controlplane.diagnosis.stats import drops_of_all
from catchment.controlplane.diagnosis.waiting import diagnose
from catchment.controlplane.errors import ControlPlaneError
from catchment.controlplane.jobs import JobPlan
from catchment.controlplane.state.faults import set_loss
from catchment.demo.network import by_host
from catchment.sim.lab.errors import LabError
from catchment.sim.lab.members import Deliver, Member, ProcessMember, module_command, start_here
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
        return by_host({root: self._parts(root) for root in self._jobs})

    def _parts(self, root: str) -> dict[str, dict[str, Any]]:
        job, lab = self._jobs[root], self.labs[root]
        return {host: {**job.describe(host), "port": f"shm:{lab.path(host)}"} for host in job.ports}

    def start(self, host: str, plan: Plan, deliver: Deliver) -> Member:
        """A process of this machine."""
        command = module_command("catchment.demo.process", (str(plan.path), host), plan.options.logs / f"{host}.log")
        return ProcessMember(host, command, start_here, deliver)

    def counters(self) -> dict[str, int]:
        """Read through P4Runtime."""
        return drops_of_all(lab.client for lab in self.labs.values())

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
