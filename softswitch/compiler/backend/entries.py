"""The entries that a program brings with it."""

from __future__ import annotations

from catchment.softswitch.compiler import ir
from catchment.softswitch.compiler.backend import tables
from catchment.softswitch.compiler.backend.errors import unsupported
from catchment.softswitch.compiler.backend.ids import Ids
from catchment.softswitch.compiler.backend.layout import Types
from catchment.softswitch.compiler.backend.objects import Objects, TableObject, action_full_name
from catchment.softswitch.compiler.backend.text import Writer

HIGHEST_PRIORITY = 0x7FFFFFFF


def _number(expr: ir.Expr, width: int) -> int:
    if isinstance(expr, ir.Literal) and not isinstance(expr.value, str):
        return int(expr.value) & ((1 << width) - 1)
    if isinstance(expr, ir.EnumValue):
        return expr.ordinal
    if isinstance(expr, ir.Cast):
        return _number(expr.operand, width)
    raise unsupported(expr.loc, "an entry's value that is not a constant")


def _bytes(value: int) -> str:
    data = value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big")
    text = "".join(f"\\{byte:03o}" for byte in data)
    return f'std::string("{text}", {len(data)})'


def _field(types: Types, key: ir.Key, number: int, match: ir.Match) -> str | None:
    """A C++ FieldMatch; None for a field that does not care."""
    width = types.width(key.expr.type)
    ones = (1 << width) - 1
    kind = match.kind
    if kind is ir.MatchValueKind.VALUE_SET:
        raise unsupported(match.loc, "a value set in an entry")
    if kind is ir.MatchValueKind.ANY and key.kind != "exact":
        return None
    if match.first is None:
        raise unsupported(match.loc, "an exact key that does not care")
    first = _number(match.first, width)
    second = _number(match.second, width) if match.second is not None else ones
    mask, prefix = "std::string()", 0
    if kind is ir.MatchValueKind.EXACT and key.kind == "range":
        mask = _bytes(first)
    elif key.kind == "range":
        if first > second:  # of signed numbers: to the control plane, none is below zero
            raise unsupported(match.loc, "a range from below zero to above in an entry")
        mask = _bytes(second)
    elif key.kind == "ternary":
        if kind is ir.MatchValueKind.RANGE:
            raise unsupported(match.loc, "a range for a ternary key")
        if second == 0:
            return None
        first, mask = first & second, _bytes(second)
    elif key.kind == "lpm":
        prefix = bin(second).count("1")
        if prefix == 0:
            return None
        first &= second
    return f"{{{number}U, MatchKind::{key.kind}, {_bytes(first)}, {mask}, {prefix}U}}"


def _action(types: Types, ids: Ids, objects: Objects, t: TableObject, value: ir.ActionValue) -> str:
    action = value.choice.action
    name = action_full_name(t.owner, action)
    data = action.data
    params = ", ".join(
        f"{{{number}U, {_bytes(_number(arg, types.width(p.type)))}}}"
        for number, p, arg in zip(ids.parts("actions", name, "params", len(data)), data, value.data, strict=True)
    )
    return f"ActionCall{{{objects.action_ids[name]}U, {{{params}}}}}"


def _annotated(entry: ir.Entry, place: int) -> int:
    """`@priority(n)`, which BMv2 knows: the smallest number wins; without it the entry's place from 1."""
    for annotation in entry.annotations:
        if annotation.name == "priority":
            return int(annotation.values[0] if annotation.values else annotation.text)
    return place


def initial_entries(types: Types, ids: Ids, objects: Objects, t: TableObject, out: Writer) -> None:
    """Statements that append the default action and the entries of one table to `entries`."""
    table = t.table
    with out.block():
        out.line("TableEntry entry;")
        out.line(f"entry.table_id = {t.id}U;")
        out.line("entry.is_default = true;")
        out.line(f"entry.action = {_action(types, ids, objects, t, table.default_action)};")
        out.line("entries.push_back(std::move(entry));")
    keys = tables.match_keys(table)
    numbers = ids.parts("tables", t.name, "match_fields", len(keys))
    numbers_written = [_annotated(entry, i + 1) for i, entry in enumerate(table.entries)]
    needs_priority = any(k.kind in ("ternary", "range", "optional") for k in keys)
    for i, entry in enumerate(table.entries):
        with out.block():
            out.line("TableEntry entry;")
            out.line(f"entry.table_id = {t.id}U;")
            for key, number, match in zip(keys, numbers, entry.matches, strict=True):
                text = _field(types, key, number, match)
                if text is not None:
                    out.line(f"entry.match.push_back({text});")
            if needs_priority:
                priority = max(numbers_written) + 1 - numbers_written[i]
                if entry.priority is not None:
                    wins = table.largest_priority_wins
                    priority = entry.priority if wins else HIGHEST_PRIORITY - entry.priority
                out.line(f"entry.priority = {priority};")
            if entry.is_const:
                out.line("entry.is_const = true;")
            out.line(f"entry.action = {_action(types, ids, objects, t, entry.action)};")
            out.line("entries.push_back(std::move(entry));")
