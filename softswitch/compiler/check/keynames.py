"""The control-plane name of a table key that has no @name: the expression as written, in canonical form."""

from __future__ import annotations

from catchment.softswitch.compiler import ir
from catchment.softswitch.compiler.check.context import annotation_name
from catchment.softswitch.compiler.diagnostics import LONGEST_SHOWN
from catchment.softswitch.compiler.types import FieldsType

_PREFIXES = {2: "0b", 8: "0o", 10: "", 16: "0x"}
_FORMATS = {2: "b", 8: "o", 10: "d", 16: "x"}


def key_name(expr: ir.Expr) -> str | None:
    """`hdr.ipv4.dst`, `h.$valid$`, `x[7:0]`, `a & 0xf`; None for an expression that must be named by hand."""
    if isinstance(expr, ir.VarRef):
        return expr.variable.name
    if isinstance(expr, ir.Cast):
        return None
    if isinstance(expr, ir.FieldRef):
        return _field_name(expr)
    if isinstance(expr, ir.IsValid):
        return _suffixed(expr.header, ".$valid$")
    if isinstance(expr, ir.Slice):
        return _suffixed(expr.base, f"[{expr.hi}:{expr.lo}]")
    if isinstance(expr, ir.Index):
        index = key_name(expr.index)
        return None if index is None else _suffixed(expr.base, f"[{index}]")
    if isinstance(expr, ir.Literal) and not isinstance(expr.value, str):
        if isinstance(expr.value, bool) or (expr.base == 10 and int(expr.value).bit_length() > LONGEST_SHOWN):
            return None
        return f"{_PREFIXES[expr.base]}{int(expr.value):{_FORMATS[expr.base]}}"
    if isinstance(expr, ir.StackNext | ir.StackLast):
        return _suffixed(expr.stack, ".next" if isinstance(expr, ir.StackNext) else ".last")
    if isinstance(expr, ir.Binary) and expr.op == "&":
        left, right = key_name(expr.left), key_name(expr.right)
        return None if left is None or right is None else f"{left} & {right}"
    return None


def _suffixed(base: ir.Expr, suffix: str) -> str | None:
    name = key_name(base)
    return None if name is None else name + suffix


def _field_name(expr: ir.FieldRef) -> str | None:
    name = expr.name
    if isinstance(expr.base.type, FieldsType):
        field = expr.base.type.field(expr.name)
        if field is not None:
            name = annotation_name(field.annotations, name)
    return name[1:] if name.startswith(".") else _suffixed(expr.base, f".{name}")
