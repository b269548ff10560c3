"""Reads a switch into a document."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from catchment.controlplane.client import (
    CloneSession,
    Member,
    MemberGroup,
    MeterCell,
    MulticastGroup,
    Replica,
    SwitchClient,
    TableEntry,
)
from catchment.controlplane.client.values import to_int
from catchment.controlplane.dump.document import FORMAT, Line


def read_document(
    client: SwitchClient, table: str | None = None, *, wanted: Callable[[TableEntry], bool] = lambda entry: True
) -> dict[str, Any]:
    """What a switch holds.

    Args:
        client: the switch.
        table: only the entries of this table.
        wanted: which entries and default actions; all.

    Raises:
        SwitchError: the switch does not answer, or has no such table.
    """
    info = client.p4info
    names = [table] if table is not None else info.names("table")
    tables, defaults = {}, {}
    for name in names:
        full = info.find("table", name)
        short = info.short_name("table", full.preamble.name)
        entries = [Line(plain(entry)) for entry in client.read_own(name) if wanted(entry)]
        if entries:
            tables[short] = sorted(entries, key=_order)
        if (default := changed_default(client, full)) is not None and wanted(default):
            defaults[short] = Line(plain(default))
    document: dict[str, Any] = {"format": FORMAT, "tables": tables, "defaults": defaults}
    if table is None:
        document |= {
            "profiles": _profiles(client),
            "multicast_groups": {
                group.number: _multicast_group(group)
                for group in sorted(client.each(MulticastGroup()), key=lambda one: one.number)
            },
            "clone_sessions": {
                session.number: Line(
                    replicas=[Line(_replica(one)) for one in session.replicas],
                    **_given(packet_length=session.packet_length, class_of_service=session.class_of_service),
                )
                for session in sorted(client.each(CloneSession()), key=lambda one: one.number)
            },
            "meters": _meters(client),
        }
    return {name: content for name, content in document.items() if content}


def plain(entry: TableEntry) -> dict[str, Any]:
    """An entry as a document has it: what it does not say is at its default."""
    result: dict[str, Any] = {}
    if not entry.is_default:
        result["match"] = Line(entry.match)
    result |= _given(priority=entry.priority, member=entry.member, group=entry.group)
    if entry.action:
        result["action"] = entry.action
        result |= _given(params=Line(entry.params))
    if entry.choices:
        result["choices"] = [
            Line(
                action=choice.action,
                params=Line(choice.params),
                weight=choice.weight,
                **({} if choice.watch_port is None else {"watch_port": choice.watch_port}),
            )
            for choice in entry.choices
        ]
    return result | _given(
        meter=None if entry.meter is None else Line(entry.meter),
        idle_timeout_ns=entry.idle_timeout_ns,
        metadata=entry.metadata.hex(),
    )


def _multicast_group(group: MulticastGroup) -> Any:
    """Its replicas, beside its metadata if it has any."""
    replicas = [Line(_replica(one)) for one in group.replicas]
    return Line(replicas=replicas, metadata=group.metadata.hex()) if group.metadata else replicas


def _given(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value not in (None, 0, "", {})}


def _replica(replica: Replica) -> dict[str, int]:
    return {"port": replica.port, **_given(instance=replica.instance)}


def _order(line: Mapping[str, Any]) -> tuple[int, str]:
    return -int(line.get("priority", 0)), json.dumps(line["match"], sort_keys=True)


def changed_default(client: SwitchClient, table: Any) -> TableEntry | None:
    """The default entry of a table (P4Info), when it is not the one that the program gave."""
    if table.const_default_action_id or table.implementation_id:
        return None
    entry = client.read_default(table.preamble.name)
    if entry is None or not entry.action:
        return None
    initial = table.initial_default_action
    action = client.p4info.find_action(table, entry.action)
    same = action.preamble.id == initial.action_id and [
        int.from_bytes(argument.value, "big") for argument in initial.arguments
    ] == [_number(client, entry, param) for param in action.params]
    unset = not initial.action_id and action.preamble.name == "NoAction"
    return None if same or unset else entry


def _number(client: SwitchClient, entry: TableEntry, param: Any) -> int:
    return to_int(entry.params[param.name], param.bitwidth, param.name)


def _profiles(client: SwitchClient) -> dict[str, Any]:
    result = {}
    for name in client.p4info.names("action profile"):
        members = {
            member.number: Line(action=member.action, **_given(params=Line(member.params)))
            for member in sorted(client.each(Member(name)), key=lambda one: one.number)
        }
        groups = {
            group.number: Line(
                **_given(max_size=group.max_size),
                members=[
                    Line(
                        member=one.member,
                        weight=one.weight,
                        **({} if one.watch_port is None else {"watch_port": one.watch_port}),
                    )
                    for one in group.members
                ],
            )
            for group in selector_groups(client, name)
        }
        if content := _given(members=members, groups=groups):
            result[client.p4info.short_name("action profile", name)] = content
    return result


def _meters(client: SwitchClient) -> dict[str, Any]:
    result = {}
    for name in client.p4info.names("meter"):
        configured = {cell.index: cell.config for cell in client.each(MeterCell(name)) if cell.config}
        if cells := {index: Line(config) for index, config in sorted(configured.items())}:
            result[client.p4info.short_name("meter", name)] = cells
    return result


def selector_groups(client: SwitchClient, profile: str) -> list[MemberGroup]:
    """The groups of an action profile, by number; none where it has no selector."""
    if not client.p4info.find("action profile", profile).with_selector:
        return []
    return sorted(client.each(MemberGroup(profile)), key=lambda one: one.number)
