"""The lines of a document, as what a switch holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from controlplane.client import SwitchClient, TableEntry
from controlplane.client.entries import Choice
from controlplane.client.profiles import GroupMember, Member, MemberGroup
from controlplane.client.replication import CloneSession, MulticastGroup, Replica
from controlplane.dump.document import DumpError

_T = TypeVar("_T")


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
        return TableEntry(
            table,
            dict(line.get("match", {})),
            str(line.get("action", "")),
            dict(line.get("params", {})),
            int(line.get("priority", 0)),
            is_default,
            member=line.get("member"),
            group=line.get("group"),
            choices=tuple(Choice(**choice) for choice in line.get("choices", ())),
            meter=line.get("meter"),
            idle_timeout_ns=int(line.get("idle_timeout_ns", 0)),
            metadata=bytes.fromhex(str(line.get("metadata", ""))),
        )
    except (TypeError, ValueError, AttributeError) as error:
        raise DumpError(f"{where}: {error}") from None


def entries_of(document: Mapping[str, Any], client: SwitchClient) -> Iterator[tuple[str, list[TableEntry]]]:
    """Table by table, the entries of a document.

    Raises:
        DumpError: a line is wrong, or an entry is there twice.
        SwitchError: the program has no such table, or it does not take such an entry.
    """
    for table, lines in document["tables"].items():
        if not isinstance(lines, list):
            raise DumpError(f"tables.{table}: not a list of entries")
        seen: dict[bytes, int] = {}
        result = []
        for number, line in enumerate(lines):
            where = f"tables.{table}[{number}]"
            entry = to_entry(table, line, where)
            earlier = seen.setdefault(client.key(entry), number)
            if earlier != number:
                raise DumpError(f"{where}: has the key of tables.{table}[{earlier}]")
            result.append(entry)
        yield table, result


def defaults_of(document: Mapping[str, Any]) -> list[TableEntry]:
    """The default entries of a document."""
    return [to_entry(table, line, f"defaults.{table}", is_default=True) for table, line in document["defaults"].items()]


def members_of(document: Mapping[str, Any], profile: str) -> list[Member]:
    """The members of an action profile."""
    content = document["profiles"].get(profile, {})
    return _numbered(content, "members", f"profiles.{profile}", lambda n, line: Member(profile, n, **line))


def member_groups_of(document: Mapping[str, Any], profile: str) -> list[MemberGroup]:
    """The groups of an action profile."""

    def group(number: int, line: Mapping[str, Any]) -> MemberGroup:
        members = tuple(sorted((GroupMember(**one) for one in line["members"]), key=lambda one: one.member))
        return MemberGroup(profile, number, members, line.get("max_size", 0))

    return _numbered(document["profiles"].get(profile, {}), "groups", f"profiles.{profile}", group)


def multicast_groups_of(document: Mapping[str, Any]) -> list[MulticastGroup]:
    """The multicast groups of a document."""
    return _numbered(document, "multicast_groups", "", lambda n, line: MulticastGroup(n, _replicas(line)))


def clone_sessions_of(document: Mapping[str, Any]) -> list[CloneSession]:
    """The clone sessions of a document."""

    def session(number: int, line: Mapping[str, Any]) -> CloneSession:
        return CloneSession(number, **{**line, "replicas": _replicas(line["replicas"])})

    return _numbered(document, "clone_sessions", "", session)


def meters_of(document: Mapping[str, Any], meter: str) -> dict[int, dict[str, int]]:
    """Index -> configuration, of one meter."""
    fields = ("cir", "cburst", "pir", "pburst")

    def config(number: int, line: Mapping[str, Any]) -> tuple[int, dict[str, int]]:
        if set(line) - set(fields):
            raise TypeError(f"a meter has {', '.join(fields)}")
        return number, {name: int(line.get(name, 0)) for name in fields}

    return dict(_numbered(document["meters"], meter, "meters", config))


def _numbered(mapping: Mapping[str, Any], name: str, where: str, make: Callable[[int, Any], _T]) -> list[_T]:
    result = []
    for number, line in dict(mapping.get(name) or {}).items():
        try:
            # JSON has no numbers as keys.
            result.append(make(int(number), line))
        except (TypeError, ValueError, KeyError) as error:
            place = f"{where}.{name}".lstrip(".")
            missing = f"{error} is missing" if isinstance(error, KeyError) else str(error)
            raise DumpError(f"{place}[{number}]: {missing}") from None
    return result


def _replicas(lines: Any) -> tuple[Replica, ...]:
    return tuple(sorted((Replica(**line) for line in lines), key=lambda one: (one.port, one.instance)))
