"""What the caller of a small unit says of the register cells that the unit reads, for loops over units (reroll.py)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from catchment.softswitch.compiler import ir
from catchment.softswitch.compiler.backend.layout import Types
from catchment.softswitch.compiler.types import BitType

_WORD = 64


@dataclass(frozen=True, slots=True)
class Given:
    """A number of up to a word that the caller gives: a parameter, or a member of one."""

    parameter: int
    variable: ir.VarRef
    member: str
    """C++ code, with its dot; empty: the parameter itself."""

    def text(self, arguments: Sequence[str]) -> str:
        """The same as C++, for a call with `arguments`."""
        return f"{arguments[self.parameter]}{self.member}"


def mask_of_held(types: Types, unit: ir.ControlUnit) -> Given | None:
    """What stands in `array.read(held, index); held = held & MASK;`, where the caller gives it."""
    for read, mask in itertools.pairwise(unit.body.body):
        call = _read(read)
        if call is None or not isinstance(mask, ir.Assign) or not isinstance(mask.value, ir.Binary):
            continue
        held, value = call.args[0], mask.value
        if value.op == "&" and _is_variable(mask.target, held) and _is_variable(value.left, held):
            return _given(types, unit, value.right)
    return None


def _is_variable(expr: ir.Expr, other: ir.Expr) -> bool:
    return isinstance(expr, ir.VarRef) and isinstance(other, ir.VarRef) and expr.variable is other.variable


def reads(types: Types, unit: ir.ControlUnit) -> Iterator[tuple[ir.InstanceDecl, Given]]:
    """The unit's own arrays that it reads always, with the indices, where the caller gives them."""
    for statement in unit.body.body:
        call = _read(statement)
        if call is not None and isinstance(call.target, ir.InstanceDecl) and call.target in unit.instances:
            index = _given(types, unit, call.args[1])
            if index is not None:
                yield call.target, index


def _read(statement: ir.Stmt) -> ir.ExternCall | None:
    call = statement.expr if isinstance(statement, ir.Evaluate) else None
    return call if isinstance(call, ir.ExternCall) and (call.extern, call.method) == ("register", "read") else None


def _given(types: Types, unit: ir.ControlUnit, expr: ir.Expr) -> Given | None:
    place = expr.base if isinstance(expr, ir.FieldRef) else expr
    if not isinstance(place, ir.VarRef) or not isinstance(expr.type, BitType) or expr.type.width > _WORD:
        return None
    member = f".{types.member(place.type, expr.name)}" if isinstance(expr, ir.FieldRef) else ""
    for at, param in enumerate(unit.params):
        if param is place.variable and param.direction is ir.Direction.IN:
            return Given(at, place, member)
    return None
