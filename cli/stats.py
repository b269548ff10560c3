"""`catchment stats` and `catchment diagnose`: what the switches counted, and which members are missing."""

from __future__ import annotations

import contextlib
import select
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from functools import partial
from typing import Annotated, Any, TypeVar

import typer
from rich.console import Group
from rich.live import Live

from catchment.cli.each_switch import on_each
from catchment.cli.job_switches import looked_at
from catchment.cli.output import JsonOption, print_json, print_parts, printable
from catchment.cli.seconds import seconds_option
from catchment.cli.signals import woken_by
from catchment.cli.stats_tables import Look, tables
from catchment.cli.target import Place, TopologyOption, complete_job, complete_switch, find_place, listening_address
from catchment.controlplane.client import SwitchError
from catchment.controlplane.diagnosis.groups import diagnose_group
from catchment.controlplane.diagnosis.rails import rails_at
from catchment.controlplane.diagnosis.stats import switch_stats
from catchment.controlplane.diagnosis.waiting import Missing, waiting_for
from catchment.controlplane.errors import ControlPlaneError
from catchment.controlplane.jobs import JobError
from catchment.controlplane.metrics.dashboard import text as dashboard_text
from catchment.controlplane.networks.state import admin_socket
from catchment.json_text import json_text
from catchment.plain_console import plain_console
from catchment.softswitch.admin import SwitchAdmin, SwitchAdminError

_Answer = TypeVar("_Answer")


