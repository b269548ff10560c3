"""Action profiles: members, and the groups of selectors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from catchment.controlplane.client.encoding import fill_action, port_bytes, port_of
from catchment.controlplane.client.entity import Entity, UpdateKind
from catchment.controlplane.client.entries import from_action
from catchment.controlplane.client.p4info import P4Info
from catchment.controlplane.client.values import Value


@dataclass(frozen=True, slots=True)
class Member(Entity):
    """An action with parameters that entries refer to by number; as a pattern: that one, or (0) all of a profile."""

    profile: str
    number: int = 0
    action: str = ""
    params: Mapping[str, Value] = field(default_factory=dict)

    def key(self) -> str:
        return f"member {self.number} of {self.profile}"

    def subject(self) -> str:
        return f"the members of {self.profile}"

    def fill(self, message: Any, p4info: P4Info, kind: UpdateKind) -> None:
        self.select(message, p4info)
        if kind != "delete":
            table = _table(p4info, p4info.find("action profile", self.profile))
            fill_action(self.action, self.params, table, p4info, self.key(), into=message.action_profile_member.action)

    def select(self, message: Any, p4info: P4Info) -> None:
        out = message.action_profile_member
        out.action_profile_id = p4info.find("action profile", self.profile).preamble.id
        out.member_id = self.number

    @classmethod
    def decode(cls, message: Any, p4info: P4Info) -> Member:
        found = message.action_profile_member
        info = p4info.by_id(found.action_profile_id)
        action, params = from_action(found.action, _table(p4info, info), p4info)
        return cls(p4info.short_name("action profile", info.preamble.name), found.member_id, action, params)


@dataclass(frozen=True, slots=True)
class GroupMember:
    """A member's place in a group; it is passed over while `watch_port` is down."""

    member: int
    weight: int = 1
    watch_port: int | None = None


@dataclass(frozen=True, slots=True)
class MemberGroup(Entity):
    """Members among which a selector chooses; as a pattern: that group, or (0) all of a profile."""

    profile: str
    number: int = 0
    members: tuple[GroupMember, ...] = ()
    max_size: int = 0

    def key(self) -> str:
        return f"group {self.number} of {self.profile}"

    def subject(self) -> str:
        return f"the groups of {self.profile}"

    def fill(self, message: Any, p4info: P4Info, kind: UpdateKind) -> None:
        self.select(message, p4info)
        out = message.action_profile_group
        out.max_size = self.max_size
        for one in self.members:
            out.members.add(member_id=one.member, weight=one.weight, watch_port=port_bytes(one.watch_port))

    def select(self, message: Any, p4info: P4Info) -> None:
        out = message.action_profile_group
        out.action_profile_id = p4info.find("action profile", self.profile).preamble.id
        out.group_id = self.number

    @classmethod
    def decode(cls, message: Any, p4info: P4Info) -> MemberGroup:
        found = message.action_profile_group
        name = p4info.short_name("action profile", p4info.by_id(found.action_profile_id).preamble.name)
        members = (GroupMember(one.member_id, one.weight, port_of(one.watch_port)) for one in found.members)
        return cls(name, found.group_id, tuple(sorted(members, key=lambda one: one.member)), found.max_size)


def _table(p4info: P4Info, profile: Any) -> Any:
    """A table of the profile: all of them take the same actions."""
    return p4info.by_id(profile.table_ids[0])
