"""Putting jobs and groups of jobs on switches and taking them off again: a group is written as one."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from catchment.controlplane.client import SwitchClient, SwitchError
from catchment.controlplane.jobs.entries import slots_of
from catchment.controlplane.jobs.errors import JobError, TakenError
from catchment.controlplane.jobs.group import JobGroup
from catchment.controlplane.jobs.plan import JobPlan
from catchment.controlplane.state.desired import JOBS, PACKED, TAGS, SwitchConfig, present, take_off, write_new
from catchment.controlplane.state.desired import replace as exchange
from catchment.controlplane.topology import Topology

Job = JobPlan | JobGroup


def somebody_may_have_written(_switch: str) -> bool:
    """Say of a switch that it must be looked at."""
    return False


def deploy(
    job: Job,
    topology: Topology,
    clients: Mapping[str, SwitchClient],
    *,
    undisturbed: Callable[[str], bool] = somebody_may_have_written,
) -> None:
    """Write a job's groups and entries; all of them or, if a switch refuses or another job is in the way, none.

    Two control planes may do so at the same time: each looks after it has written, so that one at least sees the other.

    Args:
        job: planned on this topology.
        topology: where.
        clients: switch name -> client, for every switch of the job.
        undisturbed: says of a switch that it holds what the stored jobs say, and that no other client can have written
            to it since that was seen: asked before and after.

    Raises:
        SwitchError: with each refused update.
        TakenError: a switch already has an entry, a group, a row or slots of this job: it is deployed already, or
            another control plane got there first.
        JobError: no client for a switch, or its program lacks what the job needs.
    """
    configs = _configs(job, topology)
    for config in configs:
        client = _client(clients, config.switch, job)
        _check_tables(config, client, job)
        if not undisturbed(config.switch):
            _check_free(config, client, job)
    done: list[str] = []
    try:
        for config in configs:
            try:
                write_new(config, clients[config.switch])
            except SwitchError:
                raise  # what it had written is off again
            except BaseException:
                with contextlib.suppress(SwitchError):  # the next command that changes a job there looks for what stays
                    _withdraw(config, clients[config.switch])
                raise
            done.append(config.switch)
        for config in configs:
            if not undisturbed(config.switch):
                _check_unshared(config, clients[config.switch], job)
    except BaseException as error:  # Ctrl-C, too: nobody would know of what stays
        remove_where_possible(job, {name: clients[name] for name in done})
        if isinstance(error, SwitchError) and any(one.code == "ALREADY_EXISTS" for one in error.failures):
            raise TakenError(f"job {job.name}: {error}") from None
        raise


def renew(old: Job, new: Job, topology: Topology, clients: Mapping[str, SwitchClient]) -> list[SwitchError]:
    """Put a job with new generations in the place of the one with the old ones, wherever there is a client.

    Any order of the switches is safe: frames of either generation reach nobody on a switch that has the other.

    Returns:
        What went wrong on a switch; it gets its share when it is restored.
    """
    wanted = {config.switch: config for config in _configs(new, topology)}
    failures = []
    for config in _configs(old, topology):
        if config.switch in clients:
            try:
                _exchange(config, wanted[config.switch], clients[config.switch])
            except SwitchError as error:
                failures.append(error)
    return failures


def give_keys(
    group: JobGroup, gens: Collection[int], topology: Topology, clients: Mapping[str, SwitchClient]
) -> list[SwitchError]:
    """Put the keys that streams of a group have now in the place of those that their switches hold, entry by entry.

    Returns:
        What went wrong on a switch; it gets its keys when it is restored.
    """
    failures = []
    for config in group.configs(topology):
        keys = [entry for entry in config.entries if entry.table == TAGS and entry.match["gen"] in gens]
        try:
            clients[config.switch].modify(*keys)
        except SwitchError as error:
            failures.append(error)
    return failures


def remove(job: Job, clients: Mapping[str, SwitchClient]) -> None:
    """Delete a job's entries and groups, by their keys; what is not there any more is no error.

    Raises:
        SwitchError: a switch refused or does not answer.
        JobError: no client for a switch.
    """
    for config in _group(job).entry_keys():
        _take_off(config, _client(clients, config.switch, job))


def remove_where_possible(job: Job, clients: Mapping[str, SwitchClient]) -> list[SwitchError]:
    """Do what `remove` does on the switches that there is a client for; returns what went wrong."""
    failures = []
    for config in _group(job).entry_keys():
        if config.switch in clients:
            try:
                _take_off(config, clients[config.switch])
            except SwitchError as error:
                failures.append(error)
    return failures


def _take_off(config: SwitchConfig, client: SwitchClient) -> None:
    """Delete groups first: entries that are left when this is cut short say whose they are, and name the groups."""
    client.delete_groups(set(config.groups) & set(client.groups()))
    take_off(replace(config, groups={}), client)


def _withdraw(config: SwitchConfig, client: SwitchClient) -> None:
    """Delete what a write that was cut short has done, and nothing with another mark."""
    marks = {entry.metadata for entry in config.entries} | {b""}
    tables = sorted({entry.table for entry in config.entries})
    own = {client.key(entry) for table in tables for entry in client.read(table) if entry.metadata in marks}
    entries = tuple(entry for entry in config.entries if client.key(entry) in own)
    if any(entry.table == JOBS for entry in entries):
        _take_off(replace(config, entries=entries), client)
    else:
        client.delete(*entries)  # its groups come after its entries: they are somebody else's


def _exchange(old: SwitchConfig, new: SwitchConfig, client: SwitchClient) -> None:
    """Put one part in the place of another, of which an earlier command that was cut short may have left little."""
    try:
        exchange(old, new, client)
    except SwitchError as error:
        if {one.code for one in error.failures} != {"NOT_FOUND"}:
            raise
        there = set(client.groups())
        groups = {number: ports for number, ports in old.groups.items() if number in there}
        exchange(SwitchConfig(old.switch, groups, (*present(old, client), *present(new, client))), new, client)


def _check_tables(config: SwitchConfig, client: SwitchClient, job: Job) -> None:
    lacking = {entry.table for entry in config.entries if not client.p4info.has("table", entry.table)}
    if TAGS in lacking:
        raise JobError(
            f"job {job.name} has tags, and the program on {client.where} has no table {TAGS!r}; start the switch again "
            "with `tags: true` in the topology file, or make the job without --tags"
        )
    if PACKED in lacking:
        raise JobError(
            f"job {job.name} has packed lanes, and the program on {client.where} has no table {PACKED!r}; start "
            "the switch with the luwu.p4 of this version, or make the job without --packed"
        )


def _check_free(config: SwitchConfig, client: SwitchClient, job: Job) -> None:
    taken = present(config, client)
    if taken:
        raise TakenError(f"job {job.name}: {client.where} already has {taken[0].key()}; is the job deployed already?")
    groups = sorted(set(config.groups) & set(client.groups()))
    if groups:
        raise TakenError(
            f"job {job.name}: {client.where} already has multicast group {groups[0]}, which this control plane "
            "did not give out; delete it, or start the switch afresh"
        )


def _check_unshared(config: SwitchConfig, client: SwitchClient, job: Job) -> None:
    """No other job has a row or slots of this one: of those that one control plane stores none does."""
    own = {int(entry.match["gen"]) for entry in config.entries if entry.table == JOBS}
    streams = [stream for plan in _group(job).plans for stream in plan.streams if stream.gen in own]
    shares = [stream.share(config.switch) for stream in streams]
    for entry in client.read(JOBS):
        if int(entry.match["gen"]) in own:
            continue
        row, group = int(entry.params["job"]), int(entry.params["group"])
        base, end = slots_of(entry)
        for share in shares:
            slots_meet = base < share.base + share.slots and share.base < end
            if row == share.row or group == share.group or slots_meet:
                raise TakenError(
                    f"job {job.name}: another control plane took row {row}, group {group}"
                    f"{f' or slots {base} to {end - 1}' if base < end else ''} of {client.where} at the same time "
                    f"({entry.key()}); try again"
                )


def _configs(job: Job, topology: Topology) -> list[SwitchConfig]:
    return _group(job).configs(topology)


def _group(job: Job) -> JobGroup:
    return job if isinstance(job, JobGroup) else JobGroup.alone(job)


def _client(clients: Mapping[str, SwitchClient], switch: str, job: Job) -> SwitchClient:
    try:
        return clients[switch]
    except KeyError:
        raise JobError(f"job {job.name} needs switch {switch}, to which there is no connection") from None
