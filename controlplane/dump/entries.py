"""The lines of a document, as what a switch holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from catchment.controlplane.client import MeterCell, SwitchClient, SwitchError, TableEntry
from catchment.controlplane.client.entity import Entity
from catchment.controlplane.client.entries import Choice
from catchment.controlplane.client.profiles import GroupMember, Member, MemberGroup
from catchment.controlplane.client.replication import CloneSession, MulticastGroup, Replica
from catchment.controlplane.dump.checks import (
    LARGEST_NUMBER,
    check_entry,
    check_numbers,
    check_replicas,
    metadata,
    whole,
)
from catchment.controlplane.dump.document import DumpError, place

_E = TypeVar("_E", bound=Entity)


def to_entry(table: str, line: Mapping[str, Any], where: str, *, is_default: bool = False) -> TableEntry:
    """The entry that a line of a document stands for.

    Raises:
        DumpError: it has unknown fields or values of a wrong kind.
    """
    known = {"match", "priority", "member", "group", "action", "params", "choices", "meter", "idle_timeout_ns",
             "metadata"}  # fmt: skip
    if not isinstance(line, dict) or (unknown := set(line) - known):
        said = f"unknown: {', '.join(sorted(map(str, unknown)))}" if isinstance(line, dict) else "not a mapping"
        raise DumpError(f"{where}: {said}; an entry has {', '.join(sorted(known))}")
    try:
        check_numbers(line)
        return TableEntry(
            table,
            _values(line.get("match", {})),
            str(line.get("action", "")),
            _values(line.get("params", {})),
            whole(line, "priority"),
            is_default,
            member=line.get("member"),
            group=line.get("group"),
            choices=tuple(Choice(**_action(choice)) for choice in line.get("choices", ())),
            meter=line.get("meter"),
            idle_timeout_ns=whole(line, "idle_timeout_ns"),
            metadata=metadata(line),
        )
    except (TypeError, ValueError, AttributeError, KeyError) as error:
        raise DumpError(f"{where}: {_reason(error)}") from None


def _values(values: Any) -> dict[str, Any]:
    """Key fields or parameters by name; raises `TypeError` where one is neither a number nor text."""
    for name, value in dict(values).items():
        if not isinstance(name, str) or not isinstance(value, int | str):
            raise TypeError(f"{name}: {value!r} is neither a number nor text")
    return dict(values)


def _action(line: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of an action with parameters; errors as `_values`."""
    return {**line, "action": str(line["action"]), "params": _values(line.get("params", {}))}


def entries_of(document: Mapping[str, Any], client: SwitchClient) -> Iterator[tuple[str, list[TableEntry]]]:
    """Table by table, the entries of a document.

    Raises:
        DumpError: a line is wrong, an entry is there twice, or the program does not take it.
    """
    for table, lines in document["tables"].items():
        if not isinstance(lines, list):
            raise DumpError(f"{place(document, f'tables.{table}')}: not a list of entries")
        seen: dict[bytes, int] = {}
        result = []
        for number, line in enumerate(lines):
            where = place(document, f"tables.{table}[{number}]")
            entry = to_entry(table, line, where)
            earlier = seen.setdefault(_check(client, entry, where), number)
            if earlier != number:
                raise DumpError(f"{where}: has the key of tables.{table}[{earlier}]")
            result.append(entry)
        yield table, result


def defaults_of(document: Mapping[str, Any], client: SwitchClient) -> list[TableEntry]:
    """The default entries of a document.

    Raises:
        DumpError: one is wrong, or the program does not take it.
    """
    result = []
    for table, line in document["defaults"].items():
        where = place(document, f"defaults.{table}")
        result.append(to_entry(table, line, where, is_default=True))
        _check(client, result[-1], where)
    return result


def _check(client: SwitchClient, entry: TableEntry, where: str) -> bytes:
    """The key of an entry that the program takes."""
    try:
        (+entry).serialized(client.p4info)
        check_entry(entry, client)
        return client.key(entry)
    except (SwitchError, ValueError) as error:
        raise DumpError(f"{where}: {error}") from None


