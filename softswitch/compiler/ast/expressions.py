"""Annotations, types and expressions as written."""

from __future__ import annotations

from dataclasses import dataclass

from catchment.softswitch.compiler.lexer import NumberValue, Token
from catchment.softswitch.compiler.source import Location


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """Anything written at a place."""

    loc: Location


@dataclass(frozen=True, slots=True, eq=False)
class Annotation(Node):
    """`@name(tokens)` or `@name[structured]`."""

    name: str
    tokens: tuple[Token, ...]
    values: tuple[Expr, ...] = ()
    pairs: tuple[tuple[str, Expr], ...] = ()
    structured: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class TypeExpr(Node):
    """A type as written."""


@dataclass(frozen=True, slots=True, eq=False)
class BaseType(TypeExpr):
    """`bool error string void match_kind int bit int<w> bit<w> varbit<w>`; `width` None when not written."""

    name: str
    width: Expr | None = None


@dataclass(frozen=True, slots=True, eq=False)
class NamedType(TypeExpr):
    """`Name`, `.Name`, or `Name<args>`; args None when none are written."""

    name: str
    absolute: bool = False
    args: tuple[TypeExpr, ...] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class TupleTypeExpr(TypeExpr):
    """`tuple<...>`."""

    elements: tuple[TypeExpr, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ListTypeExpr(TypeExpr):
    """`list<T>`."""

    element: TypeExpr


@dataclass(frozen=True, slots=True, eq=False)
class ArrayType(TypeExpr):
    """`element[size]`."""

    element: TypeExpr
    size: Expr


@dataclass(frozen=True, slots=True, eq=False)
class DontCareType(TypeExpr):
    """`_` among type arguments."""


@dataclass(frozen=True, slots=True, eq=False)
class Expr(Node):
    """An expression as written; `loc` is where it begins."""


@dataclass(frozen=True, slots=True, eq=False)
class Number(Expr):
    """An integer literal."""

    number: NumberValue


@dataclass(frozen=True, slots=True, eq=False)
class Bool(Expr):
    """`true` or `false`."""

    value: bool


@dataclass(frozen=True, slots=True, eq=False)
class String(Expr):
    """A string literal, escapes resolved."""

    value: str


@dataclass(frozen=True, slots=True, eq=False)
class Name(Expr):
    """`name` or `.name`, of a value."""

    name: str
    absolute: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class TypeName(Expr):
    """A type where an expression may stand: before `.member` or as a constructor."""

    type: TypeExpr


@dataclass(frozen=True, slots=True, eq=False)
class This(Expr):
    """`this`."""


@dataclass(frozen=True, slots=True, eq=False)
class Member(Expr):
    """`base.name`."""

    base: Expr
    name: str
    name_loc: Location


@dataclass(frozen=True, slots=True, eq=False)
class Index(Expr):
    """`base[index]`."""

    base: Expr
    index: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Slice(Expr):
    """`base[hi:lo]`."""

    base: Expr
    hi: Expr
    lo: Expr


@dataclass(frozen=True, slots=True, eq=False)
class PlusSlice(Expr):
    """`base[start +: width]`."""

    base: Expr
    start: Expr
    width: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Unary(Expr):
    """`op operand`, `op` in `! ~ - +`."""

    op: str
    operand: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Binary(Expr):
    """`left op right`."""

    op: str
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Ternary(Expr):
    """`cond ? yes : no`."""

    cond: Expr
    yes: Expr
    no: Expr


@dataclass(frozen=True, slots=True, eq=False)
class CastExpr(Expr):
    """`(type) operand`."""

    type: TypeExpr
    operand: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Argument(Node):
    """`value`, `name = value`; value None is `_`."""

    name: str | None
    value: Expr | None


@dataclass(frozen=True, slots=True, eq=False)
class Call(Expr):
    """`callee<type_args>(args)`; type_args None when none are written. A constructor call's callee is a `TypeName`."""

    callee: Expr
    type_args: tuple[TypeExpr, ...] | None
    args: tuple[Argument, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ListExpr(Expr):
    """`{a, b, ...}`; `dots` when it ends in `...`."""

    items: tuple[Expr, ...]
    dots: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class StructExpr(Expr):
    """`{name = value, ...}`; `dots` when it ends in `...`."""

    fields: tuple[tuple[str, Expr], ...]
    dots: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Dots(Expr):
    """`...` as a whole initialiser: every default."""


@dataclass(frozen=True, slots=True, eq=False)
class Invalid(Expr):
    """`{#}`."""


@dataclass(frozen=True, slots=True, eq=False)
class MaskSet(Expr):
    """`value &&& mask`, in a key set."""

    value: Expr
    mask: Expr


@dataclass(frozen=True, slots=True, eq=False)
class RangeSet(Expr):
    """`low .. high`, in a key set or a for loop."""

    low: Expr
    high: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Anything(Expr):
    """`_` or `default`, in a key set."""
