"""What a user asks for: a job by itself or a group of jobs; planned at once, so that either all fit or none is made."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from catchment.controlplane.jobs.allocation import Allocator
from catchment.controlplane.jobs.division import SPLIT, Choice, SplitCall, grid, split
from catchment.controlplane.jobs.errors import JobError
from catchment.controlplane.jobs.group import ALONE, JobGroup
from catchment.controlplane.jobs.kinds.allreduce import ALLREDUCE
from catchment.controlplane.jobs.plan import JobPlan
from catchment.controlplane.jobs.planning import plan_job
from catchment.controlplane.jobs.rings import plan_ring
from catchment.controlplane.topology import Topology
from catchment.wire.rail_labels import labels_beside

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")
MOST_GENERATIONS = 4096
"""Most that a group takes."""


@dataclass(frozen=True, slots=True)
class JobRequest:
    """A job, or a group of jobs, that a user asks for.

    Attributes:
        name: of the job.
        kind: what it does: the name of a registered kind.
        workers: host names, index by position.
        root: the optimizer node's host name; for kinds that have one.
        slots: vectors in flight of each job, a power of two.
        rail: the rail to run on; the least busy that all members are on when left out.
        streams: which optional streams of its kind it has.
        rails: a job on each of these rails, with the same workers.
        roots: a job with each of these optimizer nodes, with the same workers.
        grid: (name, ranks in a block), from the outermost: beside the job of all workers one for each block and one for
            the workers at equal places of the blocks (`jobs.division.grid`).
        packed: sums of floats may travel as 16-bit integers, two in a lane.
        tags: frames carry tags.
    """

    name: str
    kind: str
    workers: Sequence[str]
    root: str | None = None
    slots: int = 64
    rail: str | None = None
    streams: tuple[str, ...] = ()
    rails: tuple[str, ...] = ()
    roots: tuple[str, ...] = ()
    grid: tuple[tuple[str, int], ...] = ()
    packed: bool = False
    tags: bool = False

    def plan(self, topology: Topology, allocator: Allocator) -> JobGroup:
        """The group; a job by itself is a group of one.

        Raises:
            JobError: an impossible request, or a switch is full.
        """
        if not _NAME.fullmatch(self.name):
            raise JobError(f"{self.name!r} cannot be the name of a job; letters, digits, '-', '_' and '.', 63 at most")
        for one, several, what in ((self.root, self.roots, "root"), (self.rail, self.rails, "rail")):
            if one is not None and several:
                raise JobError(f"job {self.name}: give --{what} for one job or --{what}s for a group, not both")
            if len(set(several)) != len(several):
                raise JobError(f"job {self.name}: a {what} can be given once only; given: {', '.join(several)}")
        self._check_rings(topology)
        parts: dict[str, JobPlan] = {}
        for label, workers, root, rail in self._parts():
            parts[label] = self._plan_part(
                label, workers, rail, root=root, slots=self.slots, streams=self.streams, topology=topology,
                allocator=allocator,
            )  # fmt: skip
        if self.kind == ALLREDUCE.name:
            parts |= self._beside_rails(topology, allocator)
        group = JobGroup(self.name, parts)
        check_size(group)
        return group

    def _check_rings(self, topology: Topology) -> None:
        wanted = self.rails or ((self.rail,) if self.rail is not None else ())
        asked = [rail for rail in wanted if rail in topology.rings]
        if not asked:
            return
        what = f"job {self.name}: {asked[0]} is a ring of {topology.rings[asked[0]].transport}"
        if self.kind != ALLREDUCE.name:
            raise JobError(f"{what}, for jobs of kind {ALLREDUCE.name}; this one is of kind {self.kind}")
        if len(asked) == len(wanted):
            raise JobError(f"{what}; give a rail with a switch besides: --rails A,{asked[0]}")
        if self.tags:
            raise JobError(f"{what}, whose frames pass no switch program that knows tags; make the job without --tags")
        if self.packed or self.streams:
            raise JobError(f"{what}: such a job is planned without packed lanes and without optional streams")

    def _plan_part(
        self,
        label: str,
        workers: Sequence[str],
        rail: str | None,
        *,
        topology: Topology,
        allocator: Allocator,
        slots: int,
        root: str | None = None,
        streams: tuple[str, ...] = (),
    ) -> JobPlan:
        """A job of the group; one on a ring has the lanes of the first rail that has a switch."""
        name = part_name(self.name, label)
        if rail is not None and rail in topology.rings:
            first = topology.plane(next(one for one in self.rails if one not in topology.rings))
            lanes = max(switch.lanes for switch in first.switches.values())
            return plan_ring(
                topology, name=name, workers=workers, rail=rail, lanes=lanes, slots=slots, allocator=allocator
            )
        return plan_job(
            self.kind, topology, name=name, workers=workers, root=root, slots=slots, allocator=allocator, rail=rail,
            streams=streams, packed=self.packed, tags=self.tags,
        )  # fmt: skip

    def _parts(self) -> Iterator[tuple[str, Sequence[str], str | None, str | None]]:
        """Label, workers, root and rail of each job; the jobs of all workers first."""
        for name, _ in self.grid:
            if not _NAME.fullmatch(name) or name.startswith(SPLIT):
                raise JobError(
                    f"job {self.name}: {name!r} cannot name blocks of a grid; take letters and digits, not {SPLIT}"
                )
        divisions = {ALONE: tuple(self.workers), **grid(self.workers, self.grid, self.name)}
        for division, workers in divisions.items():
            for root in self.roots or (self.root,):
                for rail in self.rails or (self.rail,):
                    pieces = (root if self.roots else None, rail if self.rails else None, division)
                    yield ".".join(filter(None, pieces)), workers, root, rail

    def _beside_rails(self, topology: Topology, allocator: Allocator) -> dict[str, JobPlan]:
        """What lets a rail fail: on each rail a job for what the workers agree on, and one for each other rail."""
        return {
            label: self._plan_part(
                label, self.workers, rail, slots=slots or self.slots, topology=topology, allocator=allocator
            )
            for rail in self.rails
            for label, slots in labels_beside(rail, self.rails).items()
        }  # fmt: skip


def part_name(group: str, label: str) -> str:
    """The name of a job of a group; the slash cannot be in the name of a job by itself."""
    return f"{group}/{label}" if label != ALONE else group


def group_name(part: str) -> str:
    """The name of the group of a job, which verbs take: the opposite of `part_name`."""
    return part.partition("/")[0]


def check_size(group: JobGroup) -> None:
    """Refuse a group that takes too many generations at once.

    Raises:
        JobError: says how many.
    """
    takes = sum(len(plan.streams) for plan in group.plans)
    if takes > MOST_GENERATIONS:
        raise JobError(f"job {group.name} has {takes} streams; {MOST_GENERATIONS} are allowed")


def extended(
    group: JobGroup, call: SplitCall, choices: Mapping[str, Choice], topology: Topology, allocator: Allocator
) -> JobGroup:
    """The group with the jobs of a split beside its others: one for each color, on each rail and root that it has.

    The jobs of an earlier split with this call give way, unless they are the same.

    Args:
        group: of jobs.
        call: which split it is.
        choices: of every worker that takes part.
        topology: where.
        allocator: of everything else on it.

    Raises:
        JobError: a choice is missing, or a switch is full.
    """
    colors = split(call.workers(group.first.workers), choices)
    before = set(group.made_by(call))
    wanted = {
        ".".join(filter(None, (base, f"{call}.{color}"))): (plan, workers)
        for base, plan in group.whole().items()
        for color, workers in colors.items()
    }
    if {label: workers for label, (_, workers) in wanted.items()} == {
        label: group.parts[label].workers for label in before
    }:
        return group
    made = {
        label: plan_ring(
            topology, name=part_name(group.name, label), workers=workers, rail=base.rail, lanes=base.lanes,
            slots=base.slots, allocator=allocator,
        )
        if base.ring is not None and base.rail is not None
        else plan_job(
            base.kind, topology, name=part_name(group.name, label), workers=workers, root=base.root, slots=base.slots,
            allocator=allocator, rail=base.rail, lanes=base.lanes, packed=base.packed,
            tags=base.tags,
        )
        for label, (base, workers) in wanted.items()
    }  # fmt: skip
    made = {label: replace(plan, owner=wanted[label][0].owner) for label, plan in made.items()}
    larger = JobGroup(
        group.name,
        {**{label: plan for label, plan in group.parts.items() if label not in before}, **made},
        {**{label: n for label, n in group.splits.items() if label not in before}, **dict.fromkeys(made, call)},
    )
    check_size(larger)
    return larger
