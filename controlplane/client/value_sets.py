"""Parser value sets: the values by which a program's parser chooses its next state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from catchment.controlplane.client.entity import Entity, UpdateKind
from catchment.controlplane.client.errors import SwitchError
from catchment.controlplane.client.key_fields import decode_match, fill_match
from catchment.controlplane.client.p4info import P4Info
from catchment.controlplane.client.values import Value


@dataclass(frozen=True, slots=True)
class ValueSet(Entity):
    """The members of a value set, which takes `modify` alone; as a pattern: that set, or ("") all of them.

    Attributes:
        value_set: name of the set.
        members: each a value, or, in a set of several fields, field name -> value; written as in a table's key.
    """

    value_set: str = ""
    members: tuple[Value | Mapping[str, Value], ...] = ()

    def key(self) -> str:
        return f"value set {self.value_set}"

    def subject(self) -> str:
        return f"value set {self.value_set}" if self.value_set else "the value sets"

    def fill(self, message: Any, p4info: P4Info, kind: UpdateKind) -> None:
        self.select(message, p4info)
        fields = list(p4info.find("value set", self.value_set).match)
        for member in self.members:
            match = member if isinstance(member, Mapping) else {self._only(fields).name: member}
            fill_match(match, fields, message.value_set_entry.members.add().match, self.key())

    def _only(self, fields: Sequence[Any]) -> Any:
        if len(fields) == 1:
            return fields[0]
        names = ", ".join(one.name for one in fields)
        raise SwitchError(f"{self.key()}: a member has the fields {names}; name them")

    def select(self, message: Any, p4info: P4Info) -> None:
        message.value_set_entry.SetInParent()
        if self.value_set:
            message.value_set_entry.value_set_id = p4info.find("value set", self.value_set).preamble.id

    @classmethod
    def decode(cls, message: Any, p4info: P4Info) -> ValueSet:
        found = message.value_set_entry
        info = p4info.by_id(found.value_set_id)
        fields = {one.id: one for one in info.match}
        members: list[Value | Mapping[str, Value]] = []
        for member in found.members:
            values = {fields[one.field_id].name: decode_match(one, fields[one.field_id]) for one in member.match}
            members.append(next(iter(values.values())) if len(fields) == 1 and values else values)
        return cls(p4info.short_name("value set", info.preamble.name), tuple(members))
