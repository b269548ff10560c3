"""`catchment stats` and `catchment diagnose`: what the switches counted, and who is missing."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import asdict
from typing import Annotated

import typer

from controlplane.cli.output import JsonOption, print_json, print_table
from controlplane.cli.target import TopologyOption, find_place
from controlplane.client import SwitchError
from controlplane.diagnosis import Missing, waiting_for
from controlplane.diagnosis import diagnose as look_for_missing
from controlplane.stats import SwitchStats, switch_stats


def stats(
    switch: Annotated[str | None, typer.Argument(help="Switch name; all of them when left out.")] = None,
    topology: TopologyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Drops by reason, packets of each job, what is on each port."""
    place = find_place(topology)
    with place.store() as store:
        jobs = list(store.jobs.values())
    found: list[SwitchStats] = []
    for name in [place.topology.switch(switch).name] if switch else place.topology.switches:
        with place.connect(name, read_only=True) as client:
            found.append(switch_stats(place.topology, name, client, jobs))
    if as_json:
        print_json([asdict(one) for one in found])
        return
    for one in found:
        _print(one)


def diagnose(
    name: Annotated[str, typer.Argument(help="Name of the job.")],
    seconds: Annotated[float, typer.Option(help="How long to watch.", min=0.05)] = 1.0,
    topology: TopologyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Name the members of a job that send nothing; exit code 3 if there are any."""
    place = find_place(topology)
    with place.store() as store:
        job = store.get(name)
    with ExitStack() as exits:
        clients, missing = {}, []
        for branch in job.tree:
            try:
                clients[branch.switch] = exits.enter_context(place.connect(branch.switch, read_only=True))
            except SwitchError:
                missing.append(Missing(branch.switch, branch.switch, 0, None))
        missing += look_for_missing(job, clients, interval=seconds)
        silent = {one.switch for one in missing if one.packets is None}
        waiting = waiting_for(job, {name: client for name, client in clients.items() if name not in silent})
    if as_json:
        print_json({"missing": [asdict(one) for one in missing], "waiting": [asdict(one) for one in waiting]})
    else:
        for line in [*map(str, missing), *map(str, waiting)]:
            typer.echo(line)
        if not missing:
            typer.echo(f"every member of job {name} is sending")
    if missing:
        raise typer.Exit(3)


def _print(one: SwitchStats) -> None:
    rows = list(one.drops.items())
    print_table(f"{one.switch}: drops", ("reason", "packets"), rows)
    traffic = [(t.job, t.stream, t.gen, t.port, t.member, t.packets, t.bytes) for t in one.jobs]
    columns = ("job", "stream", "gen", "port", "member", "packets", "bytes")
    print_table(f"{one.switch}: packets of jobs, as they arrive", columns, traffic)
    print_table(f"{one.switch}: ports", ("port", "connected"), list(one.ports.items()))