def stats(
    switch: Annotated[
        str | None, typer.Argument(help="Switch name; all of them when left out.", autocompletion=complete_switch)
    ] = None,
    *,
    watch: Annotated[
        float | None,
        seconds_option(
            help="Show it live, every so many seconds, with rates (--json: a line each time); Ctrl-C ends it.",
            least=0.1,
        ),
    ] = None,
    prometheus: Annotated[
        str | None, typer.Option(metavar="[HOST:]PORT", help="Answer Prometheus there until Ctrl-C; HOST is 127.0.0.1.")
    ] = None,
    dashboard: Annotated[bool, typer.Option("--dashboard", help="Print the Grafana dashboard (JSON).")] = False,
    topology: TopologyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Drops by reason, packets of each job, how far members are behind, and what each port counted."""
    if dashboard:
        sys.stdout.write(dashboard_text())
        return
    place = find_place(topology)
    names = [place.topology.switch(switch).name] if switch else list(place.topology.switches)
    if prometheus is not None:
        _serve(place, names, prometheus)
    elif watch is not None:
        _watch(place, names, watch, as_json)
    else:
        found = on_each(names, partial(look, place))
        if as_json:
            print_json([_json(name, found.results.get(name)) for name in names])
        else:
            for one, ports in found.results.values():
                print_parts(tables(one, ports))
        found.complain()


def look(place: Place, name: str) -> Look:
    """What a switch counted, and what its ports did (nothing where the switch has no socket for that here).

    Raises:
        SwitchError: it does not answer.
    """
    store = place.jobs()
    with place.connect(name, read_only=True) as client:
        found = switch_stats(place.topology, name, client, list(store.jobs.values()))
    rails = rails_at(name, [record.group for record in store.records.values()])
    address = place.address(name)
    return replace(found, rails=rails, clients=client_statistics(address)), port_statistics(address)


def port_statistics(address: str) -> list[dict[str, Any]]:
    """What the ports of the switch at a P4Runtime address did; nothing where it has no admin socket here."""
    return _ask_admin(address, SwitchAdmin.ports, [])


def client_statistics(address: str) -> dict[str, int]:
    """What came of the clients of the switch at a P4Runtime address; nothing where it has no admin socket here."""
    return _ask_admin(address, SwitchAdmin.clients, {})


def _ask_admin(address: str, ask: Callable[[SwitchAdmin], _Answer], unknown: _Answer) -> _Answer:
    path = admin_socket(address)
    if path is None or not path.is_socket():
        return unknown
    try:
        with SwitchAdmin(path) as admin:
            return ask(admin)
    except SwitchAdminError:
        return unknown  # left behind by a switch that was killed


def _serve(place: Place, names: Sequence[str], told: str) -> None:
    from catchment.controlplane.metrics.exporter import SwitchCollector, serve  # noqa: PLC0415  slow to import
    from catchment.controlplane.metrics.poller import Poller  # noqa: PLC0415

    where = listening_address(told)
    with Poller(partial(look, place), names) as poller:
        try:
            port = serve(SwitchCollector(poller.latest), *where).port
        except OSError as error:
            raise ControlPlaneError(f"--prometheus {told}: {error.strerror}") from None
        # Whoever reads the line may press it at once, even just before the wait begins.
        with contextlib.suppress(KeyboardInterrupt), woken_by(signal.SIGINT) as stop:
            typer.echo(f"metrics at http://{where[0]}:{port}/metrics; Ctrl-C ends it")
            select.select([stop], [], [])


def _look_if_up(place: Place, name: str) -> Look | None:
    try:
        return look(place, name)
    except SwitchError:
        return None


def _watch(place: Place, names: Sequence[str], seconds: float, as_json: bool) -> None:
    """A screen that is drawn anew; lines of JSON or tables below each other where no terminal is."""
    earlier: dict[str, Look] = {}
    console = plain_console()
    with ExitStack() as exits:
        exits.enter_context(contextlib.suppress(KeyboardInterrupt))
        live = None
        if console.is_terminal and not as_json:
            live = exits.enter_context(Live(console=console, auto_refresh=False, screen=True))
        while True:
            began = time.monotonic()
            found = {name: _look_if_up(place, name) for name in names}
            if as_json:
                typer.echo(json_text([_json(name, one) for name, one in found.items()]))
            elif live is not None:
                live.update(Group(*_screen(found, earlier, seconds)), refresh=True)
            else:
                print_parts(_screen(found, earlier, seconds))
                sys.stdout.flush()
            earlier |= {name: one for name, one in found.items() if one is not None}
            time.sleep(max(0.0, began + seconds - time.monotonic()))


def _screen(found: Mapping[str, Look | None], earlier: Mapping[str, Look], seconds: float) -> list[Any]:
    parts: list[Any] = []
    for name, one in found.items():
        if one is None:
            parts.append(f"{printable(name)} does not answer")
        else:
            parts += tables(*one, before=earlier.get(name), seconds=seconds)
    return parts


def _json(name: str, found: Look | None) -> dict[str, Any]:
    return {"switch": name, "up": False} if found is None else {**asdict(found[0]), "port_statistics": found[1]}


def diagnose(
    name: Annotated[str, typer.Argument(help="Name of the job.", autocompletion=complete_job)],
    seconds: Annotated[float, seconds_option(help="How long to watch.", least=0.05)] = 1.0,
    topology: TopologyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Name the members of a job that send nothing; exit code 3 if there are any."""
    place = find_place(topology)
    group = place.jobs().get(name)
    if misfit := group.misfit(place.topology):
        raise JobError(misfit)
    with looked_at(place, group.switches) as clients:
        missing = [Missing(switch, switch, 0, None) for switch in group.switches if switch not in clients]
        missing += diagnose_group(group, clients, interval=seconds)
        silent = {one.switch for one in missing if one.packets is None}
        answering = {name: client for name, client in clients.items() if name not in silent}
        waiting = [wait for job in group.plans for wait in waiting_for(job, answering)]
    if as_json:
        print_json({"missing": [asdict(one) for one in missing], "waiting": [asdict(one) for one in waiting]})
    else:
        for line in [*map(str, missing), *map(str, waiting)]:
            typer.echo(line)
        if not missing:
            typer.echo(f"every member of job {name} is sending")
    if missing:
        raise typer.Exit(3)
