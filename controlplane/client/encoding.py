"""Table entries as serialized P4Runtime messages, made quickly: entries of one shape share all but their values.

A shape is a table, the names of the key fields and parameters that an entry gives, and its action. The first entry of
a shape is checked name by name, and leaves the serialized message in pieces, cut where a value stands. The others put
their values between the pieces. Serialized messages that follow each other are one: protobuf merges them, nested ones
too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import getitem, itemgetter
from typing import TYPE_CHECKING, Any

from catchment.controlplane.client.errors import SwitchError
from catchment.controlplane.client.key_fields import Adder, MatchType, adder, field_name
from catchment.controlplane.client.p4info import P4Info
from catchment.controlplane.client.values import Encoder, Value, decode, encode, encoder
from catchment.wire.generated import p4runtime_pb2

if TYPE_CHECKING:
    from catchment.controlplane.client.entries import TableEntry

_REMEMBERED = 1024  # values of one key field or parameter
_Picker = Callable[[Mapping[str, Value]], tuple[Value, ...]]


class _Place(dict[Value, bytes]):
    """The place of a value in an encoded entry: value -> the key field or parameter, serialized.

    It remembers some values: most parameters have few.

    Args:
        name: what the entry calls the key field or parameter.
        encode: makes the value's byte string.
        heads: what precedes a byte string of each length in a serialized `p4.v1.TableEntry`.
    """

    __slots__ = ("encode", "heads", "name")

    def __init__(self, name: str, encode: Encoder, heads: tuple[bytes, ...]) -> None:
        super().__init__()
        self.name, self.encode, self.heads = name, encode, heads

    def __missing__(self, value: Value) -> bytes:
        encoded = self.encode(value)
        made = self.heads[len(encoded)] + encoded
        if len(self) < _REMEMBERED:
            self[value] = made
        return made


@dataclass(frozen=True, slots=True)
class _Shape:
    """What entries of one shape have in common.

    Attributes:
        start: serialized, everything but values.
        exact: the exact key fields.
        exact_values: their values in an entry's match, in this order.
        others: the other key fields: name, and what adds the field unless the value stands for any.
        params: the action's parameters.
        param_values: their values in an entry's parameters, in this order.
    """

    start: bytes
    exact: tuple[_Place, ...]
    exact_values: _Picker
    others: tuple[tuple[str, Adder], ...]
    params: tuple[_Place, ...]
    param_values: _Picker


def _picker(places: Sequence[_Place]) -> _Picker:
    match [place.name for place in places]:
        case []:
            return lambda _: ()
        case [name]:
            return lambda values: (values[name],)
        case names:
            return itemgetter(*names)


def fill_entry(entry: TableEntry, out: Any, p4info: P4Info, *, with_action: bool) -> None:
    """Fill an empty `p4.v1.TableEntry`; errors as `serialized_entry`."""
    out.MergeFromString(serialized_entry(entry, p4info, with_action=with_action))


def serialized_entry(entry: TableEntry, p4info: P4Info, *, with_action: bool) -> bytes:
    """The `p4.v1.TableEntry` of an entry, serialized.

    Raises:
        SwitchError: a name that the program does not have, a missing key field or parameter, or a value that does not
            fit.
    """
    match = entry.match
    name: tuple[Any, ...] = (entry.table, entry.is_default, *match)
    if with_action:
        name += (None, entry.action, *entry.params)
    shape: _Shape | None = p4info.shapes.get(name)
    if shape is None:
        shape = p4info.shapes[name] = _shape(entry, p4info, with_action=with_action)
    exact = b"".join(map(getitem, shape.exact, shape.exact_values(match)))
    try:
        params = b"".join(map(getitem, shape.params, shape.param_values(entry.params)))
    except SwitchError as error:
        raise SwitchError(f"{entry.key()} {error}") from None
    made = shape.start + exact + params
    if shape.others or entry.priority or (with_action and _is_unusual(entry)):
        return made + _rest(entry, shape, p4info, with_action=with_action)
    return made


def _is_unusual(entry: TableEntry) -> bool:
    """Whether an entry has more than a key and an action with parameters."""
    return bool(
        not entry.action
        or entry.member is not None
        or entry.group is not None
        or entry.choices
        or entry.meter is not None
        or entry.idle_timeout_ns
        or entry.metadata
    )


def _rest(entry: TableEntry, shape: _Shape, p4info: P4Info, *, with_action: bool) -> bytes:
    """What is in a serialized entry beside exact key fields, an action and its parameters."""
    out = p4runtime_pb2.TableEntry(priority=entry.priority)
    for key, add in shape.others:
        add(out.match, entry.match[key])
    if with_action:
        if not entry.action or entry.member is not None or entry.group is not None or entry.choices:
            _fill_indirect(entry, out.action, p4info)
        if entry.meter is not None:
            out.meter_config.CopyFrom(p4runtime_pb2.MeterConfig(**entry.meter))
        out.idle_timeout_ns, out.metadata = entry.idle_timeout_ns, entry.metadata
    return bytes(out.SerializeToString())


def _shape(entry: TableEntry, p4info: P4Info, *, with_action: bool) -> _Shape:
    table = p4info.find("table", entry.table)
    start = p4runtime_pb2.TableEntry(table_id=table.preamble.id, is_default_action=entry.is_default)
    known = {key.name: key for key in table.match_fields}
    given = {field_name(name, known, f"table {entry.table}"): name for name in entry.match}
    exact: list[_Place] = []
    others: list[tuple[str, Adder]] = []
    # The values are tried at once: what is wrong with them is said before what is wrong with the action.
    for full, key in known.items() if not entry.is_default else ():
        name, what = given.get(full), f"{entry.table}.{full}"
        if key.match_type != MatchType.EXACT:
            if name is not None:
                others.append((name, adder(key, what)))
                others[-1][1](p4runtime_pb2.TableEntry().match, entry.match[name])
        elif name is None or entry.match[name] == "*":
            raise SwitchError(f"{what}: an exact key field needs a value")
        else:
            exact.append(_key_place(name, key, what))
            exact[-1].encode(entry.match[name])
    params: list[_Place] = []
    if with_action and entry.action:
        info = _checked(entry.action, entry.params, table, p4info, entry.key())
        start.action.action.action_id = info.preamble.id
        params = [_param_place(param, f"{entry.action}.{param.name}") for param in info.params]
    return _Shape(
        start.SerializeToString(), tuple(exact), _picker(exact), tuple(others), tuple(params), _picker(params)
    )


def _key_place(name: str, key: Any, what: str) -> _Place:
    def holding(value: bytes) -> Any:
        return p4runtime_pb2.TableEntry(match=[{"field_id": key.id, "exact": {"value": value}}])

    return _Place(name, encoder(key.bitwidth, what), _heads(holding, key.bitwidth))


def _param_place(param: Any, what: str) -> _Place:
    def holding(value: bytes) -> Any:
        return p4runtime_pb2.TableEntry(action={"action": {"params": [{"param_id": param.id, "value": value}]}})

    return _Place(param.name, encoder(param.bitwidth, what), _heads(holding, param.bitwidth))


def _heads(holding: Callable[[bytes], Any], bitwidth: int) -> tuple[bytes, ...]:
    """What `holding` serializes before byte strings of 0, 1, 2, ... bytes; the value is the last thing in it."""
    lengths = range(1, (bitwidth + 7) // 8 + 1)
    return b"", *(holding(bytes(length)).SerializeToString()[:-length] for length in lengths)


def _fill_indirect(entry: TableEntry, action: Any, p4info: P4Info) -> None:
    forms = [bool(entry.action), entry.member is not None, entry.group is not None, bool(entry.choices)]
    if entry.is_default and not any(forms):
        return  # gives the program's own default action back
    if sum(forms) != 1:
        raise SwitchError(f"{entry.key()}: " + ("no action given" if not any(forms) else "more than one action given"))
    if entry.member is not None:
        action.action_profile_member_id = entry.member
    elif entry.group is not None:
        action.action_profile_group_id = entry.group
    table = p4info.find("table", entry.table)
    for choice in entry.choices:
        one = action.action_profile_action_set.action_profile_actions.add(
            weight=choice.weight, watch_port=port_bytes(choice.watch_port)
        )
        fill_action(choice.action, choice.params, table, p4info, entry.key(), into=one.action)


def port_bytes(port: int | None) -> bytes:
    """The byte string of a port to watch; empty for none."""
    return b"" if port is None else encode(port, 32, "port")


def port_of(watch_port: bytes) -> int | None:
    """The port number in a byte string; None when it is empty."""
    return decode(watch_port) if watch_port else None


def fill_action(name: str, params: Mapping[str, Value], table: Any, p4info: P4Info, where: str, *, into: Any) -> None:
    """Fill an empty `p4.v1.Action` with an action of a table; `where` is what errors begin with.

    Raises:
        SwitchError: the table does not take it, or a parameter is unknown, missing or does not fit.
    """
    info = _checked(name, params, table, p4info, where)
    into.action_id = info.preamble.id
    for param in info.params:
        value = encode(params[param.name], param.bitwidth, f"{where} {name}.{param.name}")
        into.params.add(param_id=param.id, value=value)


def _checked(name: str, params: Mapping[str, Value], table: Any, p4info: P4Info, where: str) -> Any:
    """The P4Info of an action of a table that takes these parameters."""
    info = p4info.find_action(table, name)
    known = [param.name for param in info.params]
    unknown = [given for given in params if given not in known]
    missing = [wanted for wanted in known if wanted not in params]
    if unknown or missing:
        raise SwitchError(
            f"{where}: action {name} takes ({', '.join(known)})"
            + (f"; unknown: {', '.join(unknown)}" if unknown else "")
            + (f"; missing: {', '.join(missing)}" if missing else "")
        )
    return info
