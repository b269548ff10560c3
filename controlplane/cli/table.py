"""`catchment table`: entries by hand, for any program, from its P4Info."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from controlplane.cli.output import JsonOption, print_json, print_table
from controlplane.cli.target import DeviceOption, SwitchArgument, TopologyOption, connect
from controlplane.client import SwitchError, TableEntry

app = typer.Typer(help="Table entries of any program.", no_args_is_help=True)

TableArgument = Annotated[str, typer.Argument(help="Table, by any unambiguous end of its name.")]
PriorityOption = Annotated[
    int, typer.Option(help="For tables with ternary, range or optional keys; larger wins.", min=0)
]


@app.command("list")
def show(
    switch: SwitchArgument,
    table: Annotated[str | None, typer.Argument(help="Table; all of them when left out.")] = None,
    topology: TopologyOption = None,
    device_id: DeviceOption = 1,
    as_json: JsonOption = False,
) -> None:
    """The entries of one table or of all."""
    with connect(switch, topology, device_id, read_only=True) as client:
        entries = client.read(table)
    if as_json:
        print_json([_plain(entry) for entry in entries])
        return
    rows = [
        (e.table, _pairs(e.match), e.action, _pairs(e.params), e.priority or "", "" if e.packets is None else e.packets)
        for e in entries
    ]
    print_table(f"entries of {switch}", ("table", "key", "action", "parameters", "priority", "packets"), rows)


@app.command("add")
def add(
    switch: SwitchArgument,
    table: TableArgument,
    words: Annotated[list[str], typer.Argument(metavar="[KEY=VALUE]... ACTION [PARAM=VALUE]...")],
    *,
    priority: PriorityOption = 0,
    default: Annotated[bool, typer.Option(help="Set the default action instead of adding an entry.")] = False,
    topology: TopologyOption = None,
    device_id: DeviceOption = 1,
) -> None:
    """Add an entry: `table add s1 l2 dst=02:00:00:00:00:01 forward port=3`."""
    match, action, params = _split(words)
    if action is None:
        raise SwitchError("no action given; write KEY=VALUE... ACTION PARAM=VALUE...")
    with connect(switch, topology, device_id) as client:
        if default:
            if match:
                raise SwitchError("a default action has no key; leave out the KEY=VALUE words")
            client.set_default(table, action, params)
        else:
            client.insert(TableEntry(table, match, action, params, priority))


@app.command("delete")
def delete(
    switch: SwitchArgument,
    table: TableArgument,
    words: Annotated[list[str] | None, typer.Argument(metavar="[KEY=VALUE]...")] = None,
    *,
    priority: PriorityOption = 0,
    topology: TopologyOption = None,
    device_id: DeviceOption = 1,
) -> None:
    """Delete an entry by its key (and priority)."""
    match, action, _ = _split(words or [])
    if action is not None:
        raise SwitchError(f"{action!r} is not KEY=VALUE; an entry is deleted by its key alone")
    with connect(switch, topology, device_id) as client:
        client.delete(TableEntry(table, match, priority=priority))


def _split(words: list[str]) -> tuple[dict[str, int | str], str | None, dict[str, int | str]]:
    match: dict[str, int | str] = {}
    params: dict[str, int | str] = {}
    action: str | None = None
    for word in words:
        name, found, value = word.partition("=")
        if found:
            (match if action is None else params)[name] = value
        elif action is None:
            action = word
        else:
            raise SwitchError(f"{word!r} is not PARAM=VALUE, and the action is already {action!r}")
    return match, action, params


def _pairs(values: Any) -> str:
    return " ".join(f"{name}={value}" for name, value in values.items())


def _plain(entry: TableEntry) -> dict[str, Any]:
    return {key: value for key, value in asdict(entry).items() if value is not None and key != "is_default"}
