"""`catchment doctor`: why a job hangs, and what to do."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from catchment.cli.job_switches import looked_at
from catchment.cli.output import JsonOption, print_json
from catchment.cli.seconds import seconds_option
from catchment.cli.stats import port_statistics
from catchment.cli.target import Place, TopologyOption, complete_job, find_place, patience
from catchment.controlplane.controller.operator import OperatorClient
from catchment.controlplane.controller.stalls import EVERYBODY_SENDS
from catchment.controlplane.diagnosis.doctor import Finding
from catchment.controlplane.diagnosis.groups import examine_group
from catchment.controlplane.diagnosis.rails import examine_rails
from catchment.controlplane.jobs import JobError, JobGroup
from catchment.controlplane.networks.port_faults import OFF
from catchment.controlplane.topology.rates import port_faults

_NO_ROOM = "no receiver has room"  # as the endpoint says it


def doctor(
    name: Annotated[
        str | None, typer.Argument(help="Name of the job; every job when left out.", autocompletion=complete_job)
    ] = None,
    seconds: Annotated[float, seconds_option(help="How long to watch.", least=0.05)] = 1.0,
    topology: TopologyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Explain a hang: which member, which vector, which counter, what to do; exit code 3 if something is wrong."""
    place = find_place(topology)
    stored = place.jobs()
    groups = [stored.get(name)] if name is not None else [record.group for record in stored.records.values()]
    if name is not None and (misfit := groups[0].misfit(place.topology)):
        raise JobError(misfit)
    found = {} if name is not None else {job: [_misfit(text)] for job, text in stored.misfits.items()}
    groups = [group for group in groups if group.name not in found]
    with looked_at(place, {switch for group in groups for switch in group.switches}) as clients:
        for group in groups:
            report = _report(place, group.name)
            absent = {m.host: m.state for m in report.members if m.state != "joined"} if report is not None else {}
            findings = examine_group(group, place.topology, clients, interval=seconds, absent=absent)
            found[group.name] = [
                *findings, *examine_rails(group), *_damaged_ports(place, group), *_reported(report)
            ]  # fmt: skip
    if as_json:
        print_json({job: [asdict(finding) for finding in findings] for job, findings in found.items()})
    elif not found:
        typer.echo(f"topology {place.topology.name} has no jobs; make one with `catchment job create`")
    else:
        for job_name, findings in found.items():
            wrong = any(finding.certain for finding in findings)
            said = "something is wrong" if wrong else "every member is sending and nothing waits"
            typer.echo(f"job {job_name}: {said}")
            for finding in findings:
                typer.echo(f"- {finding}")
    if any(finding.certain for findings in found.values() for finding in findings):
        raise typer.Exit(3)


def _misfit(text: str) -> Finding:
    what, _, todo = text.partition("; ")
    return Finding("the topology", what, todo)


def _report(place: Place, job: str) -> Any | None:
    """What the controller knows of a job, where one runs."""
    presence = place.controller()
    if presence is None:
        return None
    with OperatorClient.to(presence, timeout=patience()) as controller:
        return controller.job(job)


def _reported(report: Any | None) -> list[Finding]:
    """What the members themselves complain of to the controller."""
    if report is None or EVERYBODY_SENDS not in report.trouble:
        return []
    todo = "the member that it waits for is listed above"
    if _NO_ROOM in report.trouble:
        todo = f"whoever receives does not pull: look where the program on {report.root or 'the other workers'} stands"
    return [Finding(report.trouble.split()[0], f"a member reports: {report.trouble}", todo)]


def _damaged_ports(place: Place, group: JobGroup) -> list[Finding]:
    """Ports of the jobs that are down, or damage frames on purpose; of embedded switches on this machine."""
    found = []
    members: dict[str, dict[int, str]] = {}
    for job in group.plans:
        for branch in job.tree:
            plugged = members.setdefault(branch.switch, {})
            plugged.update(branch.members)
            if branch.up_port is not None:
                plugged[branch.up_port] = branch.parent.switch if branch.parent else str(job.root)
    for name, plugged in members.items():
        limits = port_faults(place.topology, name)
        for port in port_statistics(place.address(name)):
            number = port["port"]
            if number not in plugged:
                continue
            where = f"port {number} of {name} (to {plugged[number]})"
            if not port["up"]:
                todo = f"set it up again: `ip link set {port['name']} up`, at both ends of the cable"
                found.append(Finding(plugged[number], f"{where}, interface {port['name']}, is down", todo))
            if port["faults"] not in (OFF, limits.get(number)):
                text = f"{where} damages frames on purpose: {port['faults']}"
                found.append(Finding(plugged[number], text, f"`catchment fault clear {name}`"))
    return found
