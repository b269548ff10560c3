"""`catchment rails`: how the rails of a job are, as its ranks on this machine have agreed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import typer
from rich.table import Table

from catchment.cli.job import NameArgument
from catchment.cli.output import JsonOption, make_table, print_json, print_parts
from catchment.cli.target import TopologyOption, find_place
from catchment.controlplane.diagnosis.rails import rails_of, ranks_of, uses
from catchment.controlplane.errors import ControlPlaneError
from catchment.controlplane.jobs import JobGroup
from catchment.wire.rail_report import RankReport

app = typer.Typer(help="Jobs that are split over several rails.", no_args_is_help=True)

_KIB, _MEGA = 1 << 10, 1e6


@app.callback()
def rails() -> None:
    """Jobs that are split over several rails."""


@app.command()
def show(name: NameArgument, topology: TopologyOption = None, as_json: JsonOption = False) -> None:
    """States, costs, shares and last incidents of a job's rails, as its ranks on this machine have agreed."""
    group = find_place(topology).jobs().get(name)
    if not rails_of(group):
        on = f"on rail {group.rails[0]} alone" if group.rails else "on no rail"
        raise ControlPlaneError(f"job {name} is {on}; `catchment job create ... --rails a,b` makes one on several")
    ranks = ranks_of(group)
    if as_json:
        planned = [
            {"name": rail, "switches": _switches(group, rail), "ring": _ring(group, rail) or None}
            for rail in rails_of(group)
        ]
        print_json({"job": name, "rails": planned, "ranks": [asdict(rank) for rank in ranks]})
    elif not ranks:
        rows = [(rail, _ring(group, rail), " ".join(_switches(group, rail))) for rail in rails_of(group)]
        note = f"no rank of job {name} runs on this machine: ask where one does"
        print_parts([make_table(f"job {name}: rails", ("rail", "ring", "switches"), rows), note])
    else:
        print_parts([_states(group, ranks), _table(ranks[0]), _costs(ranks[0])])


def _switches(group: JobGroup, rail: str) -> list[str]:
    return list(group.parts[rail].carriers)


def _ring(group: JobGroup, rail: str) -> str:
    """The transport of a rail whose ranks add up among themselves; empty where a switch does."""
    ring = group.parts[rail].ring
    return ring.transport if ring is not None else ""


def _states(group: JobGroup, ranks: Sequence[RankReport]) -> Table | str:
    spoken = ranks[0]
    rows = []
    for use in uses(spoken):
        rail = use.report
        last = f"{1e3 * rail.last_incident:.0f} ms" if rail.incidents else ""
        rows.append(
            (
                rail.name, _ring(group, rail.name), " ".join(_switches(group, rail.name)), rail.state, rail.carrier,
                f"{1e6 * rail.start:.0f}", f"{rail.rate / _MEGA:.0f}",
                f"{rail.nominal / _MEGA:.0f}" if rail.nominal else "", f"{use.share:.1%}",
                rail.incidents, last,
            )
        )  # fmt: skip
    columns = (
        "rail", "ring", "switches", "state", "goes over", "start, us", "Mb/s", "nominal", "carried", "incidents",
        "the last took",
    )  # fmt: skip
    title = f"job {spoken.job}: rails as rank {spoken.rank} says, policy {spoken.policy}, table {spoken.table_version}"
    return make_table(title, columns, rows)


def _table(rank: RankReport) -> Table | str:
    rows = [
        (f"{row.bytes // _KIB} KiB", *(f"{share / row.bytes:.1%}" if share else "" for share in row.shares))
        for row in rank.table
    ]
    return make_table("how an all-reduce is split", ("length", *(rail.name for rail in rank.rails)), rows)


def _costs(rank: RankReport) -> Table | str:
    rows = [
        (
            f"{row.bytes // _KIB} KiB",
            *(
                f"{1e6 * start:.0f} us, {rate / _MEGA:.0f} Mb/s"
                for start, rate in zip(row.starts, row.rates, strict=True)
            ),
        )
        for row in rank.table
    ]
    return make_table("what it costs on each rail alone", ("length", *(rail.name for rail in rank.rails)), rows)
