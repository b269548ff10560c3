"""Putting jobs on switches and taking them off again."""

from __future__ import annotations

from collections.abc import Mapping

from controlplane.client import SwitchClient, SwitchError
from controlplane.jobs.entries import switch_configs
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
        JobError: no client for a switch.
    """
    done: list[str] = []
    configs = switch_configs(job, topology)
    for config in configs:
        client = _client(clients, config.switch, job)
        done.append(config.switch)
        try:
            for group, ports in config.groups.items():
                client.set_group(group, ports)
            client.insert(*config.entries)
        except SwitchError:
            for name in done:
                _take_off(job, topology, name, clients[name])
            raise


def remove(job: JobPlan, topology: Topology, clients: Mapping[str, SwitchClient]) -> None:
    """Delete a job's entries and groups; what is not there any more is no error.

    Raises:
        SwitchError: a switch refused or does not answer.
        JobError: no client for a switch.
    """
    for branch in job.tree:
        _take_off(job, topology, branch.switch, _client(clients, branch.switch, job))


def _take_off(job: JobPlan, topology: Topology, switch: str, client: SwitchClient) -> None:
    config = next(c for c in switch_configs(job, topology) if c.switch == switch)
    try:
        client.delete(*config.entries)
    except SwitchError as error:
        # BMv2 reports a missing entry as INVALID_ARGUMENT or UNKNOWN in some versions; look instead of guessing.
        if not error.failures:
            raise
        left = {(e.table, tuple(e.match.items())) for e in client.read("jobs") + client.read("receivers")}
        if any((e.table, tuple(e.match.items())) in left for e in config.entries):
            raise
    existing = client.groups()
    for group in config.groups:
        if group in existing:
            client.delete_group(group)


def _client(clients: Mapping[str, SwitchClient], switch: str, job: JobPlan) -> SwitchClient:
    try:
        return clients[switch]
    except KeyError:
        raise JobError(f"job {job.name} needs switch {switch}, to which there is no connection") from None
