"""Externs of a user's own: calls into the C++ that the user brings (docs/howto/user-externs.md)."""

from __future__ import annotations

from collections.abc import Iterator

from catchment.softswitch.compiler import ir
from catchment.softswitch.compiler.backend.errors import unsupported
from catchment.softswitch.compiler.backend.expression_writer import ExpressionWriter
from catchment.softswitch.compiler.backend.layout import Types
from catchment.softswitch.compiler.backend.scope import instance_name, variable_name
from catchment.softswitch.compiler.backend.text import bits_literal, string_literal
from catchment.softswitch.compiler.types import (
    BitType,
    BoolType,
    EnumType,
    ErrorType,
    IntType,
    SerEnumType,
    StringType,
    VoidType,
)

NAMESPACE = "::catchment::externs"
OBJECTS = ("register", "counter", "meter", "direct_counter", "direct_meter", "action_profile", "action_selector")
"""v1model's that hold something. All other objects are the user's."""
_NOT_TAKEN = ("Checksum16", "clone3", "resubmit", "recirculate")
"""v1model's that this target does not take."""
_SCALARS = (BitType, IntType, BoolType, EnumType, SerEnumType, ErrorType)


def is_users(name: str) -> bool:
    """Whether an extern function or object without a handler here may be the user's."""
    return name not in _NOT_TAKEN


def refuse_without_file(program: ir.Program) -> None:
    """Refuses a program with extern objects of its own, for which no C++ was given."""
    for decl in _objects(program):
        if decl.type is not None and decl.type.name not in OBJECTS and is_users(decl.type.name):
            raise unsupported(decl.loc, missing(decl.type.name))


def missing(name: str) -> str:
    """What is not supported where the file with the user's externs is not given."""
    return f"extern {name}, without a file that implements it (--externs FILE.hpp, docs/howto/user-externs.md)"


def _objects(program: ir.Program) -> Iterator[ir.InstanceDecl]:
    yield from (extern.decl for extern in program.global_externs.values())
    for unit in program.units:
        yield from (decl for decl in unit.instances if decl.unit is None and not decl.alias)


def stored_type(name: str) -> str:
    """What an instance holds of a user's object."""
    return f"std::shared_ptr<{NAMESPACE}::{name}>"


def construction(types: Types, decl: ir.InstanceDecl) -> str:
    """A new object of the user's class."""
    assert decl.type is not None, "an extern object has an extern type"
    arguments = ", ".join(_constant(types, argument) for argument in decl.args)
    return f"std::make_shared<{NAMESPACE}::{decl.type.name}>({arguments})"


def _constant(types: Types, value: ir.Expr) -> str:
    if isinstance(value, ir.EnumValue):
        return bits_literal(value.ordinal, types.width(value.type))
    if not isinstance(value, ir.Literal):
        raise unsupported(value.loc, "a constructor argument that is no number, bool, string or enum")
    if isinstance(value.value, bool):
        return "true" if value.value else "false"
    if isinstance(value.value, str):
        return string_literal(value.value)
    return bits_literal(value.value, types.width(value.type))


def _refuse_other_types(call: ir.ExternCall) -> None:
    for t in (*(param.type for param in call.params), call.type):
        if not isinstance(t, (*_SCALARS, StringType, VoidType)):
            raise unsupported(call.loc, f"extern {call.method} with a value of type {t}")


def call(ex: ExpressionWriter, expr: ir.ExternCall) -> str:
    """Writes the call: arguments in from left to right, then the results out. Returns its value, empty for void."""
    _refuse_other_types(expr)
    texts: list[str] = []
    outs: list[tuple[ir.Expr, str]] = []
    for param, argument in zip(expr.params, expr.args, strict=True):
        texts.append(_argument(ex, param, argument, outs))
    out = ex.scope.out
    text = f"{_callee(expr)}({', '.join(texts)})"
    result = ""
    if isinstance(expr.type, VoidType):
        out.line(f"{text};")
    else:
        result = ex.keep(expr.type, text, expr)
    for target, value in outs:
        ex.assign(target, value)
    return result


def _argument(ex: ExpressionWriter, param: ir.Param, argument: ir.Expr, outs: list[tuple[ir.Expr, str]]) -> str:
    if isinstance(argument, ir.Literal) and isinstance(argument.value, str):
        return string_literal(argument.value)
    if param.direction not in (ir.Direction.OUT, ir.Direction.INOUT):
        return ex.keep(argument.type, ex.value(argument), argument)
    target = ex.freeze(argument)
    name = ex.scope.temporary()
    initial = f" = {ex.value(target)}" if param.direction is ir.Direction.INOUT else "{}"
    ex.scope.out.line(f"{ex.cpp(param.type, param)} {name}{initial};")
    outs.append((target, name))
    return name


def _callee(expr: ir.ExternCall) -> str:
    if expr.target is None:
        return f"{NAMESPACE}::{expr.method}"
    owner = instance_name(expr.target) if isinstance(expr.target, ir.InstanceDecl) else variable_name(expr.target)
    return f"{owner}->{expr.method}"
