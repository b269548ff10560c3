"""A group of jobs: planned, deployed, renewed and removed as one. A job by itself is a group of one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from catchment.controlplane.jobs.allocation import Allocator
from catchment.controlplane.jobs.division import SplitCall
from catchment.controlplane.jobs.entries import misfit, switch_configs, switch_keys
from catchment.controlplane.jobs.errors import JobError
from catchment.controlplane.jobs.plan import JobPlan
from catchment.controlplane.state.desired import SwitchConfig
from catchment.controlplane.topology import Topology
from catchment.wire.rail_labels import labels_beside

ALONE = ""
"""Label of the part that has the group's own name: a job by itself, or the job of all workers that others divide."""


@dataclass(frozen=True, slots=True)
class JobGroup:
    """Jobs that go together; `JobRequest.plan` makes one.

    Attributes:
        name: of the group.
        parts: label -> job, which has the name NAME/LABEL, and the group's own name for the label ALONE. Equal or
            different members, roots and rails; at least one.
        splits: label -> the split that made this part; the others were planned with the group.
    """

    name: str
    parts: Mapping[str, JobPlan]
    splits: Mapping[str, SplitCall] = field(default_factory=dict)

    @classmethod
    def alone(cls, job: JobPlan) -> Self:
        """A job as a group of one."""
        return cls(job.name, {ALONE: job})

    @property
    def plans(self) -> tuple[JobPlan, ...]:
        """The jobs of the group."""
        return tuple(self.parts.values())

    @property
    def first(self) -> JobPlan:
        """The first job, which has every worker of the group."""
        return next(iter(self.parts.values()))

    @property
    def hosts(self) -> tuple[str, ...]:
        """Every member of any job, each once."""
        return tuple(dict.fromkeys(host for plan in self.plans for host in plan.ports))

    @property
    def roots(self) -> tuple[str, ...]:
        """The optimizer nodes, each once."""
        return tuple(dict.fromkeys(plan.root for plan in self.plans if plan.root is not None))

    @property
    def rails(self) -> tuple[str, ...]:
        """The rails that the jobs run on, each once."""
        return tuple(dict.fromkeys(plan.rail for plan in self.plans if plan.rail is not None))

    @property
    def switches(self) -> tuple[str, ...]:
        """Every switch of any job that adds up for it, each once."""
        return tuple(dict.fromkeys(branch.switch for plan in self.plans for branch in plan.tree))

    def made_by(self, call: SplitCall) -> list[str]:
        """Labels of the parts that a split made."""
        return [label for label, made_by in self.splits.items() if made_by == call]

    def whole(self) -> dict[str, JobPlan]:
        """The parts that were planned with the group and that every worker of it is in, by label.

        Not those beside the parts of several rails, which carry what these cannot.
        """
        everybody = frozenset(self.first.workers)
        beside = {label for rail in self.rails for label in labels_beside(rail, self.rails)}
        return {
            label: plan
            for label, plan in self.parts.items()
            if label not in self.splits and label not in beside and frozenset(plan.workers) == everybody
        }

    def configs(self, topology: Topology) -> list[SwitchConfig]:
        """What each switch holds of all the jobs together.

        Raises:
            JobError: as `misfit` says.
        """
        return _merged(config for plan in self.plans for config in switch_configs(plan, topology))

    def entry_keys(self) -> list[SwitchConfig]:
        """The keys of what each switch holds of all the jobs together: to delete it."""
        return _merged(switch_keys(plan, branch) for plan in self.plans for branch in plan.tree)

    def misfit(self, topology: Topology) -> str:
        """Why its switches cannot hold it since the topology has changed; empty if they can."""
        return next(filter(None, (misfit(plan, topology) for plan in self.plans)), "")

    def renewed(self, allocator: Allocator) -> Self:
        """The same jobs with new generations, all of them: for members that lost their state.

        Raises:
            JobError: no generation is left.
        """
        return replace(self, parts={label: plan.renewed(allocator) for label, plan in self.parts.items()})

    def come_to(self, terms: Mapping[int, int]) -> Self:
        """The same jobs with another key for each stream whose generation is in `terms`."""
        return replace(self, parts={label: plan.come_to(terms) for label, plan in self.parts.items()})

    def owned(self, owner: str) -> Self:
        """The same jobs, their entries marked with these words (`JobPlan.owner`)."""
        return replace(self, parts={label: replace(plan, owner=owner) for label, plan in self.parts.items()})

    def describe(self, host: str, *, to_member: bool = False) -> dict[str, Any]:
        """What a host's endpoints need, as plain JSON values; `to_member` as for `JobPlan.describe`.

        Of a job by itself as `JobPlan.describe`. Of a group: job, kind and host, and `parts`: label -> what
        `JobPlan.describe` says of the jobs that the host is in; beside that the keys of the job of all workers, where
        the group has one.

        Raises:
            JobError: the host is in none of the jobs.
        """
        if host not in self.hosts:
            raise JobError(f"host {host} is not in job {self.name}; in it are: {', '.join(self.hosts)}")
        own = self.parts.get(ALONE)
        described = (
            own.describe(host, to_member=to_member)
            if own is not None and host in own.ports
            else {"job": self.name, "kind": self.first.kind, "host": host}
        )
        parts = {
            label: plan.describe(host, to_member=to_member)
            for label, plan in self.parts.items()
            if label != ALONE and host in plan.ports
        }  # fmt: skip
        return {**described, "parts": parts} if set(self.parts) != {ALONE} else described

    def describe_all(self) -> dict[str, Any]:
        """The group and what each member needs, as plain JSON values: what a job file (CATCHMENT_JOB) holds.

        Keys: of a job by itself as `JobPlan.describe_all`; of a group name, kind, workers, roots, lanes, slots, rails,
        members as `describe` tells each host, and parts: label -> workers, root, rail, slots, tree and generations.
        """
        if set(self.parts) == {ALONE}:
            return self.first.describe_all()
        return {
            "name": self.name,
            "kind": self.first.kind,
            "workers": list(self.first.workers),
            "root": ",".join(self.roots) or None,
            "lanes": self.first.lanes,
            "slots": self.first.slots,
            "rail": ",".join(self.rails) or None,
            "tree": list(self.switches),
            "parts": {label: _summary(plan) for label, plan in self.parts.items()},
            "members": {host: self.describe(host) for host in self.hosts},
        }

    def to_json(self) -> dict[str, Any]:
        """Everything, as plain JSON values."""
        return {
            "name": self.name,
            "parts": {label: plan.to_json() for label, plan in self.parts.items()},
            "splits": {
                label: {"number": call.number, "among": list(call.among)} for label, call in self.splits.items()
            },
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The opposite of `to_json`.

        Raises:
            JobError: not such a group.
        """
        try:
            parts = {str(label): JobPlan.from_json(plan) for label, plan in data["parts"].items()}
            if not parts:
                raise JobError("not a stored job: it has no parts")
            splits = {
                str(label): SplitCall(int(call["number"]), tuple(map(int, call["among"])))
                for label, call in data["splits"].items()
            }
            return cls(str(data["name"]), parts, splits)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise JobError(f"not a stored job: {error!r}") from None


def _merged(configs: Iterable[SwitchConfig]) -> list[SwitchConfig]:
    """One for each switch."""
    merged: dict[str, SwitchConfig] = {}
    for config in configs:
        before = merged.get(config.switch, SwitchConfig(config.switch))
        merged[config.switch] = SwitchConfig(
            config.switch, {**before.groups, **config.groups}, before.entries + config.entries
        )
    return list(merged.values())


def _summary(plan: JobPlan) -> dict[str, Any]:
    return {
        "workers": list(plan.workers),
        "root": plan.root,
        "rail": plan.rail,
        "slots": plan.slots,
        "tree": [branch.switch for branch in plan.tree],
        **({"ring": plan.ring.transport} if plan.ring is not None else {}),
        "generations": {stream.name: stream.gen for stream in plan.streams},
    }
