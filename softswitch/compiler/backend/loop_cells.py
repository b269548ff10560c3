"""What the caller of a small unit says of the register cells that the unit reads and writes, for loops over units
(reroll.py)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from catchment.softswitch.compiler import ir
from catchment.softswitch.compiler.backend.effects import nodes
from catchment.softswitch.compiler.backend.layout import Types
from catchment.softswitch.compiler.types import BitType

_WORD = 64


@dataclass(frozen=True, slots=True)
class Given:
    """A number of up to a word that the caller gives: a parameter, or a member of one."""

    parameter: int
    member: str
    """C++ code, with its dot; empty: the parameter itself."""
    width: int

    def text(self, arguments: Sequence[str]) -> str:
        """The same as C++, for a call with `arguments`."""
        return f"{arguments[self.parameter]}{self.member}"


@dataclass(frozen=True, slots=True)
class Written:
    """A cell that a unit writes last, and always: what it holds then is what the parameter is."""

    parameter: int
    array: ir.InstanceDecl
    index: Given


def given(types: Types, unit: ir.ControlUnit, expr: ir.Expr) -> Given | None:
    """What `expr` is, if the caller gives it."""
    place = expr.base if isinstance(expr, ir.FieldRef) else expr
    if not isinstance(place, ir.VarRef) or not isinstance(expr.type, BitType) or expr.type.width > _WORD:
        return None
    member = f".{types.member(place.type, expr.name)}" if isinstance(expr, ir.FieldRef) else ""
    for at, param in enumerate(unit.params):
        if param is place.variable and param.direction is ir.Direction.IN:
            return Given(at, member, expr.type.width)
    return None


def reads(types: Types, unit: ir.ControlUnit) -> Iterator[tuple[ir.InstanceDecl, Given]]:
    """The unit's own arrays that it reads always, with the indices, where the caller gives them."""
    for statement in unit.body.body:
        call = register_call(statement, "read")
        if call is not None and isinstance(call.target, ir.InstanceDecl) and call.target in unit.instances:
            index = given(types, unit, call.args[1])
            if index is not None:
                yield call.target, index


def written(types: Types, unit: ir.ControlUnit) -> Written | None:
    """The cell of an array of its own that gets a parameter's last value, where the caller gives its index."""
    call = register_call(unit.body.body[-1], "write") if unit.body.body else None
    if call is None or not isinstance(call.target, ir.InstanceDecl) or call.target not in unit.instances:
        return None
    if any(isinstance(node, ir.Return | ir.Exit) for node in nodes(unit.body)):
        return None
    index, value = given(types, unit, call.args[0]), call.args[1]
    for at, param in enumerate(unit.params):
        if index is not None and isinstance(value, ir.VarRef) and value.variable is param:
            return Written(at, call.target, index)
    return None


def register_call(statement: ir.Stmt, method: str) -> ir.ExternCall | None:
    """The call of a register that a statement is."""
    call = statement.expr if isinstance(statement, ir.Evaluate) else None
    return call if isinstance(call, ir.ExternCall) and (call.extern, call.method) == ("register", method) else None
