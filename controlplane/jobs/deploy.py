"""Putting jobs on switches and taking them off again."""

from __future__ import annotations

from collections.abc import Mapping

from controlplane.client import SwitchClient, SwitchError, TableEntry
from controlplane.jobs.entries import JOBS, RECEIVERS, SwitchConfig, switch_configs
from controlplane.jobs.errors import JobError
from controlplane.jobs.plan import JobPlan
from controlplane.topology import Topology


def deploy(job: JobPlan, topology: Topology, clients: Mapping[str, SwitchClient]) -> None:
    """Write a job's groups and entries; all of them or, if a switch refuses, none.

    Args:
        job: planned on this topology.
        topology: where.
        clients: switch name -> client, for every switch of the job.

    Raises:
        SwitchError: with each refused update.
        JobError: no client for a switch, or a switch already has an entry or a group of this job
            (deployed before, or another controller uses its generation); nothing is touched then.
    """
    done: list[str] = []
    configs = switch_configs(job, topology)
    for config in configs:
        _check_free(config, _client(clients, config.switch, job), job)
    for config in configs:
        client = _client(clients, config.switch, job)
        done.append(config.switch)
        try:
            _write(config, client)
        except SwitchError:
            for name in done:
                _take_off(job, topology, name, clients[name])
            raise


def deploy_on(job: JobPlan, topology: Topology, switch: str, client: SwitchClient) -> None:
    """Write one switch's share of a job, which is on the other switches already; nothing if it has none.

    Raises:
        SwitchError: with each refused update.
    """
    for config in switch_configs(job, topology):
        if config.switch == switch:
            _write(config, client)


def remove(job: JobPlan, topology: Topology, clients: Mapping[str, SwitchClient]) -> None:
    """Delete a job's entries and groups; what is not there any more is no error.

    Raises:
        SwitchError: a switch refused or does not answer.
        JobError: no client for a switch.
    """
    for branch in job.tree:
        _take_off(job, topology, branch.switch, _client(clients, branch.switch, job))


def _write(config: SwitchConfig, client: SwitchClient) -> None:
    for group, ports in config.groups.items():
        client.set_group(group, ports)
    client.insert(*config.entries)


def _check_free(config: SwitchConfig, client: SwitchClient, job: JobPlan) -> None:
    taken = _written(config, client)
    if taken:
        raise JobError(f"job {job.name}: {client.where} already has {taken[0].key()}; is the job deployed already?")
    groups = sorted(set(config.groups) & set(client.groups()))
    if groups:
        raise JobError(
            f"job {job.name}: {client.where} already has multicast group {groups[0]}, which this control plane "
            "did not give out; delete it, or start the switch afresh"
        )


def _written(config: SwitchConfig, client: SwitchClient) -> list[TableEntry]:
    """The entries of a configuration whose key a switch has."""
    present = {entry.key() for table in (JOBS, RECEIVERS) for entry in client.read(table)}
    return [entry for entry in config.entries if entry.key() in present]


def _take_off(job: JobPlan, topology: Topology, switch: str, client: SwitchClient) -> None:
    config = next(c for c in switch_configs(job, topology) if c.switch == switch)
    client.delete(*_written(config, client))
    existing = client.groups()
    for group in config.groups:
        if group in existing:
            client.delete_group(group)


def _client(clients: Mapping[str, SwitchClient], switch: str, job: JobPlan) -> SwitchClient:
    try:
        return clients[switch]
    except KeyError:
        raise JobError(f"job {job.name} needs switch {switch}, to which there is no connection") from None
