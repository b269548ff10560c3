"""Finds runs of equal sub-control applications that become one loop, which the C++ compiler vectorizes.

    lane0.apply(lanes.d0, slot); lane1.apply(lanes.d1, slot); ...

becomes one loop when the instances are of one unit whose only data are registers (which lie side by side, see
registers.py), and each argument is the same everywhere or walks along one run of header fields (layout.Run).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from catchment.softswitch.compiler import ir
from catchment.softswitch.compiler.backend.calls import Path, overlap, path
from catchment.softswitch.compiler.backend.effects import ExitAnalysis, has_effects
from catchment.softswitch.compiler.backend.layout import Types
from catchment.softswitch.compiler.types import HeaderType

SHORTEST = 4


@dataclass(frozen=True, slots=True)
class Walk:
    """An argument that is `array[first + k]` of a header in round k."""

    header: ir.Expr
    array: str
    first: int


def same(a: object, b: object) -> bool:
    """Whether two pieces of IR are the same but for their place in the source."""
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if not isinstance(a, ir.Expr) or type(a) is not type(b):
        return a is b or a == b
    return all(same(getattr(a, f.name), getattr(b, f.name)) for f in dataclasses.fields(a) if f.name != "loc")


def shiftable(unit: ir.ControlUnit | ir.ParserUnit | None) -> bool:
    """Whether an instance's data are registers alone."""
    if not isinstance(unit, ir.ControlUnit) or unit.tables or not unit.instances:
        return False
    return all(d.type is not None and d.type.name == "register" and not d.alias for d in unit.instances)


def _walk(types: Types, args: Sequence[ir.Expr]) -> Walk | None:
    first = args[0]
    if not isinstance(first, ir.FieldRef) or not isinstance(first.base.type, HeaderType):
        return None
    runs = types.runs(first.base.type)
    if first.name not in runs:
        return None
    run, start = runs[first.name]
    for k, arg in enumerate(args):
        if not isinstance(arg, ir.FieldRef) or not same(arg.base, first.base):
            return None
        if arg.name not in runs or runs[arg.name] != (run, start + k):
            return None
    return Walk(first.base, run.array, start)


def _has(declared: ir.InstanceDecl, unit: ir.ControlUnit | ir.ParserUnit) -> bool:
    """Whether an instance is of `unit`, or has one in it."""
    inside = declared.unit.instances if declared.unit is not None else ()
    return declared.unit is unit or any(_has(child, unit) for child in inside)


def _in_order(owner: ir.ControlUnit, unit: ir.ControlUnit | ir.ParserUnit, calls: Sequence[ir.UnitApply]) -> bool:
    """Whether the instances were declared one after the other, with none of their unit in others between them."""
    places = {id(d): i for i, d in enumerate(d for d in owner.instances if _has(d, unit))}
    first = places.get(id(calls[0].instance))
    return first is not None and all(places.get(id(c.instance)) == first + k for k, c in enumerate(calls))


def _reads(expr: object, place: Path) -> bool:
    """Whether evaluating `expr` may look at what lies at `place`."""
    if isinstance(expr, tuple):
        return any(_reads(item, place) for item in expr)
    if not isinstance(expr, ir.Expr):
        return False
    own = path(expr)
    if own is not None:
        return overlap(own, place)
    return any(_reads(getattr(expr, f.name), place) for f in dataclasses.fields(expr))


def _arguments(types: Types, calls: Sequence[ir.UnitApply]) -> list[Walk | ir.Expr] | None:
    """Give for each parameter the walk or the common expression; None when the calls do not fit together."""
    unit = calls[0].instance.unit
    assert unit is not None
    out: list[Walk | ir.Expr] = []
    for i, param in enumerate(unit.params):
        args = [c.args[i] for c in calls]
        walk = _walk(types, args)
        if walk is not None:
            out.append(walk)
        elif param.direction is ir.Direction.IN and all(same(a, args[0]) for a in args) and not has_effects(args[0]):
            out.append(args[0])
        else:
            return None
    walked = [a for a in out if isinstance(a, Walk)]
    common = [a for a in out if not isinstance(a, Walk)]
    places = [path(walk.header) for walk in walked]
    if any(place is None or _reads(argument, place) for argument in common for place in places):
        return None  # a later round would have to see what an earlier one wrote
    if len({(str(w.array), w.first) for w in walked}) != len(walked):
        return None  # two parameters on the same fields
    return out


def find(types: Types, exits: ExitAnalysis, owner: object, body: Sequence[ir.Stmt]) -> tuple[int, list[Walk | ir.Expr]]:
    """How many statements at the beginning of `body` make one loop (0: none), and its arguments."""
    first = body[0]
    if not isinstance(owner, ir.ControlUnit) or not isinstance(first, ir.UnitApply):
        return 0, []
    unit = first.instance.unit
    if not shiftable(unit) or unit is None or exits.unit(unit):
        return 0, []
    calls: list[ir.UnitApply] = []
    for stmt in body:
        if not isinstance(stmt, ir.UnitApply) or stmt.instance.unit is not unit:
            break
        calls.append(stmt)
    while len(calls) >= SHORTEST:
        arguments = _arguments(types, calls) if _in_order(owner, unit, calls) else None
        if arguments is not None:
            return len(calls), arguments
        calls.pop()
    return 0, []
