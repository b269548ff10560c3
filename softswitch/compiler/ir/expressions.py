"""Expressions of the IR."""

from __future__ import annotations

from dataclasses import dataclass, field

from catchment.softswitch.compiler.annotation import ConstantValue
from catchment.softswitch.compiler.ir.base import Node, Variable
from catchment.softswitch.compiler.types import Type


@dataclass(frozen=True, slots=True)
class Expr(Node):
    """An expression of a known type."""

    type: Type


@dataclass(frozen=True, slots=True)
class Literal(Expr):
    """A compile-time value: int (bit, int, infinite int, serializable enum), bool, or str.

    ints are within the type's range.
    """

    value: ConstantValue
    base: int = field(default=10, compare=False)
    """The base an integer was written in; names of keys show it."""


@dataclass(frozen=True, slots=True)
class EnumValue(Expr):
    """A member of an enum without underlying type, or of `error`; `ordinal` counts from 0."""

    member: str
    ordinal: int


@dataclass(frozen=True, slots=True)
class VarRef(Expr):
    """A local or parameter. An lvalue if writable."""

    variable: Variable


@dataclass(frozen=True, slots=True)
class FieldRef(Expr):
    """`base.name`, of a struct, header or union. An lvalue if `base` is."""

    base: Expr
    name: str


@dataclass(frozen=True, slots=True)
class Index(Expr):
    """`base[index]`: a header stack with any bit/int index, or a tuple with a literal. An lvalue if `base` is."""

    base: Expr
    index: Expr


@dataclass(frozen=True, slots=True)
class StackNext(Expr):
    """`stack.next` (parsers only). An lvalue. Beyond the end: error.StackOutOfBounds."""

    stack: Expr


@dataclass(frozen=True, slots=True)
class StackLast(Expr):
    """`stack.last` (parsers only). An lvalue. Empty: error.StackOutOfBounds."""

    stack: Expr


@dataclass(frozen=True, slots=True)
class StackLastIndex(Expr):
    """`stack.lastIndex`, bit<32>, parsers only."""

    stack: Expr


@dataclass(frozen=True, slots=True)
class Slice(Expr):
    """`base[hi:lo]`, both inclusive, type bit<hi-lo+1>. An lvalue if `base` is."""

    base: Expr
    hi: int
    lo: int


@dataclass(frozen=True, slots=True)
class PlusSlice(Expr):
    """`base[start +: width]` with a run-time `start`; bits beyond the base read as zero. An lvalue if `base` is."""

    base: Expr
    start: Expr
    width: int


@dataclass(frozen=True, slots=True)
class Unary(Expr):
    """`op` in `-`, `~`, `!`."""

    op: str
    operand: Expr


@dataclass(frozen=True, slots=True)
class Binary(Expr):
    """`op` in `+ - * / % |+| |-| & | ^ << >> == != < <= > >= && ||`; == and != also on structs, headers, stacks,
    tuples."""

    op: str
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class Concat(Expr):
    """`left ++ right`; the result has the left operand's signedness."""

    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class Cast(Expr):
    """`(type) operand` between scalar types: truncation, sign or zero extension, bool<->bit<1>, enum<->underlying."""

    operand: Expr


@dataclass(frozen=True, slots=True)
class Mux(Expr):
    """`cond ? yes : no`."""

    cond: Expr
    yes: Expr
    no: Expr


@dataclass(frozen=True, slots=True)
class Aggregate(Expr):
    """A struct, header (then valid) or tuple made of its members, in the order of the type's fields.

    They are evaluated in `order` (empty: as they stand).
    """

    members: tuple[Expr, ...]
    order: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class StackLiteral(Expr):
    """A header stack made of its elements; nextIndex is 0."""

    elements: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class InvalidHeader(Expr):
    """`{#}`: an invalid header, or a union none of whose headers is valid."""


@dataclass(frozen=True, slots=True)
class IsValid(Expr):
    """`header.isValid()`, also of a union (whether one of its headers is valid)."""

    header: Expr


@dataclass(frozen=True, slots=True)
class DontCare(Expr):
    """`_` as an `out` argument: what is written there is forgotten. Also an optional argument that was not given."""
