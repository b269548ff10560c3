"""Creating, splitting, renewing and removing jobs: stored first, then on the switches.

Commands and the controller alike use it. A group of jobs is treated as one: one transaction stores it, and it is on its
switches whole or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from catchment.controlplane.client import SwitchClient, SwitchError
from catchment.controlplane.deployment.records import JobRecord, JobState
from catchment.controlplane.deployment.store import Transactions
from catchment.controlplane.jobs import (
    Choice,
    JobError,
    JobRequest,
    SplitCall,
    deploy,
    give_keys,
    remove,
    remove_where_possible,
    renew,
    somebody_may_have_written,
)
from catchment.controlplane.jobs.request import MOST_GENERATIONS, extended
from catchment.controlplane.state.scrub import scrub
from catchment.controlplane.topology import Topology

_MOST_EPOCHS = (1 << 32) - 1  # uint32 in wire/controller.proto

Clients = Mapping[str, SwitchClient]


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
        plan = request.plan(topology, jobs.allocator).owned(jobs.owner)
        record = JobRecord(plan, JobState.CREATING, token=token)
        jobs.put(record)
    return record


def deploy_job(
    store: Transactions,
    record: JobRecord,
    topology: Topology,
    clients: Clients,
    *,
    undisturbed: Callable[[str], bool] = somebody_may_have_written,
) -> JobRecord:
    """Write a job that was reserved to the switches; forgets it when that fails. Arguments as `jobs.deploy`.

    Raises:
        SwitchError, JobError: as `catchment.controlplane.jobs.deploy`.
    """
    try:
        deploy(record.group, topology, clients, undisturbed=undisturbed)
    except BaseException:
        forget_job(store, record.group.name)
        raise
    try:
        with store() as jobs:
            jobs.set_state(record.group.name, JobState.UP)
    except BaseException:  # a job that nobody would find again must not stay
        remove_where_possible(record.group, clients)
        forget_job(store, record.group.name)
        raise
    return replace(record, state=JobState.UP)


def forget_job(store: Transactions, name: str) -> None:
    """Note that there is no such job any more, on the disk when there is room."""
    with store() as jobs:
        jobs.can_wait = True
        jobs.discard(name)


def remove_job(store: Transactions, name: str, clients: Clients) -> None:
    """Take a job off the switches and forget it.

    Args:
        store: where it is noted.
        name: of the job.
        clients: switch name -> client.

    Raises:
        JobError: there is no such job, or no client for one of its switches; nothing has happened to it then.
        SwitchError: a switch refuses or does not answer; the job stays noted, as being removed.
    """
    with store() as jobs:
        group = jobs.get(name)
        if absent := [switch for switch in group.switches if switch not in clients]:
            lost = [switch for switch in absent if switch not in jobs.topology.switches]
            why = "which the topology does not have any more" if lost else "to which there is no connection"
            raise JobError(
                f"job {name} runs over switch {(lost or absent)[0]}, {why}; `catchment job remove {name} --force` "
                "takes it off the others, and forgets it"
            )
        jobs.set_state(name, JobState.REMOVING)
    remove(group, clients)
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
        JobError: there is no such job, or no generation or epoch is left.
    """
    with store() as jobs:
        old = jobs.record(name)
        epoch = max(old.epoch, above) + 1
        if epoch > _MOST_EPOCHS:
            raise JobError(f"job {name} has no epoch left after {epoch - 1}: remove it and create it again")
        record = replace(old, group=old.group.renewed(jobs.allocator), epoch=epoch)
        jobs.can_wait = True  # a member that is lost must be shut out at once
        jobs.put(record)
    return record, renew(old.group, record.group, topology, clients)


def give_job_keys(
    store: Transactions, name: str, topology: Topology, clients: Clients, terms: Mapping[int, int]
) -> tuple[JobRecord, list[SwitchError]]:
    """Give streams whose ranks have all come to a term the key of the next one; what it has already is written again.

    Args:
        store: where it is noted.
        name: of the job.
        topology: where it is.
        clients: switch name -> client, for every switch of the job.
        terms: generation of a stream -> the term.

    Returns:
        The job with these keys, and what went wrong on switches (they get theirs when they are restored).

    Raises:
        JobError: there is no such job, no client for one of its switches, or the keys cannot be noted: they would not
            be known after a restart.
    """
    with store() as jobs:
        old = jobs.record(name)
        if absent := [switch for switch in old.group.switches if switch not in clients]:
            raise JobError(f"job {name} gets no keys while {', '.join(absent)} does not answer; bring it up")
        streams = [stream for plan in old.group.plans for stream in plan.streams]
        new = {stream.gen: terms[stream.gen] for stream in streams if terms.get(stream.gen) == stream.term + 1}
        record = replace(old, group=old.group.come_to(new))
        jobs.put(record)
    return record, give_keys(record.group, terms, topology, clients)


def split_job(
    store: Transactions,
    name: str,
    topology: Topology,
    clients: Clients,
    *,
    call: SplitCall,
    choices: Mapping[str, Choice],
    undisturbed: Callable[[str], bool] = somebody_may_have_written,
) -> JobRecord:
    """Give a job a part for each color that its workers chose (`jobs.request.extended`), in the present epoch.

    Returns:
        The job with these parts; with those that it had, when this split gave the same workers before.

    Raises:
        JobError: there is no such job, a choice is missing, a switch is full, or there is no client for one.
        SwitchError: a switch refuses; the job is as before then.
    """
    with store() as jobs:
        old = jobs.record(name)
        group = extended(old.group, call, choices, topology, jobs.allocator)
        record = replace(old, group=group)
        jobs.put(record)
    added, gone = (
        replace(one, parts={label: plan for label, plan in one.parts.items() if other.parts.get(label) != plan})
        for one, other in ((group, old.group), (old.group, group))
    )
    try:
        deploy(added, topology, clients, undisturbed=undisturbed)
    except BaseException:
        with store() as jobs:
            jobs.put(old)
        raise
    remove_where_possible(gone, clients)
    return record


def remove_job_where_possible(store: Transactions, name: str, clients: Clients) -> list[SwitchError]:
    """Remove a job and forget it whatever its switches say: they are reconciled when they come back.

    Returns:
        What went wrong on switches.

    Raises:
        JobError: there is no such job, or it cannot be noted that it goes; nothing has happened to it then.
    """
    with store() as jobs:
        group = jobs.get(name)
        jobs.set_state(name, JobState.REMOVING)
    failures = remove_where_possible(group, clients)
    forget_job(store, name)
    return failures


def generations_run_out(store: Transactions) -> bool:
    """Whether the numbers run out that no register of a switch can still hold."""
    with store() as jobs:
        return jobs.allocator.clean < MOST_GENERATIONS


def keep_generations_clean(
    store: Transactions, topology: Topology, clients: Clients, reload: Callable[[str, SwitchClient], None]
) -> None:
    """Scrub every switch when the clean generations run out: once in 65535 of them, sooner if jobs outlived the last.

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
