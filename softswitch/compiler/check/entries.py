"""The entries written in a table: their priorities, and what of them the control plane could not hold."""

from __future__ import annotations

from dataclasses import replace

from catchment.softswitch.compiler import ir
from catchment.softswitch.compiler.diagnostics import Refusal, shown
from catchment.softswitch.compiler.types import bit_width

_LARGEST = (1 << 31) - 1
_NO_PRIORITY = ("exact", "lpm")


def assign_priorities(
    entries: tuple[ir.Entry, ...], keys: tuple[ir.Key, ...], *, largest_wins: bool, delta: int
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
        return tuple(_with(e, priorities[i], largest_wins=largest_wins) for i, e in enumerate(entries))
    result: list[ir.Entry] = []
    step = -delta if largest_wins else delta
    for entry in entries:
        if entry.priority is not None:
            result.append(_with(entry, entry.priority, largest_wins=largest_wins))
        elif not result:
            raise Refusal(entry.loc, "the first entry must have a priority when others have one")
        else:
            result.append(_with(entry, (result[-1].priority or 0) + step, largest_wins=largest_wins))
    return tuple(result)


def _with(entry: ir.Entry, priority: int, *, largest_wins: bool) -> ir.Entry:
    """The entry with a priority that the control plane can hold: there the largest wins, and the least is 1."""
    least, most = (1, _LARGEST) if largest_wins else (0, _LARGEST - 1)
    if not least <= priority <= most:
        raise Refusal(entry.loc, f"priority {shown(priority)}: the priorities of this table are {least} to {most}")
    return replace(entry, priority=priority)


def check_annotated(entries: tuple[ir.Entry, ...]) -> None:
    """Refuses `@priority(n)` of a const entry where n leaves no priority for the control plane."""
    for entry in entries:
        if _annotated(entry, 0) >= _LARGEST:
            raise Refusal(entry.loc, f"@priority({_annotated(entry, 0)}): the largest is {_LARGEST - 1}")


def _annotated(entry: ir.Entry, place: int) -> int:
    """What `@priority(n)` says; without it, the entry's place."""
    notes = (a for a in entry.annotations if a.name == "priority")
    return next((int(a.values[0]) for a in notes if a.values), place)


def refuse_duplicates(entries: tuple[ir.Entry, ...], keys: tuple[ir.Key, ...]) -> None:
    """Refuses two entries with the same keys, and with one priority where the table has any: a table holds one."""
    ranked = any(k.kind not in _NO_PRIORITY for k in keys)
    seen: dict[tuple[object, ...], ir.Entry] = {}
    for place, entry in enumerate(entries):
        rank = _annotated(entry, place + 1) if entry.priority is None else entry.priority
        wanted = (rank if ranked else 0, *(_wanted(m, k) for m, k in zip(entry.matches, keys, strict=True)))
        if seen.setdefault(wanted, entry) is not entry:
            raise Refusal(entry.loc, "duplicate entry keys", f"the entry at {seen[wanted].loc} has the same")


def _wanted(match: ir.Match, key: ir.Key) -> object:
    """What tells a match from the others of its key: a value and its mask, or the ends of a range."""
    width = bit_width(key.expr.type)
    ones = (1 << width) - 1 if width > 0 else -1
    if match.kind is ir.MatchValueKind.ANY or match.first is None:
        return (0, ones if key.kind == "range" else 0)
    first = _bits(match.first, ones)
    if first is None:
        return id(match)
    if match.kind is ir.MatchValueKind.EXACT:
        return (first, first if key.kind == "range" else ones)
    second = _bits(match.second, ones)
    if second is None:
        return id(match)
    return (first, second) if match.kind is ir.MatchValueKind.RANGE else (first & second, second)


def _bits(value: ir.Expr | None, ones: int) -> int | None:
    """A constant's bits; None of what is known only when the unit is instantiated."""
    if isinstance(value, ir.Literal) and not isinstance(value.value, str):
        return int(value.value) & ones
    if isinstance(value, ir.Cast):
        return _bits(value.operand, ones)
    return value.ordinal if isinstance(value, ir.EnumValue) else None


def without_empty(entries: tuple[ir.Entry, ...]) -> tuple[ir.Entry, ...]:
    """The entries that can match: an empty range is a set of nothing, which no control plane can write."""
    return tuple(e for e in entries if not any(_is_empty(m) for m in e.matches))


def _is_empty(match: ir.Match) -> bool:
    low, high = match.first, match.second
    if match.kind is not ir.MatchValueKind.RANGE or not isinstance(low, ir.Literal) or not isinstance(high, ir.Literal):
        return False
    return int(low.value) > int(high.value)
