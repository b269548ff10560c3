"""Putting jobs and groups of jobs on switches and taking them off again: a group is written as one."""

from __future__ import annotations

from collections.abc import Mapping

from catchment.controlplane.client import SwitchClient, SwitchError
from catchment.controlplane.jobs.errors import JobError
from catchment.controlplane.jobs.group import JobGroup
from catchment.controlplane.jobs.plan import JobPlan
from catchment.controlplane.state.desired import SwitchConfig, present, replace, take_off, write
from catchment.controlplane.topology import Topology

Job = JobPlan | JobGroup


def deploy(job: Job, topology: Topology, clients: Mapping[str, SwitchClient], *, reconciled: bool = False) -> None:
    """Write a job's groups and entries; all of them or, if a switch refuses, none.

    Args:
        job: planned on this topology.
        topology: where.
        clients: switch name -> client, for every switch of the job.
        reconciled: the switches hold what the stored jobs say and nothing else, so that nobody needs to look.

    Raises:
        SwitchError: with each refused update.
        JobError: no client for a switch, or a switch already has an entry or a group of this job
            (deployed before, or another controller uses its generation); nothing is touched then.
    """
    done: list[str] = []
    configs = _configs(job, topology)
    for config in configs if not reconciled else ():
        _check_free(config, _client(clients, config.switch, job), job)
    for config in configs:
        client = _client(clients, config.switch, job)
        done.append(config.switch)
        try:
            write(config, client)
        except SwitchError:
            remove_where_possible(job, topology, {name: clients[name] for name in done})
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
                replace(config, wanted[config.switch], clients[config.switch])
            except SwitchError as error:
                failures.append(error)
    return failures


def remove(job: Job, topology: Topology, clients: Mapping[str, SwitchClient]) -> None:
    """Delete a job's entries and groups; what is not there any more is no error.

    Raises:
        SwitchError: a switch refused or does not answer.
        JobError: no client for a switch.
    """
    for config in _configs(job, topology):
        take_off(config, _client(clients, config.switch, job))


def remove_where_possible(job: Job, topology: Topology, clients: Mapping[str, SwitchClient]) -> list[SwitchError]:
    """Do what `remove` does on the switches that there is a client for; returns what went wrong."""
    failures = []
    for config in _configs(job, topology):
        if config.switch in clients:
            try:
                take_off(config, clients[config.switch])
            except SwitchError as error:
                failures.append(error)
    return failures


def _check_free(config: SwitchConfig, client: SwitchClient, job: Job) -> None:
    taken = present(config, client)
    if taken:
        raise JobError(f"job {job.name}: {client.where} already has {taken[0].key()}; is the job deployed already?")
    groups = sorted(set(config.groups) & set(client.groups()))
    if groups:
        raise JobError(
            f"job {job.name}: {client.where} already has multicast group {groups[0]}, which this control plane "
            "did not give out; delete it, or start the switch afresh"
        )


def _configs(job: Job, topology: Topology) -> list[SwitchConfig]:
    return (job if isinstance(job, JobGroup) else JobGroup.alone(job)).configs(topology)


def _client(clients: Mapping[str, SwitchClient], switch: str, job: Job) -> SwitchClient:
    try:
        return clients[switch]
    except KeyError:
        raise JobError(f"job {job.name} needs switch {switch}, to which there is no connection") from None
