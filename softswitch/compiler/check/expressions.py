"""Expressions: names, members, indices, and everything built of them."""

from __future__ import annotations

from abc import abstractmethod

from catchment.softswitch.compiler import ast, ir
from catchment.softswitch.compiler.check.context import Place
from catchment.softswitch.compiler.check.operators import OperatorChecker
from catchment.softswitch.compiler.check.values import BraceValue, describe, is_constant
from catchment.softswitch.compiler.diagnostics import Refusal, shown
from catchment.softswitch.compiler.scope import ConstantSymbol, Symbol, TypeSymbol, VariableSymbol
from catchment.softswitch.compiler.source import Location
from catchment.softswitch.compiler.types import (
    BitType,
    BoolType,
    EnumType,
    ErrorType,
    FieldsType,
    HeaderType,
    InfIntType,
    IntType,
    SerEnumType,
    StackType,
    StringType,
    TupleType,
    Type,
    UnionType,
    VoidType,
)


class ExpressionChecker(OperatorChecker):
    """Turns written expressions into typed ones."""

    @abstractmethod
    def call_expression(self, call: ast.Call) -> ir.Expr:
        """A call that yields a value."""

    @abstractmethod
    def table_result(self, member: ast.Member) -> ir.Expr | None:
        """`table.apply().hit` and `.miss`, or None when `member` is not of that form."""

    def expr(self, written: ast.Expr, expected: Type | None = None) -> ir.Expr:
        """The typed expression. Braces are given `expected` if it is known, and stay without a type otherwise."""
        result = self._expr(written)
        if expected is not None and isinstance(result, BraceValue | ir.InvalidHeader):
            return self.convert(result, expected)
        return result

    def value(self, written: ast.Expr, target: Type) -> ir.Expr:
        """The expression as a value of `target`."""
        return self.convert(self._expr(written), target)

    def _expr(self, written: ast.Expr) -> ir.Expr:  # noqa: PLR0912 - one line per kind of expression
        loc = written.loc
        match written:
            case ast.Number():
                return self._number(written)
            case ast.Bool():
                return ir.Literal(loc, BoolType(), written.value)
            case ast.String():
                return ir.Literal(loc, StringType(), written.value)
            case ast.Name():
                return self._symbol_value(written.name, self.lookup(written.name, loc, written.absolute), loc)
            case ast.Member():
                return self._member(written)
            case ast.Index():
                return self._index(written)
            case ast.Slice():
                hi = self.constant_int(written.hi, "a bit index")
                lo = self.constant_int(written.lo, "a bit index")
                return self.slice(loc, self._expr(written.base), hi, lo)
            case ast.PlusSlice():
                return self._plus_slice(written)
            case ast.Unary():
                return self.unary(loc, written.op, self._expr(written.operand))
            case ast.Binary():
                return self.binary(loc, written.op, self._expr(written.left), self._expr(written.right))
            case ast.Ternary():
                cond = self._expr(written.cond)
                return self.mux(loc, cond, self._expr(written.yes), self._expr(written.no))
            case ast.CastExpr():
                return self.cast(self._expr(written.operand), self.resolve(written.type))
            case ast.Call():
                return self.call_expression(written)
            case ast.ListExpr():
                members = tuple(self._expr(item) for item in written.items)
                return BraceValue(loc, VoidType(), (), members, written.dots)
            case ast.StructExpr():
                names = tuple(name for name, _ in written.fields)
                members = tuple(self._expr(value) for _, value in written.fields)
                return BraceValue(loc, VoidType(), names, members, written.dots)
            case ast.Dots():
                return BraceValue(loc, VoidType(), (), (), dots=True, bare=True)
            case ast.Invalid():
                return ir.InvalidHeader(loc, VoidType())
            case ast.TypeName():
                raise Refusal(loc, "a type cannot be used as a value")
            case ast.This():
                raise Refusal(loc, "`this` can only be used in an abstract method, which is not supported")
        raise Refusal(loc, "a set of values cannot be used as a value")

    def _number(self, written: ast.Number) -> ir.Literal:
        number = written.number
        if number.width is None:
            return ir.Literal(written.loc, InfIntType(), number.value, number.base)
        if number.signed and number.width == 0:
            raise Refusal(written.loc, "0s: a signed number needs a width of 1 or more")
        type_ = IntType(number.width) if number.signed else BitType(number.width)
        return self.fit(ir.Literal(written.loc, type_, number.value, number.base), type_)

    def _symbol_value(self, name: str, symbol: Symbol, loc: Location) -> ir.Expr:
        if isinstance(symbol, VariableSymbol):
            return ir.VarRef(loc, symbol.variable.type, symbol.variable)
        if isinstance(symbol, ConstantSymbol):
            return relocate(symbol.value, loc)
        kind = type(symbol).__name__.removesuffix("Symbol").lower()
        article = "an" if kind[0] in "aeiou" else "a"
        raise Refusal(loc, f"{name}: {article} {kind} cannot be used as a value")

    # members

    def _member(self, written: ast.Member) -> ir.Expr:
        if isinstance(written.base, ast.TypeName):
            return self._type_member(written, self.resolve(written.base.type))
        if isinstance(written.base, ast.Name):
            symbol = self.lookup(written.base.name, written.base.loc, written.base.absolute)
            if isinstance(symbol, TypeSymbol):
                return self._type_member(written, symbol.type)
        result = self.table_result(written)
        if result is not None:
            return result
        base = self._expr(written.base)
        if isinstance(base.type, FieldsType):
            return self._field(base, written)
        if isinstance(base.type, StackType):
            return self._stack_member(base, base.type, written)
        raise Refusal(written.name_loc, f"{written.name}: {describe(base)} has no members")

    def _type_member(self, written: ast.Member, type_: Type) -> ir.Expr:
        loc, name = written.loc, written.name
        at = written.name_loc
        if isinstance(type_, ErrorType):
            return self.error_value(name, at)
        if isinstance(type_, EnumType):
            if name not in type_.members:
                raise Refusal(at, f"{name}: {type_} has no such member", f"it has {', '.join(type_.members)}")
            return ir.EnumValue(loc, type_, name, type_.members.index(name))
        if isinstance(type_, SerEnumType):
            for member, value in type_.members:
                if member == name:
                    return ir.Literal(loc, type_, value)
            raise Refusal(at, f"{name}: {type_} has no such member")
        raise Refusal(at, f"{name}: the type {type_} has no members")

    def _field(self, base: ir.Expr, written: ast.Member) -> ir.Expr:
        assert isinstance(base.type, FieldsType), "only structures have fields"
        field = base.type.field(written.name)
        if field is None:
            raise Refusal(written.name_loc, f"{written.name}: {base.type} has no such field", _near_fields(base.type))
        if isinstance(base, ir.Aggregate) and is_constant(base):
            index = [f.name for f in base.type.fields].index(written.name)
            return relocate(base.members[index], written.loc)
        return ir.FieldRef(written.loc, field.type, base, field.name)

    def _stack_member(self, base: ir.Expr, stack: StackType, written: ast.Member) -> ir.Expr:
        name, loc = written.name, written.loc
        if name == "size":
            return ir.Literal(loc, BitType(32), stack.size)
        if name not in ("next", "last", "lastIndex") or not isinstance(stack.element, HeaderType | UnionType):
            raise Refusal(
                written.name_loc, f"{name}: a header stack has no such member", "it has next, last, lastIndex, size"
            )
        if self.place is not Place.PARSER:
            raise Refusal(written.name_loc, f"{name}: of a header stack can only be used in a parser")
        if name == "lastIndex":
            return ir.StackLastIndex(loc, BitType(32), base)
        return (ir.StackNext if name == "next" else ir.StackLast)(loc, stack.element, base)

    def _index(self, written: ast.Index) -> ir.Expr:
        base, index = self._expr(written.base), self._expr(written.index)
        loc = written.loc
        if isinstance(index.type, SerEnumType):
            index = self.cast(index, index.type.underlying)
        if not isinstance(index.type, BitType | IntType | InfIntType):
            raise Refusal(index.loc, f"index of type {describe(index)}: it must be an integer")
        known = int(index.value) if isinstance(index, ir.Literal) else None
        if isinstance(base.type, StackType):
            if known is not None and not 0 <= known < base.type.size:
                raise Refusal(index.loc, f"index {shown(known)} is out of bounds of {base.type}")
            if isinstance(index.type, InfIntType) and isinstance(index, ir.Literal):
                index = ir.Literal(index.loc, BitType(32), index.value, index.base)
            if isinstance(base, ir.StackLiteral) and known is not None:
                return base.elements[known]
            return ir.Index(loc, base.type.element, base, index)
        base = self.settle(base)
        if isinstance(base.type, TupleType):
            if known is None:
                raise Refusal(index.loc, "the index of a tuple must be a compile-time constant")
            if not 0 <= known < len(base.type.elements):
                raise Refusal(index.loc, f"index {shown(known)} is out of bounds of {base.type}")
            if isinstance(base, ir.Aggregate) and is_constant(base):
                return base.members[known]
            return ir.Index(loc, base.type.elements[known], base, ir.Literal(index.loc, InfIntType(), known))
        raise Refusal(loc, f"{describe(base)} cannot be indexed")

    def _plus_slice(self, written: ast.PlusSlice) -> ir.Expr:
        base, start = self._expr(written.base), self._expr(written.start)
        width = self.constant_int(written.width, "the width of a slice")
        if isinstance(base.type, SerEnumType):
            base = self.cast(base, base.type.underlying)
        if isinstance(base.type, InfIntType) and isinstance(start, ir.Literal) and width >= 1:
            return self.slice(written.loc, base, int(start.value) + width - 1, int(start.value))
        if not isinstance(base.type, BitType | IntType):
            raise Refusal(written.loc, f"bit extraction from {describe(base)}")
        if width < 1 or width > base.type.width:
            raise Refusal(written.width.loc, f"{shown(width)}: width of a slice of {base.type}")
        if isinstance(start, ir.Literal):
            return self.slice(written.loc, base, int(start.value) + width - 1, int(start.value))
        if not isinstance(start.type, BitType):
            raise Refusal(start.loc, f"slice start of type {describe(start)}: it must be unsigned")
        return ir.PlusSlice(written.loc, BitType(width), base, start, width)

    # constants and lvalues

    def constant_int(self, expr: ast.Expr, what: str, *, local: bool = False) -> int:
        """The value of an expression that must be a compile-time integer; a `local` one is known where it is written,
        which a constructor parameter is not."""
        value = self._expr(expr)
        if isinstance(value.type, SerEnumType):
            value = self.cast(value, value.type.underlying)
        if isinstance(value, ir.Literal) and isinstance(value.type, InfIntType | BitType | IntType):
            return int(value.value)
        if isinstance(value.type, InfIntType | BitType | IntType):
            if self.is_late_constant(value) and not local:
                return 1
            raise Refusal(expr.loc, f"{what} must be a compile-time constant")
        raise Refusal(expr.loc, f"{what} of type {describe(value)}: it must be an integer")

    def is_late_constant(self, expr: ir.Expr) -> bool:
        """Whether the value is known at compile time or when the unit is instantiated (constructor parameters)."""
        if isinstance(expr, ir.VarRef):
            return expr.variable in self.constructor_params
        if isinstance(expr, ir.Binary | ir.Concat):
            return self.is_late_constant(expr.left) and self.is_late_constant(expr.right)
        if isinstance(expr, ir.Unary | ir.Cast):
            return self.is_late_constant(expr.operand)
        if isinstance(expr, ir.Slice):
            return self.is_late_constant(expr.base)
        if isinstance(expr, ir.Mux):
            return all(self.is_late_constant(e) for e in (expr.cond, expr.yes, expr.no))
        if isinstance(expr, ir.Aggregate):
            return all(map(self.is_late_constant, expr.members))
        return is_constant(expr)

    def lvalue(self, written: ast.Expr) -> ir.Expr:
        """An expression that can be assigned to."""
        result = self._expr(written)
        if not self.is_lvalue(result):
            raise Refusal(written.loc, "this expression cannot be assigned to", _why_not(result))
        return result

    def is_lvalue(self, expr: ir.Expr) -> bool:
        """Whether `expr` names storage that may be written here."""
        if isinstance(expr, ir.VarRef):
            return self.is_writable(expr.variable)
        if isinstance(expr, ir.FieldRef | ir.Slice | ir.PlusSlice | ir.Index):
            return self.is_lvalue(expr.base)
        if isinstance(expr, ir.StackNext):
            return self.is_lvalue(expr.stack)
        return False

    def is_writable(self, variable: ir.Variable) -> bool:
        """Whether a variable or parameter may be written."""
        if isinstance(variable, ir.Param):
            return variable.direction in (ir.Direction.OUT, ir.Direction.INOUT)
        return True


def _why_not(expr: ir.Expr) -> str:
    while isinstance(expr, ir.FieldRef | ir.Slice | ir.Index):
        expr = expr.base
    if isinstance(expr, ir.VarRef) and isinstance(expr.variable, ir.Param):
        direction = expr.variable.direction.value or "none"
        return f"the parameter `{expr.variable.name}` is read only: it has direction {direction}"
    return ""


def _near_fields(type_: FieldsType) -> str:
    if not type_.fields:
        return "it has no fields"
    return f"it has {', '.join(f.name for f in type_.fields)}" if len(type_.fields) <= 12 else ""


def relocate(value: ir.Expr, loc: Location) -> ir.Expr:
    """A constant, as used at another place."""
    if isinstance(value, ir.Literal):
        return ir.Literal(loc, value.type, value.value, value.base)
    if isinstance(value, ir.EnumValue):
        return ir.EnumValue(loc, value.type, value.member, value.ordinal)
    return value
