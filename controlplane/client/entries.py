"""Table entries: readable values on our side, P4Runtime messages on the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from p4.config.v1 import p4info_pb2
from p4.v1 import p4runtime_pb2

from controlplane.client.errors import SwitchError
from controlplane.client.p4info import P4Info
from controlplane.client.values import Value, decode, encode, readable, to_int

_MatchType = p4info_pb2.MatchField


@dataclass(frozen=True, slots=True)
class TableEntry:
    """One entry of a match-action table.

    Attributes:
        table: name of the table (any unique suffix).
        match: key field name -> value. Exact and optional: ``7``; LPM: ``"10.0.0.0/8"``; ternary:
            ``"5&&&0xff"``; range: ``"1..5"``. Left out means "any" where the kind allows it.
        action: name of the action.
        params: action parameter name -> value.
        priority: for tables with ternary, range or optional keys; larger wins.
        is_default: the default action of the table, not an entry.
        packets: direct counter, packets; None if the table has none or it was not read.
        bytes: direct counter, bytes.
    """

    table: str
    match: Mapping[str, Value] = field(default_factory=dict)
    action: str = ""
    params: Mapping[str, Value] = field(default_factory=dict)
    priority: int = 0
    is_default: bool = False
    packets: int | None = None
    bytes: int | None = None

    def key(self) -> str:
        """Table and key in words, for messages."""
        if self.is_default:
            return f"{self.table}[default]"
        fields = " ".join(f"{name}={value}" for name, value in self.match.items())
        return f"{self.table}[{fields}]"


def to_message(entry: TableEntry, p4info: P4Info, *, with_action: bool = True) -> Any:
    """The `p4.v1.TableEntry` of an entry.

    Raises:
        SwitchError: a name that the program does not have, a missing key field or parameter, or a
            value that does not fit.
    """
    table = p4info.find("table", entry.table)
    message = p4runtime_pb2.TableEntry(
        table_id=table.preamble.id, priority=entry.priority, is_default_action=entry.is_default
    )
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
    action_message = message.action.action
    action, params = "", {}
    if action_message.action_id:
        info = p4info.by_id(action_message.action_id)
        action = p4info.action_name(table, info.preamble.name)
        by_id = {param.id: param for param in info.params}
        for value in action_message.params:
            param = by_id[value.param_id]
            params[param.name] = readable(decode(value.value), param.bitwidth, param.name)
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
    )


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
    if not entry.action:
        raise SwitchError(f"{entry.key()}: no action given")
    action = p4info.find_action(table, entry.action)
    known = {param.name: param for param in action.params}
    unknown = [name for name in entry.params if name not in known]
    missing = [name for name in known if name not in entry.params]
    if unknown or missing:
        raise SwitchError(
            f"{entry.key()}: action {entry.action} takes ({', '.join(known)})"
            + (f"; unknown: {', '.join(unknown)}" if unknown else "")
            + (f"; missing: {', '.join(missing)}" if missing else "")
        )
    message.action.action.action_id = action.preamble.id
    for name, param in known.items():
        what = f"{entry.key()} {entry.action}.{name}"
        value = encode(entry.params[name], param.bitwidth, what)
        message.action.action.params.add(param_id=param.id, value=value)
