"""Table entries: readable values on our side, P4Runtime messages on the other."""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from catchment.controlplane.client.errors import SwitchError
from catchment.controlplane.client.p4info import P4Info
from catchment.controlplane.client.values import Value, decode, encode, readable, to_int
from catchment.wire.generated import p4info_pb2, p4runtime_pb2

_MatchType = p4info_pb2.MatchField


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
class TableEntry:
    """One entry of a match-action table.

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


def to_message(entry: TableEntry, p4info: P4Info, *, with_action: bool = True, into: Any = None) -> Any:
    """The `p4.v1.TableEntry` of an entry; `into` is an empty one that takes it.

    Raises:
        SwitchError: a name that the program does not have, a missing key field or parameter, or a
            value that does not fit.
    """
    table = p4info.find("table", entry.table)
    message = p4runtime_pb2.TableEntry() if into is None else into
    message.table_id, message.priority, message.is_default_action = table.preamble.id, entry.priority, entry.is_default
    if with_action:
        message.idle_timeout_ns, message.metadata = entry.idle_timeout_ns, entry.metadata
        if entry.meter is not None:
            message.meter_config.CopyFrom(p4runtime_pb2.MeterConfig(**entry.meter))
    known = {match.name: match for match in table.match_fields}
    values = {_field_name(name, known, entry.table): value for name, value in entry.match.items()}
    if not entry.is_default:
        for name, match in known.items():
            _encode_match(message, match, values.get(name), f"{entry.table}.{name}")
    if with_action:
        _encode_action(message, table, entry, p4info)
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
        match={fields[m.field_id].name: _decode_match(m, fields[m.field_id]) for m in message.match},
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


def port_of(watch_port: bytes) -> int | None:
    """The port number in a byte string; None when it is empty."""
    return decode(watch_port) if watch_port else None


def port_bytes(port: int | None) -> bytes:
    """The byte string of a port to watch; empty for none."""
    return b"" if port is None else encode(port, 32, "port")


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


def _field_name(name: str, known: Mapping[str, Any], table: str) -> str:
    if name in known:
        return name
    matches = [full for full in known if full.endswith(f".{name}")]
    if len(matches) == 1:
        return matches[0]
    raise SwitchError(f"table {table} has no key field {name!r}; its key is: {', '.join(known) or 'empty'}")


def _split(value: Value, separator: str, default: str) -> tuple[str, str]:
    left, found, right = str(value).partition(separator)
    return left, right if found else default


def _encode_match(message: Any, match: Any, value: Value | None, what: str) -> None:
    width, kind = match.bitwidth, match.match_type
    if value is None or value == "*":
        if kind == _MatchType.EXACT:
            raise SwitchError(f"{what}: an exact key field needs a value")
        return
    out = p4runtime_pb2.FieldMatch(field_id=match.id)
    if kind == _MatchType.EXACT:
        out.exact.value = encode(value, width, what)
    elif kind == _MatchType.OPTIONAL:
        out.optional.value = encode(value, width, what)
    elif kind == _MatchType.LPM:
        address, length = _split(value, "/", str(width))
        bits = to_int(length, 16, f"{what} prefix length")
        if bits > width:
            raise SwitchError(f"{what}: prefix length {bits} is longer than the field ({width})")
        if bits == 0:
            return
        mask = ((1 << bits) - 1) << (width - bits)
        out.lpm.value = encode(to_int(address, width, what) & mask, width, what)
        out.lpm.prefix_len = bits
    elif kind == _MatchType.TERNARY:
        text, mask_text = _split(value, "&&&", str((1 << width) - 1))
        bits = to_int(mask_text, width, f"{what} mask")
        if bits == 0:
            return
        out.ternary.value = encode(to_int(text, width, what) & bits, width, what)
        out.ternary.mask = encode(bits, width, what)
    elif kind == _MatchType.RANGE:
        low, high = _split(value, "..", str(value))
        if to_int(low, width, what) > to_int(high, width, what):
            raise SwitchError(f"{what}: empty range {value}")
        out.range.low, out.range.high = encode(low, width, what), encode(high, width, what)
    else:
        raise SwitchError(f"{what}: match kind {kind} is not supported")
    message.match.append(out)


def _decode_match(message: Any, match: Any) -> Value:
    kind = message.WhichOneof("field_match_type")

    def show(data: bytes) -> Value:
        return readable(decode(data), match.bitwidth, match.name)

    if kind == "exact":
        return show(message.exact.value)
    if kind == "optional":
        return show(message.optional.value)
    if kind == "lpm":
        return f"{show(message.lpm.value)}/{message.lpm.prefix_len}"
    if kind == "ternary":
        return f"{show(message.ternary.value)}&&&{decode(message.ternary.mask):#x}"
    return f"{show(message.range.low)}..{show(message.range.high)}"


def _encode_action(message: Any, table: Any, entry: TableEntry, p4info: P4Info) -> None:
    forms = [bool(entry.action), entry.member is not None, entry.group is not None, bool(entry.choices)]
    if sum(forms) != 1:
        raise SwitchError(f"{entry.key()}: " + ("no action given" if not any(forms) else "more than one action given"))
    action = message.action
    if entry.member is not None:
        action.action_profile_member_id = entry.member
    elif entry.group is not None:
        action.action_profile_group_id = entry.group
    elif entry.action:
        to_action(entry.action, entry.params, table, p4info, entry.key(), into=action.action)
    for choice in entry.choices:
        action.action_profile_action_set.action_profile_actions.add(
            action=to_action(choice.action, choice.params, table, p4info, entry.key()),
            weight=choice.weight,
            watch_port=port_bytes(choice.watch_port),
        )


def to_action(
    name: str, params: Mapping[str, Value], table: Any, p4info: P4Info, where: str, *, into: Any = None
) -> Any:
    """The `p4.v1.Action` of an action of a table; `where` is what errors begin with, `into` an empty one that takes it.

    Raises:
        SwitchError: the table does not take it, or a parameter is unknown, missing or does not fit.
    """
    info = p4info.find_action(table, name)
    known = {param.name: param for param in info.params}
    unknown = [given for given in params if given not in known]
    missing = [wanted for wanted in known if wanted not in params]
    if unknown or missing:
        raise SwitchError(
            f"{where}: action {name} takes ({', '.join(known)})"
            + (f"; unknown: {', '.join(unknown)}" if unknown else "")
            + (f"; missing: {', '.join(missing)}" if missing else "")
        )
    message = p4runtime_pb2.Action() if into is None else into
    message.action_id = info.preamble.id
    for wanted, param in known.items():
        value = encode(params[wanted], param.bitwidth, f"{where} {name}.{wanted}")
        message.params.add(param_id=param.id, value=value)
    return message
