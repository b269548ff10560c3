"""Masks that the caller of a small unit gives, for loops over units (reroll.py): mostly they let all bits through."""

from __future__ import annotations

import itertools

from catchment.softswitch.compiler import ir
from catchment.softswitch.compiler.backend.effects import nodes
from catchment.softswitch.compiler.backend.layout import Types
from catchment.softswitch.compiler.backend.loop_cells import Given, given, register_call

ZERO = "0"


def ones(mask: Given) -> str:
    """The mask that lets all bits through, as C++."""
    return f"inv<{mask.width}>({ZERO})"


def mask_of_held(types: Types, unit: ir.ControlUnit) -> Given | None:
    """What stands in `array.read(held, index); held = held & MASK;`, where the caller gives it."""
    for read, mask in itertools.pairwise(unit.body.body):
        call = register_call(read, "read")
        if call is None or not isinstance(mask, ir.Assign) or not isinstance(mask.value, ir.Binary):
            continue
        held, value = call.args[0], mask.value
        if value.op == "&" and _is_variable(mask.target, held) and _is_variable(value.left, held):
            return given(types, unit, value.right)
    return None


def masks(types: Types, unit: ir.ControlUnit) -> dict[Given, str]:
    """All masks that the caller gives, with the value that changes nothing, as C++: zero for one that is inverted."""
    found: dict[Given, str] = {}
    for node in nodes(unit.body):
        for side in (node.left, node.right) if isinstance(node, ir.Binary) and node.op == "&" else ():
            inverted = isinstance(side, ir.Unary) and side.op == "~"
            mask = given(types, unit, side.operand if isinstance(side, ir.Unary) and inverted else side)
            if mask is not None and found.get(mask) != ZERO:
                found[mask] = ZERO if inverted else ones(mask)
    return found


def _is_variable(expr: ir.Expr, other: ir.Expr) -> bool:
    return isinstance(expr, ir.VarRef) and isinstance(other, ir.VarRef) and expr.variable is other.variable
