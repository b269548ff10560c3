"""Operators: their operand types, and their values where the operands are known."""

from __future__ import annotations

from catchment.softswitch.compiler import fold, ir
from catchment.softswitch.compiler.check.typing import is_equatable
from catchment.softswitch.compiler.check.values import BraceValue, ValueChecker, describe, is_constant
from catchment.softswitch.compiler.diagnostics import Refusal, shown
from catchment.softswitch.compiler.source import Location
from catchment.softswitch.compiler.types import (
    BitType,
    BoolType,
    FieldsType,
    InfIntType,
    IntType,
    SerEnumType,
    StackType,
    StringType,
    VoidType,
)

BOOL = BoolType()
INT = InfIntType()


class OperatorChecker(ValueChecker):
    """Types and folds operators."""

    def unary(self, loc: Location, operator: str, operand: ir.Expr) -> ir.Expr:
        """`! ~ - +`."""
        if operator == "!":
            self._want_bool(operand, "!")
            if isinstance(operand, ir.Literal):
                return ir.Literal(loc, operand.type, not operand.value)
            return ir.Unary(loc, operand.type, "!", operand)
        operand = self._arithmetic_operand(operand, operator)
        if operator == "~" and isinstance(operand.type, InfIntType):
            raise Refusal(loc, "`~` is not defined on int: its width is not known", "give the number a width: 8w5")
        if operator == "+":
            return operand
        if isinstance(operand, ir.Literal):
            value = -int(operand.value) if operator == "-" else ~int(operand.value)
            return ir.Literal(loc, operand.type, fold.wrap(value, operand.type))
        return ir.Unary(loc, operand.type, operator, operand)

    def binary(self, loc: Location, operator: str, left: ir.Expr, right: ir.Expr) -> ir.Expr:
        """Every binary operator."""
        try:
            if operator in ("&&", "||"):
                return self._logical(loc, operator, left, right)
            if operator in ("==", "!="):
                return self._equality(loc, operator, left, right)
            if operator in ("<<", ">>"):
                return self._shift(loc, operator, left, right)
            if operator == "++":
                return self._concat(loc, left, right)
            return self._arithmetic(loc, operator, left, right)
        except fold.FoldError as error:
            raise Refusal(loc, str(error)) from None

    def _want_bool(self, expr: ir.Expr, operator: str) -> None:
        if not isinstance(expr.type, BoolType):
            raise Refusal(expr.loc, f"`{operator}` is not defined on {describe(expr)}, only on bool")

    def _logical(self, loc: Location, operator: str, left: ir.Expr, right: ir.Expr) -> ir.Expr:
        self._want_bool(left, operator)
        self._want_bool(right, operator)
        if isinstance(left, ir.Literal):
            decided = bool(left.value) == (operator == "||")
            return left if decided else right
        return ir.Binary(loc, BOOL, operator, left, right)

    def _arithmetic_operand(self, expr: ir.Expr, operator: str) -> ir.Expr:
        """`expr` as a number: serializable enums become their underlying value."""
        if isinstance(expr.type, SerEnumType):
            expr = self.cast(expr, expr.type.underlying)
        if isinstance(expr.type, BitType | IntType) and expr.type.newtype is not None:
            raise Refusal(expr.loc, f"`{operator}` is not defined on {expr.type}", "cast it to its underlying type")
        if not isinstance(expr.type, BitType | IntType | InfIntType):
            raise Refusal(expr.loc, f"`{operator}` is not defined on {describe(expr)}")
        return expr

    def _same_type(self, loc: Location, operator: str, left: ir.Expr, right: ir.Expr) -> tuple[ir.Expr, ir.Expr]:
        if isinstance(left.type, InfIntType) and not isinstance(right.type, InfIntType):
            left = self.convert(left, right.type)
        elif isinstance(right.type, InfIntType) and not isinstance(left.type, InfIntType):
            right = self.convert(right, left.type)
        if left.type != right.type:
            message = f"`{operator}` on operands of different types: {describe(left)} and {describe(right)}"
            raise Refusal(loc, message, "cast one of them")
        return left, right

    def _arithmetic(self, loc: Location, operator: str, left: ir.Expr, right: ir.Expr) -> ir.Expr:
        left, right = self._arithmetic_operand(left, operator), self._arithmetic_operand(right, operator)
        left, right = self._same_type(loc, operator, left, right)
        comparison = operator in ("<", ">", "<=", ">=")
        if operator in ("|+|", "|-|") and isinstance(left.type, InfIntType):
            raise Refusal(loc, f"`{operator}` needs operands of known width")
        if operator in ("/", "%") and isinstance(left.type, IntType):
            raise Refusal(loc, f"`{operator}` is not defined on signed values of type {left.type}")
        if operator in ("/", "%") and isinstance(right, ir.Literal) and right.value == 0:
            raise Refusal(loc, "division by zero" if operator == "/" else "modulo by zero")
        if operator in ("/", "%") and not isinstance(left, ir.Literal) and not self._divides_by_shift(right):
            hint = "divide by a constant power of two"
            raise Refusal(loc, f"`{operator}` of values that are not known at compile time is not supported", hint)
        if isinstance(left, ir.Literal) and isinstance(right, ir.Literal):
            one, other = int(left.value), int(right.value)
            if comparison:
                return ir.Literal(loc, BOOL, fold.compare(operator, one, other))
            return ir.Literal(loc, left.type, fold.arithmetic(operator, one, other, left.type))
        return ir.Binary(loc, BOOL if comparison else left.type, operator, left, right)

    def _divides_by_shift(self, divisor: ir.Expr) -> bool:
        """Whether targets can divide by this: a power of two, or a constructor parameter."""
        if isinstance(divisor, ir.Literal):
            return int(divisor.value).bit_count() == 1
        return self.is_late_constant(divisor)

    def _shift(self, loc: Location, operator: str, left: ir.Expr, right: ir.Expr) -> ir.Expr:
        left, right = self._arithmetic_operand(left, operator), self._arithmetic_operand(right, operator)
        if isinstance(right.type, IntType) and isinstance(right, ir.Literal) and int(right.value) >= 0:
            right = ir.Literal(right.loc, INT, right.value, right.base)
        if isinstance(right.type, IntType):
            raise Refusal(right.loc, f"shift amount of type {right.type}: it must be unsigned")
        if isinstance(right, ir.Literal):
            if int(right.value) < 0:
                raise Refusal(right.loc, f"shift by a negative amount: {shown(int(right.value))}")
            if isinstance(left, ir.Literal):
                value = fold.shift(operator, int(left.value), int(right.value), left.type)
                return ir.Literal(loc, left.type, value)
        elif isinstance(left.type, InfIntType) and not self.is_late_constant(right):
            raise Refusal(left.loc, f"`{operator}` of an int by a run-time amount", "give the number a width")
        return ir.Binary(loc, left.type, operator, left, right)

    def is_late_constant(self, expr: ir.Expr) -> bool:
        """Whether the value is known at compile time or when the unit is instantiated (constructor parameters)."""
        return is_constant(expr)

    def _concat(self, loc: Location, left: ir.Expr, right: ir.Expr) -> ir.Expr:
        if isinstance(left.type, StringType) and isinstance(right.type, StringType):
            if isinstance(left, ir.Literal) and isinstance(right, ir.Literal):
                return ir.Literal(loc, left.type, str(left.value) + str(right.value))
            raise Refusal(loc, "`++` of strings that are not known at compile time")
        left, right = self._arithmetic_operand(left, "++"), self._arithmetic_operand(right, "++")
        one, other = left.type, right.type
        if not isinstance(one, BitType | IntType) or not isinstance(other, BitType | IntType):
            raise Refusal(loc, f"`++` on {one} and {other}: both widths must be known", "give the number a width: 8w5")
        type_ = type(one)(one.width + other.width)
        if isinstance(left, ir.Literal) and isinstance(right, ir.Literal):
            value = fold.concat(int(left.value), one.width, int(right.value), other.width)
            return ir.Literal(loc, type_, fold.wrap(value, type_))
        return ir.Concat(loc, type_, left, right)

    def _equality(self, loc: Location, operator: str, left: ir.Expr, right: ir.Expr) -> ir.Expr:
        if isinstance(left, BraceValue) and isinstance(right, BraceValue):
            left, right = self.settle(left), self.settle(right)
        if isinstance(left, BraceValue | ir.InvalidHeader):
            left = self.convert(left, right.type)
        elif isinstance(right, BraceValue | ir.InvalidHeader):
            right = self.convert(right, left.type)
        left, right = self._align_enums(left, right)
        left, right = self._same_type(loc, operator, left, right)
        if isinstance(left.type, VoidType) or not is_equatable(left.type):
            raise Refusal(loc, f"`{operator}` is not defined on {describe(left)}")
        if isinstance(left.type, StringType) and not (is_constant(left) and is_constant(right)):
            raise Refusal(loc, f"`{operator}` on strings needs compile-time values")
        value = _known_equal(left, right)
        if value is not None:
            return ir.Literal(loc, BOOL, value == (operator == "=="))
        return ir.Binary(loc, BOOL, operator, left, right)

    def _align_enums(self, left: ir.Expr, right: ir.Expr) -> tuple[ir.Expr, ir.Expr]:
        if left.type == right.type:
            return left, right
        if isinstance(left.type, SerEnumType):
            left = self.cast(left, left.type.underlying)
        if isinstance(right.type, SerEnumType):
            right = self.cast(right, right.type.underlying)
        return left, right

    def mux(self, loc: Location, cond: ir.Expr, yes: ir.Expr, no: ir.Expr) -> ir.Expr:
        """`cond ? yes : no`."""
        if not isinstance(cond.type, BoolType):
            raise Refusal(cond.loc, f"condition of type {describe(cond)}: it must be bool")
        if isinstance(yes, BraceValue) and isinstance(no.type, FieldsType | StackType):
            yes = self.convert(yes, no.type)
        elif isinstance(no, BraceValue) and isinstance(yes.type, FieldsType | StackType):
            no = self.convert(no, yes.type)
        yes, no = self.settle(yes), self.settle(no)
        if yes.type != no.type:
            yes, no = self._align_enums(yes, no)
            yes, no = self._same_type(loc, "?:", yes, no)
        if isinstance(cond, ir.Literal):
            return yes if cond.value else no
        if isinstance(yes.type, InfIntType) and not is_constant(cond):
            raise Refusal(loc, "`?:` on two numbers without width", "give one of them a width")
        return ir.Mux(loc, yes.type, cond, yes, no)

    def slice(self, loc: Location, base: ir.Expr, hi: int, lo: int) -> ir.Expr:
        """`base[hi:lo]`; of an `int`, whose value is known, every bit is there (P4_16 1.2.5, section 8.9)."""
        base = self._arithmetic_operand(base, "[:]")
        if not isinstance(base.type, BitType | IntType | InfIntType):
            raise Refusal(loc, f"bit extraction from {base.type}: its width is not known")
        if lo < 0 or hi < lo:
            raise Refusal(loc, f"[{shown(hi)}:{shown(lo)}]: the first bit index must not be less than the second")
        if isinstance(base.type, InfIntType):
            if not isinstance(base, ir.Literal):
                raise Refusal(loc, f"bit extraction from {base.type}: its value is not known")
            if hi > fold.LARGEST_SHIFT:
                raise Refusal(loc, f"[{shown(hi)}:{shown(lo)}]: bit {shown(hi)} is too large an index")
        elif hi >= base.type.width:
            raise Refusal(loc, f"[{shown(hi)}:{shown(lo)}]: bit {shown(hi)} is beyond {base.type}")
        type_ = BitType(hi - lo + 1)
        if isinstance(base, ir.Literal):
            return ir.Literal(loc, type_, fold.bits(int(base.value), hi, lo))
        return ir.Slice(loc, type_, base, hi, lo)


def _known_equal(left: ir.Expr, right: ir.Expr) -> bool | None:
    """Whether two compile-time values are equal; None when either is not known."""
    if isinstance(left, ir.Literal) and isinstance(right, ir.Literal):
        return left.value == right.value
    if isinstance(left, ir.EnumValue) and isinstance(right, ir.EnumValue):
        return left.ordinal == right.ordinal
    if isinstance(left, ir.Aggregate) and isinstance(right, ir.Aggregate):
        parts = [_known_equal(a, b) for a, b in zip(left.members, right.members, strict=True)]
        return None if any(p is None for p in parts) else all(parts)
    return None
