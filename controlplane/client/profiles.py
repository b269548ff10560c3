"""Action profiles: members, and the groups of selectors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from catchment.controlplane.client.entries import from_action, port_bytes, port_of, to_action
from catchment.controlplane.client.switch import SwitchClient, UpdateKind
from catchment.controlplane.client.values import Value
from catchment.wire.generated import p4runtime_pb2


@dataclass(frozen=True, slots=True)
class Member:
    """An action with its parameters that entries refer to by number."""

    profile: str
    number: int
    action: str = ""
    params: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GroupMember:
    """A member's place in a group; it is passed over while `watch_port` is down."""

    member: int
    weight: int = 1
    watch_port: int | None = None


@dataclass(frozen=True, slots=True)
class MemberGroup:
    """Members among which a selector chooses."""

    profile: str
    number: int
    members: tuple[GroupMember, ...] = ()
    max_size: int = 0


def read_members(client: SwitchClient, profile: str) -> list[Member]:
    """The members of a profile, by number."""
    info = client.p4info.find("action profile", profile)
    query = p4runtime_pb2.Entity()
    query.action_profile_member.action_profile_id = info.preamble.id
    name = client.p4info.short_name("action profile", info.preamble.name)
    table = _table(client, info)
    found = [
        Member(
            name,
            entity.action_profile_member.member_id,
            *from_action(entity.action_profile_member.action, table, client.p4info),
        )
        for entity in client.read_entities(query, f"reading the members of {profile}")
    ]
    return sorted(found, key=lambda member: member.number)


def write_members(client: SwitchClient, kind: UpdateKind, members: Iterable[Member]) -> None:
    """Insert, modify or delete members.

    Raises:
        SwitchError: with each member that the switch refuses.
    """
    updates = []
    for member in members:
        info = client.p4info.find("action profile", member.profile)
        words = f"{kind} member {member.number} of {member.profile}"
        entity = p4runtime_pb2.Entity()
        message = entity.action_profile_member
        message.action_profile_id, message.member_id = info.preamble.id, member.number
        if kind != "delete":
            table = _table(client, info)
            message.action.CopyFrom(to_action(member.action, member.params, table, client.p4info, words))
        updates.append((kind, entity, words))
    client.write_entities(updates)


def read_member_groups(client: SwitchClient, profile: str) -> list[MemberGroup]:
    """The groups of a selector, by number; none when the profile is no selector."""
    info = client.p4info.find("action profile", profile)
    if not info.with_selector:
        return []
    query = p4runtime_pb2.Entity()
    query.action_profile_group.action_profile_id = info.preamble.id
    name = client.p4info.short_name("action profile", info.preamble.name)
    found = []
    for entity in client.read_entities(query, f"reading the groups of {profile}"):
        message = entity.action_profile_group
        members = (GroupMember(one.member_id, one.weight, port_of(one.watch_port)) for one in message.members)
        ordered = tuple(sorted(members, key=lambda one: one.member))
        found.append(MemberGroup(name, message.group_id, ordered, message.max_size))
    return sorted(found, key=lambda group: group.number)


def write_member_groups(client: SwitchClient, kind: UpdateKind, groups: Iterable[MemberGroup]) -> None:
    """Insert, modify or delete groups of a selector.

    Raises:
        SwitchError: with each group that the switch refuses.
    """
    updates = []
    for group in groups:
        entity = p4runtime_pb2.Entity()
        message = entity.action_profile_group
        message.action_profile_id = client.p4info.find("action profile", group.profile).preamble.id
        message.group_id, message.max_size = group.number, group.max_size
        for one in group.members:
            message.members.add(member_id=one.member, weight=one.weight, watch_port=port_bytes(one.watch_port))
        updates.append((kind, entity, f"{kind} group {group.number} of {group.profile}"))
    client.write_entities(updates)


def _table(client: SwitchClient, profile: Any) -> Any:
    """A table of the profile: all of them take the same actions."""
    return client.p4info.by_id(profile.table_ids[0])
