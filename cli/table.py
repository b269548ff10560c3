"""`catchment table`: entries of any program, from its P4Info, one by one or from a file."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from catchment.cli import complete
from catchment.cli.output import JsonOption, print_json, print_table
from catchment.cli.target import DeviceOption, SwitchArgument, TopologyOption, connect
from catchment.controlplane.client import SwitchClient, SwitchError, TableEntry
from catchment.controlplane.client.values import Value
from catchment.controlplane.dump import apply_document, load_document, plain, read_document, to_text
from catchment.controlplane.dump.checks import LARGEST
from catchment.ending_signals import ended_in_order

app = typer.Typer(help="Table entries of any program.", no_args_is_help=True)

TableArgument = Annotated[
    str, typer.Argument(help="Table, by any unambiguous end of its name.", autocompletion=complete.tables)
]
PriorityOption = Annotated[
    int,
    typer.Option(help="For tables with ternary, range or optional keys; larger wins.", min=0, max=LARGEST["priority"]),
]
WordsArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="[KEY=VALUE]... ACTION [PARAM=VALUE]...",
        help="What it matches and does; member=N or group=N for an action, where the table has a profile.",
        autocompletion=complete.entry_words,
    ),
]
DefaultOption = Annotated[bool, typer.Option("--default", help="The default action, not an entry.")]


@app.command("list")
def show(
    switch: SwitchArgument,
    table: Annotated[
        str | None, typer.Argument(help="Table; all of them when left out.", autocompletion=complete.tables)
    ] = None,
    topology: TopologyOption = None,
    device_id: DeviceOption = 1,
    as_json: JsonOption = False,
) -> None:
    """The entries of one table or of all, with their direct counters."""
    with connect(switch, topology, device_id, read_only=True) as client:
        entries = client.read(table)
    if as_json:
        print_json([_json(entry) for entry in entries])
        return
    rows = [
        (e.table, _pairs(e.match), *_action(e), e.priority or "", "" if e.packets is None else e.packets)
        for e in entries
    ]
    print_table(f"entries of {switch}", ("table", "key", "action", "parameters", "priority", "packets"), rows)


@app.command("add")
def add(
    switch: SwitchArgument,
    table: TableArgument,
    words: WordsArgument,
    *,
    priority: PriorityOption = 0,
    default: DefaultOption = False,
    topology: TopologyOption = None,
    device_id: DeviceOption = 1,
) -> None:
    """Add an entry: `table add s1 l2 dst=02:00:00:00:00:01 forward port=3`."""
    with connect(switch, topology, device_id) as client:
        entry = _entry(client, table, words, priority, default)
        if default:
            client.modify(entry)
        else:
            client.insert(entry)


@app.command("modify")
def modify(
    switch: SwitchArgument,
    table: TableArgument,
    words: WordsArgument,
    *,
    priority: PriorityOption = 0,
    default: DefaultOption = False,
    topology: TopologyOption = None,
    device_id: DeviceOption = 1,
) -> None:
    """Change what an entry does: `table modify s1 l2 dst=02:00:00:00:00:01 forward port=4`."""
    with connect(switch, topology, device_id) as client:
        client.modify(_entry(client, table, words, priority, default))


@app.command("delete")
def delete(
    switch: SwitchArgument,
    table: TableArgument,
    words: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", autocompletion=complete.entry_words)
    ] = None,
    *,
    priority: PriorityOption = 0,
    default: Annotated[bool, typer.Option("--default", help="Give the program's own default action back.")] = False,
    everything: Annotated[bool, typer.Option("--all", help="All entries of the table.")] = False,
    topology: TopologyOption = None,
    device_id: DeviceOption = 1,
) -> None:
    """Delete an entry by its key (and priority)."""
    match, action, _ = _split(words or [])
    if action is not None:
        raise SwitchError(f"{action!r} is not KEY=VALUE; an entry is deleted by its key alone")
    if (default or everything) and match:
        raise SwitchError("--default and --all take no key; leave out the KEY=VALUE words")
    with connect(switch, topology, device_id) as client:
        if default:
            client.reset_default(table)
        elif everything:
            client.delete(*client.read_own(table))
        else:
            client.delete(TableEntry(table, match, priority=priority))


@app.command("dump")
def dump(
    switch: SwitchArgument,
    table: Annotated[
        str | None, typer.Argument(help="Only the entries of this table.", autocompletion=complete.tables)
    ] = None,
    *,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="File; the output when left out.")] = None,
    topology: TopologyOption = None,
    device_id: DeviceOption = 1,
    as_json: JsonOption = False,
) -> None:
    """What was written to a switch (entries, defaults, profiles, groups, sessions, meters), for `load` and `diff`."""
    with connect(switch, topology, device_id, read_only=True) as client:
        text = to_text(read_document(client, table), as_json=as_json)
    if output is None:
        sys.stdout.write(text)
        return
    try:
        output.write_text(text, "utf-8")
    except OSError as error:
        raise SwitchError(f"cannot write {output}: {error.strerror}") from None


@app.command("load")
@ended_in_order()
def load(
    switch: SwitchArgument,
    file: Annotated[Path, typer.Argument(help="YAML or JSON, from `dump` or by hand.")],
    *,
    replace: Annotated[bool, typer.Option(help="Take off the switch what is not in the file.")] = False,
    topology: TopologyOption = None,
    device_id: DeviceOption = 1,
    as_json: JsonOption = False,
) -> None:
    """Put what a file says on a switch, all of it or nothing; what is right already is not touched."""
    document = load_document(file)
    with connect(switch, topology, device_id) as client:
        try:
            changes = apply_document(client, document, replace=replace, whole=True)
        except KeyboardInterrupt as end:
            for note in getattr(end, "__notes__", ()):
                typer.echo(note, err=True)
            raise
    if as_json:
        print_json(asdict(changes))
    else:
        typer.echo(", ".join(f"{count} {what}" for what, count in asdict(changes).items()))


def _entry(client: SwitchClient, table: str, words: list[str], priority: int, default: bool) -> TableEntry:
    match, action, params = _split(words)
    if default and match:
        raise SwitchError("a default action has no key; leave out the KEY=VALUE words")
    chosen: dict[str, int] = {}
    if action is None and client.p4info.find("table", table).implementation_id:
        chosen = {name: _number(name, match.pop(name)) for name in ("member", "group") if name in match}
    if action is None and not chosen:
        raise SwitchError("no action given; write KEY=VALUE... ACTION PARAM=VALUE...")
    return TableEntry(table, match, action or "", params, priority, default, **chosen)  # type: ignore[arg-type]


def _number(name: str, value: Value) -> int:
    try:
        return int(str(value), 0)
    except ValueError:
        raise SwitchError(f"{name}: {value!r} is not a number") from None


def _split(words: list[str]) -> tuple[dict[str, Value], str | None, dict[str, Value]]:
    match: dict[str, Value] = {}
    params: dict[str, Value] = {}
    action: str | None = None
    for word in words:
        name, found, value = word.partition("=")
        if found:
            into = match if action is None else params
            if name in into:
                raise SwitchError(f"{name} is given twice: {into[name]} and {value}")
            into[name] = value
        elif action is None:
            action = word
        else:
            raise SwitchError(f"{word!r} is not PARAM=VALUE, and the action is already {action!r}")
    return match, action, params


def _pairs(values: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in values.items())


def _action(entry: TableEntry) -> tuple[str, str]:
    if entry.member is not None:
        return "member", str(entry.member)
    if entry.group is not None:
        return "group", str(entry.group)
    if entry.choices:
        return "one of", "; ".join(f"{one.weight} x {one.action} {_pairs(one.params)}" for one in entry.choices)
    return entry.action, _pairs(entry.params)


def _json(entry: TableEntry) -> dict[str, Any]:
    counted = {} if entry.packets is None else {"packets": entry.packets, "bytes": entry.bytes}
    const = {"is_const": True} if entry.is_const else {}
    return {"table": entry.table, **plain(entry), **counted, **const}
