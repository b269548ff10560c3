"""Counters, meters, registers and action profiles in P4Info."""

from __future__ import annotations

from typing import Any

from catchment.softswitch.compiler import ir
from catchment.softswitch.compiler.p4info.annotate import set_preamble
from catchment.softswitch.compiler.p4info.symbols import IdKind, SymbolTable
from catchment.softswitch.compiler.p4info.typespec import TypeTable, newtype_of
from catchment.softswitch.compiler.types import Type

_KINDS = {
    "counter": IdKind.COUNTER,
    "direct_counter": IdKind.DIRECT_COUNTER,
    "meter": IdKind.METER,
    "direct_meter": IdKind.DIRECT_METER,
    "register": IdKind.REGISTER,
    "action_profile": IdKind.ACTION_PROFILE,
    "action_selector": IdKind.ACTION_PROFILE,
}
_UNITS = {"packets": "PACKETS", "bytes": "BYTES", "packets_and_bytes": "BOTH"}
_PROFILE_ANNOTATIONS = frozenset(("max_group_size", "selector_size_semantics", "max_member_weight"))


def extern_kind(extern: ir.ExternInstance) -> IdKind | None:
    """The kind of id an extern instance has; None for one that the control plane does not see."""
    return _KINDS.get(extern.decl.type.name) if extern.decl.type is not None else None


def add_extern(
    info: Any, symbols: SymbolTable, types: TypeTable, extern: ir.Instance | ir.ExternInstance, table_id: int = 0
) -> None:
    """Adds one extern instance. Direct resources wait for their table, which gives `table_id`."""
    assert isinstance(extern, ir.ExternInstance), "only extern instances are added"
    kind = extern_kind(extern)
    if kind is None or (kind in (IdKind.DIRECT_COUNTER, IdKind.DIRECT_METER) and not table_id):
        return
    lists = {
        IdKind.COUNTER: info.counters,
        IdKind.DIRECT_COUNTER: info.direct_counters,
        IdKind.METER: info.meters,
        IdKind.DIRECT_METER: info.direct_meters,
        IdKind.REGISTER: info.registers,
        IdKind.ACTION_PROFILE: info.action_profiles,
    }
    message = lists[kind].add()
    name = extern.full_name
    notes = extern.decl.annotations
    skip = _PROFILE_ANNOTATIONS if kind is IdKind.ACTION_PROFILE else frozenset[str]()
    set_preamble(
        message.preamble, id_=symbols.id(kind, name), name=name, alias=symbols.alias(name), annotations=notes, skip=skip
    )
    assert extern.decl.type is not None, "externs have an extern type"
    type_args, args = extern.decl.type.type_args, extern.decl.args
    if kind in (IdKind.DIRECT_COUNTER, IdKind.DIRECT_METER):
        message.direct_table_id = table_id
        message.spec.unit = message.spec.Unit.Value(_unit(args[0]))
    elif kind in (IdKind.COUNTER, IdKind.METER):
        message.size = _size(args[0])
        message.spec.unit = message.spec.Unit.Value(_unit(args[1]))
        _index_type(message, types, type_args[:1])
    elif kind is IdKind.REGISTER:
        message.size = _size(args[0])
        message.type_spec.CopyFrom(types.spec(type_args[0]))
        _index_type(message, types, type_args[1:2])
    else:
        _profile(message, extern)


def _index_type(message: Any, types: TypeTable, args: tuple[Type, ...]) -> None:
    for type_ in args:
        types.spec(type_)
        newtype = newtype_of(type_)
        if newtype is not None:
            message.index_type_name.name = newtype.name


def _profile(message: Any, extern: ir.ExternInstance) -> None:
    decl = extern.decl
    assert decl.type is not None, "externs have an extern type"
    message.with_selector = decl.type.name == "action_selector"
    message.size = _size(decl.args[1] if message.with_selector else decl.args[0])
    if not message.with_selector:
        return
    values = {a.name: a.values[0] for a in decl.annotations if a.values}
    if "max_group_size" in values:
        message.max_group_size = int(values["max_group_size"])
    semantics = str(values.get("selector_size_semantics", "")).lower()
    if semantics == "sum_of_weights":
        message.sum_of_weights.SetInParent()
    elif semantics == "sum_of_members":
        message.sum_of_members.SetInParent()
        if "max_member_weight" in values:
            message.sum_of_members.max_member_weight = int(values["max_member_weight"])


def add_profile_tables(info: Any, profile_id: int, table_id: int) -> None:
    """Notes that a table uses an action profile."""
    for profile in info.action_profiles:
        if profile.preamble.id == profile_id and table_id not in profile.table_ids:
            profile.table_ids.append(table_id)


def sort_profile_tables(info: Any) -> None:
    """A profile's tables are listed by name."""
    names = {table.preamble.id: table.preamble.name.encode() for table in info.tables}
    for profile in info.action_profiles:
        ordered = sorted(profile.table_ids, key=lambda number: names[number])
        del profile.table_ids[:]
        profile.table_ids.extend(ordered)


def _size(value: ir.Expr) -> int:
    assert isinstance(value, ir.Literal), "constructor arguments are known"
    return int(value.value)


def _unit(value: ir.Expr) -> str:
    assert isinstance(value, ir.EnumValue), "the unit is a member of an enum"
    return _UNITS[value.member]
