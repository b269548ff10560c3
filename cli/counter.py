"""`catchment counter`: what a program counts, by cell or by table entry."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from catchment.cli import complete
from catchment.cli.output import JsonOption, print_json, print_table
from catchment.cli.ranges import cells
from catchment.cli.target import DeviceOption, SwitchArgument, TopologyOption, connect
from catchment.controlplane.client import CounterCell, DirectCounterCell, SwitchClient, SwitchError

app = typer.Typer(help="Counters of any program, indexed ones and those of tables.", no_args_is_help=True)

NameArgument = Annotated[
    str, typer.Argument(help="Counter, or a table with a direct one.", autocompletion=complete.counters)
]
CellsArgument = Annotated[str | None, typer.Argument(metavar="[INDEX|LOW..HIGH]", help="All cells when left out.")]
_UNITS = {1: "bytes", 2: "packets", 3: "bytes and packets"}


@app.command("list")
def show(
    switch: SwitchArgument, topology: TopologyOption = None, device_id: DeviceOption = 1, as_json: JsonOption = False
) -> None:
    """The counters of the program that runs on a switch."""
    with connect(switch, topology, device_id, read_only=True) as client:
        info = client.p4info
        found: list[dict[str, Any]] = [
            {"counter": info.short_name("counter", one.preamble.name), "cells": one.size, "unit": _UNITS[one.spec.unit]}
            for one in info.message.counters
        ]
        for one in info.message.direct_counters:
            table = info.short_name("table", info.by_id(one.direct_table_id).preamble.name)
            found.append({"counter": table, "cells": "one per entry", "unit": _UNITS[one.spec.unit]})
    if as_json:
        print_json(found)
    else:
        rows = [tuple(one.values()) for one in found]
        print_table(f"counters of {switch}", ("counter", "cells", "unit"), rows)


@app.command("read")
def read(
    switch: SwitchArgument,
    name: NameArgument,
    which: CellsArgument = None,
    *,
    nonzero: Annotated[bool, typer.Option("--nonzero", help="Leave out what has not counted anything.")] = False,
    topology: TopologyOption = None,
    device_id: DeviceOption = 1,
    as_json: JsonOption = False,
) -> None:
    """What a counter counted: `counter read s1 drops`, `counter read s1 drops 3..5`, `counter read s1 jobs`."""
    with connect(switch, topology, device_id, read_only=True) as client:
        if _is_direct(client, name):
            if which is not None:
                raise SwitchError(f"{name} is a table: its counters have keys, not indices")
            entries = client.direct_counters(name)
            found = [{"match": dict(e.match), "packets": e.packets or 0, "bytes": e.bytes or 0} for e in entries]
        else:
            wanted = cells(which, client.p4info.find("counter", name).size, f"counter {name}")
            values = client.counter(name, wanted[0]) if len(wanted) == 1 else client.counter(name)
            found = [
                {"index": cell.index, "packets": cell.packets, "bytes": cell.bytes}
                for cell in values
                if cell.index in wanted
            ]
    if nonzero:
        found = [one for one in found if one["packets"] or one["bytes"]]
    if as_json:
        print_json(found)
        return
    rows = [(_place(one), one["packets"], one["bytes"]) for one in found]
    print_table(f"{name} of {switch}", ("cell", "packets", "bytes"), rows)


@app.command("clear")
def clear(
    switch: SwitchArgument,
    name: NameArgument,
    which: CellsArgument = None,
    topology: TopologyOption = None,
    device_id: DeviceOption = 1,
) -> None:
    """Set cells, or the counters of all entries of a table, to zero."""
    with connect(switch, topology, device_id) as client:
        if _is_direct(client, name):
            if which is not None:
                raise SwitchError(f"{name} is a table: its counters are cleared together")
            client.modify(*(DirectCounterCell(entry) for entry in client.direct_counters(name)))
        else:
            wanted = cells(which, client.p4info.find("counter", name).size, f"counter {name}")
            client.modify(*(CounterCell(name, index) for index in wanted))


def _is_direct(client: SwitchClient, name: str) -> bool:
    info = client.p4info
    if info.has("counter", name):
        return False
    tables = {one.direct_table_id for one in info.message.direct_counters}
    if info.has("table", name) and info.find("table", name).preamble.id in tables:
        return True
    direct = ", ".join(info.short_name("table", info.by_id(table).preamble.name) for table in sorted(tables))
    counters = ", ".join(info.short_name("counter", one) for one in info.names("counter"))
    raise SwitchError(
        f"no counter {name!r} on {client.where}; counters: {counters or 'none'}; tables with counters: "
        f"{direct or 'none'}"
    )


def _place(one: dict[str, Any]) -> str:
    if "index" in one:
        return str(one["index"])
    return " ".join(f"{name}={value}" for name, value in one["match"].items())
