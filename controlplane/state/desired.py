"""What a switch should hold, and how it gets there: the one place that writes forwarding and jobs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from catchment.controlplane.client import MulticastGroup, SwitchClient, SwitchError, TableEntry

JOBS, PACKED, RECEIVERS, TAGS = "jobs", "packed", "receivers", "tags"
_OWNED = (JOBS, PACKED, RECEIVERS, TAGS)
"""Tables in which nothing but ours may be: an entry of a forgotten job would let its frames in."""
FIRST_HAND_GROUP = 1024
"""Multicast groups from here on are people's: jobs take the lowest that are free, and there are 64 at most."""


@dataclass(frozen=True, slots=True)
class SwitchConfig:
    """A part of what one switch should hold: its forwarding, or its share of a job.

    Attributes:
        switch: its name.
        groups: multicast group -> ports.
        entries: table entries; default actions too.
    """

    switch: str
    groups: dict[int, list[int]] = field(default_factory=dict)
    entries: tuple[TableEntry, ...] = ()


@dataclass(frozen=True, slots=True)
class Differences:
    """What had to be done to a switch.

    Attributes:
        written: entries that were missing or had another action.
        deleted: entries that should not have been there.
        groups: multicast groups that were written or deleted.
        foreign: entries of other control planes, which stayed.
        removed: the entries that were deleted.
    """

    written: int
    deleted: int
    groups: int
    foreign: tuple[TableEntry, ...] = ()
    removed: tuple[TableEntry, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.written or self.deleted or self.groups)

    def __str__(self) -> str:
        return f"{self.written} entries written, {self.deleted} deleted, {self.groups} groups written or deleted"


def write(config: SwitchConfig, client: SwitchClient) -> None:
    """Write a part that is not on the switch yet.

    Raises:
        SwitchError: with each refused update.
    """
    client.set_groups(config.groups)
    client.insert(*(entry for entry in config.entries if not entry.is_default))
    client.modify(*(entry for entry in config.entries if entry.is_default))  # last, or known hosts would be strangers


def write_new(config: SwitchConfig, client: SwitchClient) -> None:
    """Write a part of which nothing may be on the switch yet; all of it or nothing.

    Raises:
        SwitchError: with each refused update; ALREADY_EXISTS for what somebody else has put there.
    """
    groups = [MulticastGroup.of_ports(number, ports) for number, ports in config.groups.items()]
    tried: list[MulticastGroup] = []
    try:
        client.insert(*config.entries)  # first: others leave a group alone that an entry names
        tried = groups
        client.insert(*groups)
    except SwitchError as error:
        there = {one.update.removeprefix("insert ") for one in error.failures if one.code == "ALREADY_EXISTS"}
        with contextlib.suppress(SwitchError):  # it does not answer: it is compared when it does
            client.delete(*(entry for entry in present(config, client) if entry.key() not in there))
            own = {group.number for group in tried if group.key() not in there}
            client.delete_groups(own & set(client.groups()))
        raise


def present(config: SwitchConfig, client: SwitchClient) -> list[TableEntry]:
    """The entries of a part whose key the switch has."""
    tables = sorted({entry.table for entry in config.entries if not entry.is_default})
    keys = {client.key(entry) for table in tables for entry in client.read(table)}
    return [entry for entry in config.entries if not entry.is_default and client.key(entry) in keys]


def take_off(config: SwitchConfig, client: SwitchClient) -> None:
    """Delete a part; what is not there any more is no error.

    Raises:
        SwitchError: the switch refuses or does not answer.
    """
    client.delete(*present(config, client))
    client.delete_groups(set(config.groups) & set(client.groups()))


def replace(old: SwitchConfig, new: SwitchConfig, client: SwitchClient) -> None:
    """Put one part in the place of another that is on the switch: the new is there before the old goes.

    Raises:
        SwitchError: the switch refuses or does not answer.
    """
    before, after = ({(e.table, *sorted(e.match.items())): e for e in part.entries} for part in (old, new))
    client.set_groups({group: ports for group, ports in new.groups.items() if old.groups.get(group) != ports})
    client.modify(*(entry for key, entry in after.items() if key in before))
    client.insert(*(entry for key, entry in after.items() if key not in before))
    client.delete(*(entry for key, entry in before.items() if key not in after))
    client.delete_groups(set(old.groups) - set(new.groups))


def nobodys(_entry: TableEntry) -> bool:
    """Say of an entry that no other control plane put it there."""
    return False


def reconcile(
    client: SwitchClient, wanted: Iterable[SwitchConfig], is_foreign: Callable[[TableEntry], bool] = nobodys
) -> Differences:
    """Make a switch hold exactly these parts, whatever it held before; what is right already stays untouched.

    Other tables than the parts' own, and what people added to the forwarding, are left alone. Multicast groups below
    FIRST_HAND_GROUP are the control plane's: all others go.

    Args:
        client: of the switch.
        wanted: the parts.
        is_foreign: says which entries of jobs that no part has are another control plane's: these stay, with their
            groups.

    Raises:
        SwitchError: the switch refuses or does not answer.
    """
    parts = list(wanted)
    entries = {client.key(entry): entry for part in parts for entry in part.entries}
    groups = {group: sorted(ports) for part in parts for group, ports in part.groups.items()}
    tables = {entry.table for entry in entries.values() if not entry.is_default} | {
        table for table in _OWNED if client.p4info.has("table", table)
    }
    found = {client.key(entry): entry for table in sorted(tables) for entry in client.read(table)}
    unknown = [entry for key, entry in found.items() if key not in entries and entry.table in _OWNED]
    foreign = tuple(entry for entry in unknown if is_foreign(entry))
    extra = [entry for entry in unknown if entry not in foreign]
    wrong = [e for key, e in entries.items() if key in found and client.value(e) != client.value(found[key])]
    missing = [e for key, e in entries.items() if key not in found and not e.is_default]
    defaults = [e for e in entries.values() if e.is_default and not _is_default(client, e)]
    have = {group: sorted(ports) for group, ports in client.groups().items() if group < FIRST_HAND_GROUP}
    superfluous = set(have) - set(groups) - {int(entry.params.get("group", 0)) for entry in foreign}
    changed = {group: ports for group, ports in groups.items() if have.get(group) != ports}
    client.delete(*extra)
    client.set_groups(changed)
    client.insert(*missing)
    client.modify(*wrong, *defaults)
    client.delete_groups(superfluous)
    written = len(wrong) + len(missing) + len(defaults)
    return Differences(written, len(extra), len(changed) + len(superfluous), foreign, tuple(extra))


def is_ours(client: SwitchClient, entry: TableEntry) -> bool:
    """Whether an entry is in a table that only this control plane writes to."""
    table = client.p4info.find("table", entry.table).preamble.name
    return any(
        client.p4info.has("table", name) and client.p4info.find("table", name).preamble.name == table for name in _OWNED
    )


def _is_default(client: SwitchClient, entry: TableEntry) -> bool:
    current = client.read_default(entry.table)
    return current is not None and bool(current.action) and client.value(current) == client.value(entry)
