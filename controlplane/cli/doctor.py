"""`catchment doctor`: why a job hangs, and what to do."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import asdict
from typing import Annotated

import typer

from controlplane.cli.output import JsonOption, print_json
from controlplane.cli.target import Place, TopologyOption, find_place, patience
from controlplane.client import SwitchError
from controlplane.controller.operator import OperatorClient
from controlplane.doctor import Finding, examine


def doctor(
    name: Annotated[str | None, typer.Argument(help="Name of the job; every job when left out.")] = None,
    seconds: Annotated[float, typer.Option(help="How long to watch.", min=0.05)] = 1.0,
    topology: TopologyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Explain a hang: which member, which vector, which counter, what to do; exit code 3 if something is wrong."""
    place = find_place(topology)
    with place.store() as store:
        jobs = [store.get(name)] if name is not None else list(store.jobs.values())
    found: dict[str, list[Finding]] = {}
    with ExitStack() as exits:
        clients = {}
        for switch in {branch.switch for job in jobs for branch in job.tree}:
            try:
                clients[switch] = exits.enter_context(place.connect(switch, read_only=True))
            except SwitchError:
                continue  # `examine` says so
        for job in jobs:
            found[job.name] = [*_absent(place, job.name), *examine(job, place.topology, clients, interval=seconds)]
    if as_json:
        print_json({job: [asdict(finding) for finding in findings] for job, findings in found.items()})
    else:
        for job_name, findings in found.items():
            typer.echo(f"job {job_name}: " + ("every member is sending and nothing waits" if not findings else ""))
            for finding in findings:
                typer.echo(f"- {finding}")
    if any(found.values()):
        raise typer.Exit(3)


def _absent(place: Place, job: str) -> list[Finding]:
    """Members that the controller misses, where one runs."""
    presence = place.controller()
    if presence is None:
        return []
    with OperatorClient.to(presence, timeout=patience()) as controller:
        members = controller.job(job).members
    todo = {
        "absent": "start its program",
        "lost": "start its program again; it gets new generations",
        "left": "it has finished; if it should not have, start its program again",
    }
    return [
        Finding(m.host, f"{m.host} is {m.state}, says the controller", todo[m.state])
        for m in members
        if m.state in todo
    ]
