"""Table entries: readable values on our side, P4Runtime messages on the other."""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from catchment.controlplane.client.encoding import fill_entry, port_of, serialized_entry
from catchment.controlplane.client.entity import Entity, UpdateKind, field_tag, nested
from catchment.controlplane.client.key_fields import decode_match
from catchment.controlplane.client.p4info import P4Info
from catchment.controlplane.client.values import Value, decode, readable
from catchment.wire.generated import p4runtime_pb2

_IN_ENTITY = field_tag(p4runtime_pb2.Entity, "table_entry")


@dataclass(frozen=True, slots=True)
class Choice:
    """One of the actions of an action set.

    Attributes:
        action: name of the action.
        params: action parameter name -> value.
        weight: how often it is chosen, beside the others.
        watch_port: it is passed over while this port is down.
    """

    action: str
    params: Mapping[str, Value] = field(default_factory=dict)
    weight: int = 1
    watch_port: int | None = None


@dataclass(frozen=True, slots=True)
class TableEntry(Entity):
    """One entry of a match-action table; as a pattern: the entries of the table, or the one with this key.

    Attributes:
        table: name of the table (any unique suffix).
        match: key field name -> value. Exact and optional: ``7``; LPM: ``"10.0.0.0/8"``; ternary:
            ``"5&&&0xff"``; range: ``"1..5"``. Left out means "any" where the kind allows it.
        action: name of the action.
        params: action parameter name -> value.
        member: number of an action profile member, instead of an action.
        group: number of an action profile group, instead of an action.
        choices: an action set of a table with a selector, instead of an action.
        priority: for tables with ternary, range or optional keys; larger wins.
        is_default: the default action of the table, not an entry.
        packets: direct counter, packets; None if the table has none or it was not read.
        bytes: direct counter, bytes.
        meter: direct meter: cir, cburst, pir, pburst.
        idle_timeout_ns: when the switch tells that nothing hit the entry; 0: never.
        metadata: bytes of the controller's own.
        is_const: the entry is the program's own.
    """

    table: str
    match: Mapping[str, Value] = field(default_factory=dict)
    action: str = ""
    params: Mapping[str, Value] = field(default_factory=dict)
    priority: int = 0
    is_default: bool = False
    packets: int | None = None
    bytes: int | None = None
    member: int | None = None
    group: int | None = None
    choices: tuple[Choice, ...] = ()
    meter: Mapping[str, int] | None = None
    idle_timeout_ns: int = 0
    metadata: builtins.bytes = b""
    is_const: bool = False

    def key(self) -> str:
        """Table and key in words, for messages."""
        if self.is_default:
            return f"{self.table}[default]"
        fields = " ".join(f"{name}={value}" for name, value in self.match.items())
        return f"{self.table}[{fields}]"

    def subject(self) -> str:
        return f"the default action of {self.table}" if self.is_default else f"table {self.table}"

    def fill(self, message: Any, p4info: P4Info, kind: UpdateKind) -> None:
        fill_entry(self, message.table_entry, p4info, with_action=kind != "delete")

    def serialized(self, p4info: P4Info, kind: UpdateKind) -> builtins.bytes:
        return nested(_IN_ENTITY, serialized_entry(self, p4info, with_action=kind != "delete"))

    def select(self, message: Any, p4info: P4Info) -> None:
        info = p4info.find("table", self.table)
        query = message.table_entry
        if self.match:
            fill_entry(self, query, p4info, with_action=False)
        query.table_id, query.is_default_action = info.preamble.id, self.is_default
        if p4info.is_counted(info):
            query.counter_data.SetInParent()
        if p4info.is_metered(info):
            query.meter_config.SetInParent()

    @classmethod
    def decode(cls, message: Any, p4info: P4Info) -> TableEntry:
        return from_message(message.table_entry, p4info)

    def matches(self, found: TableEntry) -> bool:
        return found.is_default == self.is_default


def to_message(entry: TableEntry, p4info: P4Info, *, with_action: bool = True) -> Any:
    """The `p4.v1.TableEntry` of an entry.

    Raises:
        SwitchError: a name that the program does not have, a missing key field or parameter, or a
            value that does not fit.
    """
    message = p4runtime_pb2.TableEntry()
    fill_entry(entry, message, p4info, with_action=with_action)
    return message


def from_message(message: Any, p4info: P4Info) -> TableEntry:
    """The readable entry of a `p4.v1.TableEntry`."""
    table = p4info.by_id(message.table_id)
    fields = {match.id: match for match in table.match_fields}
    form = message.action.WhichOneof("type")
    action, params = from_action(message.action.action, table, p4info)
    counted = message.HasField("counter_data")
    return TableEntry(
        table=p4info.short_name("table", table.preamble.name),
        match={fields[m.field_id].name: decode_match(m, fields[m.field_id]) for m in message.match},
        action=action,
        params=params,
        priority=message.priority,
        is_default=message.is_default_action,
        packets=message.counter_data.packet_count if counted else None,
        bytes=message.counter_data.byte_count if counted else None,
        member=message.action.action_profile_member_id if form == "action_profile_member_id" else None,
        group=message.action.action_profile_group_id if form == "action_profile_group_id" else None,
        choices=tuple(
            Choice(*from_action(one.action, table, p4info), one.weight, port_of(one.watch_port))
            for one in message.action.action_profile_action_set.action_profile_actions
        ),
        meter=meter_values(message.meter_config) if message.HasField("meter_config") else None,
        idle_timeout_ns=message.idle_timeout_ns,
        metadata=message.metadata,
        is_const=message.is_const,
    )


def meter_values(config: Any) -> dict[str, int]:
    """Rates and bursts of a `p4.v1.MeterConfig`, by name."""
    return {"cir": config.cir, "cburst": config.cburst, "pir": config.pir, "pburst": config.pburst}


def from_action(message: Any, table: Any, p4info: P4Info) -> tuple[str, dict[str, Value]]:
    """Name and parameters of a `p4.v1.Action` of a table; an empty name when it is unset."""
    if not message.action_id:
        return "", {}
    info = p4info.by_id(message.action_id)
    by_id = {param.id: param for param in info.params}
    params = {
        by_id[value.param_id].name: readable(
            decode(value.value), by_id[value.param_id].bitwidth, by_id[value.param_id].name
        )
        for value in message.params
    }
    return p4info.action_name(table, info.preamble.name), params
