"""Applies a document to a switch."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from catchment.controlplane.client import CloneSession, Member, MeterCell, MulticastGroup, SwitchClient, TableEntry
from catchment.controlplane.dump.entries import (
    clone_sessions_of,
    defaults_of,
    entries_of,
    member_groups_of,
    members_of,
    meters_of,
    multicast_groups_of,
)
from catchment.controlplane.dump.read import changed_default, selector_groups

_T = TypeVar("_T")


@dataclass(slots=True)
class Changes:
    """How many things were put on a switch, changed, taken off it, and found as they should be."""

    inserted: int = 0
    modified: int = 0
    deleted: int = 0
    unchanged: int = 0


@dataclass(frozen=True, slots=True)
class _Difference(Generic[_T]):
    """What to do so that a switch holds what is wanted."""

    insert: list[_T]
    modify: list[_T]
    delete: list[_T]

    def count(self, changes: Changes, wanted: int) -> None:
        changes.inserted += len(self.insert)
        changes.modified += len(self.modify)
        changes.deleted += len(self.delete)
        changes.unchanged += wanted - len(self.insert) - len(self.modify)


def apply_document(client: SwitchClient, document: Mapping[str, Any], *, replace: bool = False) -> Changes:
    """Make a switch hold what a document says; what is right already is not touched.

    Args:
        client: the switch.
        document: from `load_document` or `read_document`.
        replace: take off the switch what the document does not have.

    Raises:
        DumpError: a line is wrong, or the program has no such table, action, ...; nothing was written.
        SwitchError: the switch refuses an update.
    """
    changes = Changes()
    wanted = dict(entries_of(document, client))
    tables = {table: _table_difference(client, table, entries, replace) for table, entries in wanted.items()}
    if replace:
        for table in _tables_besides(client, wanted):
            tables[table] = _table_difference(client, table, [], replace)
    defaults = defaults_of(document, client)
    profiles = _profiles(client, document, replace)
    meters = _meters(client, document)
    groups = _difference(
        multicast_groups_of(document, client), client.each(MulticastGroup()), lambda one: one.number, replace
    )
    sessions = _difference(
        clone_sessions_of(document, client), client.each(CloneSession()), lambda one: one.number, replace
    )

    # Room first; members before what refers to them, and gone after it.
    for difference in tables.values():
        client.delete(*difference.delete)
    for members, member_groups in profiles:
        client.insert(*members.insert, *member_groups.insert)
        client.modify(*members.modify, *member_groups.modify)
    client.insert(*groups.insert, *sessions.insert)
    client.modify(*groups.modify, *sessions.modify)
    client.delete(*groups.delete, *sessions.delete)
    for table, difference in tables.items():
        client.insert(*difference.insert)
        client.modify(*difference.modify)
        difference.count(changes, len(wanted.get(table, ())))
    for members, member_groups in profiles:
        client.delete(*member_groups.delete, *members.delete)
    _apply_defaults(client, defaults, changes, replace)
    _apply_meters(client, meters, changes, replace)
    groups.count(changes, len(document["multicast_groups"]))
    sessions.count(changes, len(document["clone_sessions"]))
    for profile, (members, member_groups) in zip(_profile_names(client, document), profiles, strict=True):
        content = document["profiles"].get(profile, {})
        members.count(changes, len(content.get("members") or {}))
        member_groups.count(changes, len(content.get("groups") or {}))
    return changes


def _difference(
    wanted: Iterable[_T], present: Iterable[_T], key: Callable[[_T], Hashable], replace: bool,
    value: Callable[[_T], Any] = lambda one: one,
) -> _Difference[_T]:  # fmt: skip
    old = {key(one): one for one in present}
    result: _Difference[_T] = _Difference([], [], [])
    for one in wanted:
        before = old.pop(key(one), None)
        if before is None:
            result.insert.append(one)
        elif value(before) != value(one):
            result.modify.append(one)
    if replace:
        result.delete.extend(old.values())
    return result


def _table_difference(
    client: SwitchClient, table: str, entries: Iterable[TableEntry], replace: bool
) -> _Difference[TableEntry]:
    return _difference(entries, client.read_own(table), client.key, replace, client.value)


def _tables_besides(client: SwitchClient, wanted: Iterable[str]) -> list[str]:
    info = client.p4info
    named = {info.find("table", table).preamble.name for table in wanted}
    return [name for name in info.names("table") if name not in named and not info.find("table", name).is_const_table]


def _profile_names(client: SwitchClient, document: Mapping[str, Any]) -> list[str]:
    info = client.p4info
    for profile in document["profiles"]:
        info.find("action profile", profile)
    named = {info.find("action profile", profile).preamble.name: profile for profile in document["profiles"]}
    return [named.get(name, info.short_name("action profile", name)) for name in info.names("action profile")]


def _profiles(client: SwitchClient, document: Mapping[str, Any], replace: bool) -> list[Any]:
    result = []
    for profile in _profile_names(client, document):
        members = _difference(
            members_of(document, profile, client), client.each(Member(profile)), lambda one: one.number, replace,
            lambda one: (one.action, {name: str(value) for name, value in one.params.items()}),
        )  # fmt: skip
        groups = _difference(
            member_groups_of(document, profile, client), selector_groups(client, profile), lambda one: one.number,
            replace, lambda one: (one.members, one.max_size),
        )  # fmt: skip
        result.append((members, groups))
    return result


def _apply_defaults(client: SwitchClient, wanted: Iterable[TableEntry], changes: Changes, replace: bool) -> None:
    named = set()
    for entry in wanted:
        table = client.p4info.find("table", entry.table)
        named.add(table.preamble.name)
        before = client.read_default(entry.table)
        if before is not None and client.value(before) == client.value(entry):
            changes.unchanged += 1
        else:
            client.modify(entry)
            changes.modified += 1
    if not replace:
        return
    for name in client.p4info.names("table"):
        table = client.p4info.find("table", name)
        if name not in named and changed_default(client, table) is not None:
            client.reset_default(name)
            changes.deleted += 1


def _meters(client: SwitchClient, document: Mapping[str, Any]) -> dict[str, Mapping[int, Mapping[str, int]]]:
    """Full name of each meter of the program -> what the document wants of it."""
    info = client.p4info
    named = {info.find("meter", name).preamble.name: name for name in document["meters"]}
    return {name: meters_of(document, named[name], client) if name in named else {} for name in info.names("meter")}


def _apply_meters(
    client: SwitchClient, meters: Mapping[str, Mapping[int, Mapping[str, int]]], changes: Changes, replace: bool
) -> None:
    for name, wanted in meters.items():
        present = {cell.index: cell.config for cell in client.each(MeterCell(name)) if cell.config}
        cells = [MeterCell(name, index, config) for index, config in wanted.items() if present.get(index) != config]
        changes.modified += len(cells)
        changes.unchanged += len(wanted) - len(cells)
        if replace:
            gone = set(present) - set(wanted)
            cells += (MeterCell(name, index) for index in gone)
            changes.deleted += len(gone)
        client.modify(*cells)
