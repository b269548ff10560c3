"""Priorities of the entries written in a table that the control plane may change."""

from __future__ import annotations

from dataclasses import replace

from catchment.softswitch.compiler import ir
from catchment.softswitch.compiler.diagnostics import Refusal
from catchment.softswitch.compiler.source import Location

_LARGEST = (1 << 31) - 1
_NO_PRIORITY = ("exact", "lpm")


def assign_priorities(
    entries: tuple[ir.Entry, ...], keys: tuple[ir.Key, ...], *, largest_wins: bool, delta: int, loc: Location
) -> tuple[ir.Entry, ...]:
    """The entries of a list that is not const, each with its priority where the table needs one.

    Where none is written, they fall in the order of the program. After a written one, each next entry differs by
    `delta`.
    """
    written = [e for e in entries if e.priority is not None]
    if all(k.kind in _NO_PRIORITY for k in keys):
        if written:
            raise Refusal(written[0].loc, "a priority in a table whose keys need none")
        return entries
    if not written:
        ordered = range(len(entries) - 1, -1, -1) if largest_wins else range(len(entries))
        priorities = {index: 1 + rank * delta for rank, index in enumerate(ordered)}
        return tuple(_with(e, priorities[i], loc) for i, e in enumerate(entries))
    result: list[ir.Entry] = []
    step = -delta if largest_wins else delta
    for entry in entries:
        if entry.priority is not None:
            result.append(_with(entry, entry.priority, loc))
        elif not result:
            raise Refusal(entry.loc, "the first entry must have a priority when others have one")
        else:
            result.append(_with(entry, (result[-1].priority or 0) + step, loc))
    return tuple(result)


def _with(entry: ir.Entry, priority: int, loc: Location) -> ir.Entry:
    if not 0 <= priority <= _LARGEST:
        raise Refusal(loc, f"priority {priority} of the entry at {entry.loc}: overflow")
    return replace(entry, priority=priority)


def refuse_duplicates(entries: tuple[ir.Entry, ...], keys: tuple[ir.Key, ...]) -> None:
    """Refuses two const entries of an exact table with the same keys."""
    if any(k.kind != "exact" for k in keys):
        return
    seen: set[tuple[object, ...]] = set()
    for entry in entries:
        key = tuple(_key_of(m.first) for m in entry.matches)
        if key in seen:
            raise Refusal(entry.loc, "duplicate entry keys")
        seen.add(key)


def _key_of(value: ir.Expr | None) -> object:
    if isinstance(value, ir.Literal):
        return value.value
    return value.ordinal if isinstance(value, ir.EnumValue) else id(value)