def members_of(document: Mapping[str, Any], profile: str, client: SwitchClient) -> list[Member]:
    """The members of an action profile; errors as `entries_of`."""
    return _numbered(
        document, ("profiles", profile, "members"), lambda n, line: Member(profile, n, **_action(line)), client
    )


def member_groups_of(document: Mapping[str, Any], profile: str, client: SwitchClient) -> list[MemberGroup]:
    """The groups of an action profile; errors as `entries_of`."""

    def group(number: int, line: Mapping[str, Any]) -> MemberGroup:
        members = tuple(sorted((GroupMember(**one) for one in line["members"]), key=lambda one: one.member))
        return MemberGroup(profile, number, members, line.get("max_size", 0))

    return _numbered(document, ("profiles", profile, "groups"), group, client)


def multicast_groups_of(document: Mapping[str, Any], client: SwitchClient) -> list[MulticastGroup]:
    """The multicast groups of a document; errors as `entries_of`."""

    def group(number: int, line: Any) -> MulticastGroup:
        if not isinstance(line, Mapping):
            return MulticastGroup(number, _replicas(line))
        if unknown := set(line) - {"replicas", "metadata"}:
            raise TypeError(f"unknown: {', '.join(sorted(map(str, unknown)))}; a group has replicas, metadata")
        return MulticastGroup(number, _replicas(line["replicas"]), metadata(line))

    return _numbered(document, ("multicast_groups",), group, client)


def clone_sessions_of(document: Mapping[str, Any], client: SwitchClient) -> list[CloneSession]:
    """The clone sessions of a document; errors as `entries_of`."""

    def session(number: int, line: Mapping[str, Any]) -> CloneSession:
        return CloneSession(number, **{**line, "replicas": _replicas(line["replicas"])})

    return _numbered(document, ("clone_sessions",), session, client)


def meters_of(document: Mapping[str, Any], meter: str, client: SwitchClient) -> dict[int, Mapping[str, int]]:
    """Index -> configuration, of one meter; errors as `entries_of`."""
    fields = ("cir", "cburst", "pir", "pburst")

    def config(number: int, line: Mapping[str, Any]) -> MeterCell:
        if set(line) - set(fields):
            raise TypeError(f"a meter has {', '.join(fields)}")
        return MeterCell(meter, number, {name: whole(line, name) for name in fields})

    return {cell.index or 0: cell.config for cell in _numbered(document, ("meters", meter), config, client)}


def _numbered(
    document: Mapping[str, Any], path: Sequence[str], make: Callable[[int, Any], _E], client: SwitchClient
) -> list[_E]:
    """What stands under numbers at a path of a document."""
    content: Any = document
    for depth, name in enumerate(path):
        content = content.get(name) or {}
        if not isinstance(content, Mapping):
            raise DumpError(f"{place(document, '.'.join(path[: depth + 1]))}: not a mapping")
    result = []
    for number, line in content.items():
        where = place(document, f"{'.'.join(path)}[{number}]")
        try:
            check_numbers(line)
            result.append(make(_number(number), line))
            (+result[-1]).serialized(client.p4info)
        except (TypeError, ValueError, AttributeError, KeyError, SwitchError) as error:
            raise DumpError(f"{where}: {_reason(error)}") from None
    return result


def _number(key: Any) -> int:
    """What stands before a line, which JSON has as text."""
    try:
        number = int(key)
    except (TypeError, ValueError):
        raise TypeError(f"{key!r} is not a number") from None
    if not 0 <= number <= LARGEST_NUMBER:
        raise ValueError(f"{number} is not between 0 and {LARGEST_NUMBER}")
    return number


def _reason(error: Exception) -> str:
    return f"{error} is missing" if isinstance(error, KeyError) else str(error)


def _replicas(lines: Any) -> tuple[Replica, ...]:
    replicas = tuple(sorted((Replica(**line) for line in lines), key=lambda one: (one.port, one.instance)))
    check_replicas(replicas)
    return replicas
