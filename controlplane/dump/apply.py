"""Applies a document to a switch."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from catchment.controlplane.client import CloneSession, Member, MeterCell, MulticastGroup, SwitchClient, TableEntry
from catchment.controlplane.client.entity import Entity
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
from catchment.controlplane.dump.undo import Writer, deleted, inserted, modified

_T = TypeVar("_T", bound=Entity)


@dataclass(slots=True)
class Changes:
    """How many things were put on a switch, changed, taken off it, and found as they should be."""

    inserted: int = 0
    modified: int = 0
    deleted: int = 0
    unchanged: int = 0


@dataclass(frozen=True, slots=True)
class _Difference(Generic[_T]):
    """What to do so that a switch holds what is wanted; what is modified with what it is before."""

    insert: list[_T]
    modify: list[tuple[_T, _T]]
    delete: list[_T]

    def count(self, changes: Changes, wanted: int) -> None:
        changes.inserted += len(self.insert)
        changes.modified += len(self.modify)
        changes.deleted += len(self.delete)
        changes.unchanged += wanted - len(self.insert) - len(self.modify)


def apply_document(
    client: SwitchClient, document: Mapping[str, Any], *, replace: bool = False, whole: bool = False
) -> Changes:
    """Make a switch hold what a document says; what is right already is not touched.

    Args:
        client: the switch.
        document: from `load_document` or `read_document`.
        replace: take off the switch what the document does not have.
        whole: all or nothing: what was written before a refusal is taken back. Without it, all stays that the switch
            took before it and in the same request.

    Raises:
        DumpError: a line is wrong, or the program has no such table, action, ...; nothing was written.
        SwitchError: the switch refuses an update; with `whole` it says whether everything could be taken back.
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
    with Writer(client, whole=whole) as writer:
        for difference in tables.values():
            writer.write(deleted(difference.delete))
        for members, member_groups in profiles:
            writer.write(inserted([*members.insert, *member_groups.insert]))
            writer.write(modified([*members.modify, *member_groups.modify]))
        writer.write(inserted([*groups.insert, *sessions.insert]))
        writer.write(modified([*groups.modify, *sessions.modify]))
        writer.write(deleted([*groups.delete, *sessions.delete]))
        for table, difference in tables.items():
            writer.write(inserted(difference.insert))
            writer.write(modified(difference.modify))
            difference.count(changes, len(wanted.get(table, ())))
        for members, member_groups in profiles:
            writer.write(deleted([*member_groups.delete, *members.delete]))
        _apply_defaults(client, writer, defaults, changes, replace)
        _apply_meters(client, writer, meters, changes, replace)
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
            result.modify.append((one, before))
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


def _apply_defaults(
    client: SwitchClient, writer: Writer, wanted: Iterable[TableEntry], changes: Changes, replace: bool
) -> None:
    named = set()
    for entry in wanted:
        table = client.p4info.find("table", entry.table)
        named.add(table.preamble.name)
        before = client.read_default(entry.table)
        if before is not None and client.value(before) == client.value(entry):
            changes.unchanged += 1
        else:
            writer.write(modified([(entry, before or TableEntry(entry.table, is_default=True))]))
            changes.modified += 1
    if not replace:
        return
    for name in client.p4info.names("table"):
        table = client.p4info.find("table", name)
        if name not in named and (changed := changed_default(client, table)) is not None:
            writer.write(modified([(TableEntry(name, is_default=True), changed)]))
            changes.deleted += 1


def _meters(client: SwitchClient, document: Mapping[str, Any]) -> dict[str, Mapping[int, Mapping[str, int]]]:
    """Full name of each meter of the program -> what the document wants of it."""
    info = client.p4info
    named = {info.find("meter", name).preamble.name: name for name in document["meters"]}
    return {name: meters_of(document, named[name], client) if name in named else {} for name in info.names("meter")}


def _apply_meters(
    client: SwitchClient,
    writer: Writer,
    meters: Mapping[str, Mapping[int, Mapping[str, int]]],
    changes: Changes,
    replace: bool,
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
        writer.write(modified((cell, MeterCell(name, cell.index, present.get(cell.index) or {})) for cell in cells))
