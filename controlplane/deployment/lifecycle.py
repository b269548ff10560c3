"""Creating, removing and renewing jobs: stored first, then on the switches; commands and the controller alike."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from catchment.controlplane.client import SwitchClient, SwitchError
from catchment.controlplane.deployment.records import JobRecord, JobState
from catchment.controlplane.deployment.store import Transactions
from catchment.controlplane.jobs import (
    Allocator,
    JobError,
    JobKind,
    JobPlan,
    deploy,
    remove,
    remove_where_possible,
    renew,
)
from catchment.controlplane.state.scrub import scrub
from catchment.controlplane.topology import Topology

Clients = Mapping[str, SwitchClient]
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")
_STREAMS = 2
"""Most generations that a job takes."""


@dataclass(frozen=True, slots=True)
class JobRequest:
    """A job that a user asks for.

    Attributes:
        name: of the job.
        kind: what it does.
        workers: host names, index by position.
        root: the optimizer node's host name; for luwu jobs.
        slots: vectors in flight, a power of two.
        rail: the rail to run on; the least busy that all members are on when left out.
    """

    name: str
    kind: JobKind
    workers: Sequence[str]
    root: str | None = None
    slots: int = 64
    rail: str | None = None

    def plan(self, topology: Topology, allocator: Allocator) -> JobPlan:
        """The job.

        Raises:
            JobError: an impossible request, or a switch is full.
        """
        if not _NAME.fullmatch(self.name):
            raise JobError(f"{self.name!r} cannot be the name of a job; letters, digits, '-', '_' and '.', 63 at most")
        common = {
            "name": self.name, "workers": self.workers, "slots": self.slots, "allocator": allocator, "rail": self.rail
        }  # fmt: skip
        if self.kind is JobKind.LUWU:
            if self.root is None:
                raise JobError(f"job {self.name}: a luwu job needs --root HOST, its optimizer node")
            return JobPlan.luwu(topology, root=self.root, **common)  # type: ignore[arg-type]
        if self.root is not None:
            raise JobError(f"job {self.name}: --root is for luwu jobs, and this one is of kind {self.kind}")
        if self.kind is JobKind.SLOTS:
            return JobPlan.slots_job(topology, **common)  # type: ignore[arg-type]
        return JobPlan.allreduce(topology, **common)  # type: ignore[arg-type]


def reserve_job(store: Transactions, request: JobRequest, topology: Topology, token: bytes = b"") -> JobRecord:
    """Plan a job and note it, not yet on any switch.

    Raises:
        JobError: the name is taken, or as `JobRequest.plan`.
    """
    with store() as jobs:
        if request.name in jobs.records:
            raise JobError(
                f"job {request.name} exists; remove it with `catchment job remove {request.name}` or take another name"
            )
        plan = replace(request.plan(topology, jobs.allocator), owner=jobs.owner)
        record = JobRecord(plan, JobState.CREATING, token=token)
        jobs.put(record)
    return record


def deploy_job(
    store: Transactions, record: JobRecord, topology: Topology, clients: Clients, *, reconciled: bool = False
) -> JobRecord:
    """Write a job that was reserved to the switches; forgets it when that fails. Arguments as `jobs.deploy`.

    Raises:
        SwitchError, JobError: as `catchment.controlplane.jobs.deploy`.
    """
    try:
        deploy(record.plan, topology, clients, reconciled=reconciled)
    except BaseException:
        forget_job(store, record.plan.name)
        raise
    try:
        with store() as jobs:
            jobs.set_state(record.plan.name, JobState.UP)
    except BaseException:  # a job that nobody would find again must not stay
        remove_where_possible(record.plan, topology, clients)
        forget_job(store, record.plan.name)
        raise
    return replace(record, state=JobState.UP)


def forget_job(store: Transactions, name: str) -> None:
    """Note that there is no such job any more, on the disk when there is room."""
    with store() as jobs:
        jobs.can_wait = True
        jobs.discard(name)


def remove_job(store: Transactions, name: str, topology: Topology, clients: Clients | None) -> None:
    """Take a job off the switches and forget it.

    Args:
        store: where it is noted.
        name: of the job.
        topology: where it is.
        clients: switch name -> client; None forgets it without asking its switches.

    Raises:
        JobError: there is no such job, or no client for one of its switches.
        SwitchError: a switch refuses or does not answer; the job stays noted, as being removed.
    """
    with store() as jobs:
        plan = jobs.get(name)
        jobs.set_state(name, JobState.REMOVING)
    if clients is not None:
        remove(plan, topology, clients)
    forget_job(store, name)


def renew_job(
    store: Transactions, name: str, topology: Topology, clients: Clients, *, above: int = 0
) -> tuple[JobRecord, list[SwitchError]]:
    """Give a job new generations: for members that lost their state, and to shut those out that are believed dead.

    Args:
        store: where it is noted.
        name: of the job.
        topology: where it is.
        clients: switch name -> client.
        above: an epoch that a member knows; the new one comes after it, too.

    Returns:
        The job in its new epoch, and what went wrong on switches (they get their share when they are restored).

    Raises:
        JobError: there is no such job, or no generation is left.
    """
    with store() as jobs:
        old = jobs.record(name)
        record = replace(old, plan=old.plan.renewed(jobs.allocator), epoch=max(old.epoch, above) + 1)
        jobs.can_wait = True  # whoever is lost must be shut out at once
        jobs.put(record)
    return record, renew(old.plan, record.plan, topology, clients)


def remove_job_where_possible(
    store: Transactions, name: str, topology: Topology, clients: Clients
) -> list[SwitchError]:
    """Remove a job and forget it whatever its switches say: they are reconciled when they come back.

    Returns:
        What went wrong on switches.

    Raises:
        JobError: there is no such job, or it cannot be noted that it goes; nothing has happened to it then.
    """
    with store() as jobs:
        plan = jobs.get(name)
        jobs.set_state(name, JobState.REMOVING)
    failures = remove_where_possible(plan, topology, clients)
    forget_job(store, name)
    return failures


def generations_run_out(store: Transactions) -> bool:
    """Whether the numbers run out that no register of a switch can still hold."""
    with store() as jobs:
        return jobs.allocator.clean < _STREAMS


def keep_generations_clean(
    store: Transactions, topology: Topology, clients: Clients, reload: Callable[[str, SwitchClient], None]
) -> None:
    """Scrub every switch when the clean generations run out: once in 65535 of them.

    Args:
        store: the jobs.
        topology: all switches.
        clients: switch name -> client.
        reload: loads a switch's program anew and restores it, which empties its registers.

    Raises:
        JobError: a switch is not connected.
        SwitchError: a switch refuses or does not answer.
    """
    if not generations_run_out(store):
        return
    absent = [name for name in topology.switches if name not in clients]
    if absent:
        raise JobError(
            f"old generations must be scrubbed from every switch before more are given out, and {', '.join(absent)} "
            "does not answer; bring it up"
        )
    with store() as jobs:
        alive = jobs.generations
    for name, client in clients.items():
        if not scrub(client, alive):
            reload(name, client)
    with store() as jobs:
        jobs.note_scrubbed()
