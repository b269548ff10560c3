"""Expressions: what they are worth, and which place an lvalue is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

from catchment.softswitch.compiler import ir
from catchment.softswitch.compiler.types import BoolType, HeaderType, StackType
from catchment.softswitch.interpreter.arithmetic import compute, wrapped
from catchment.softswitch.interpreter.errors import InterpreterError
from catchment.softswitch.interpreter.places import (
    BitsPlace,
    ByReference,
    ElementPlace,
    MemberPlace,
    Place,
    Scratch,
    VariablePlace,
    Variables,
)
from catchment.softswitch.interpreter.signals import RejectSignal
from catchment.softswitch.interpreter.values import (
    Composite,
    Header,
    Stack,
    Struct,
    Union,
    Value,
    copy_of,
    default_value,
    equal,
    from_bits,
    members_of,
    to_bits,
    width_of,
)


@dataclass(slots=True)
class Frame:
    """A unit or function while it runs. `instance` is None in a function; `colors` are those of direct meters."""

    instance: ir.Instance | None
    variables: Variables = field(default_factory=dict)
    colors: dict[str, int] = field(default_factory=dict)


class Expressions(ABC):
    """Evaluates in `self.frame`."""

    def __init__(self) -> None:
        self.frame = Frame(None)

    @abstractmethod
    def function_call(self, call: ir.FunctionCall) -> Value | None:
        """Runs a P4 function."""

    @abstractmethod
    def extern_call(self, call: ir.ExternCall) -> Value | None:
        """Runs an extern function or method."""

    @abstractmethod
    def table_apply(self, table: ir.Table) -> tuple[bool, ir.Action]:
        """Applies a table; whether it was a hit, and the action that ran."""

    # Values -----------------------------------------------------------------------------------------------------------

    def value(self, expr: ir.Expr) -> Value:  # noqa: PLR0912 - one branch per kind of expression
        """The value, shared with nothing."""
        match expr:
            case ir.Literal():
                if isinstance(expr.value, str):
                    raise InterpreterError(f"{expr.loc}: a string as a value")
                return expr.value
            case ir.EnumValue():
                return expr.ordinal
            case ir.VarRef() | ir.Index() | ir.StackNext() | ir.StackLast():
                return self.place(expr).get()
            case ir.FieldRef():
                return copy_of(_member(self.composite(expr.base), expr.name))
            case ir.StackLastIndex():
                stack = self.composite(expr.stack)
                assert isinstance(stack, Stack)
                return wrapped(stack.next - 1, expr.type)
            case ir.Slice():
                base = to_bits(self.value(expr.base), expr.base.type)
                return wrapped(base >> expr.lo, expr.type)
            case ir.PlusSlice():
                base = to_bits(self.value(expr.base), expr.base.type)
                start = min(to_bits(self.value(expr.start), expr.start.type), width_of(expr.base.type))
                return wrapped(base >> start, expr.type)
            case ir.Unary():
                return self._unary(expr)
            case ir.Binary():
                return self._binary(expr)
            case ir.Concat():
                left = to_bits(self.value(expr.left), expr.left.type)
                right = to_bits(self.value(expr.right), expr.right.type)
                return from_bits(left << width_of(expr.right.type) | right, expr.type)
            case ir.Cast():
                return self._cast(expr)
            case ir.Mux():
                return self.value(expr.yes if self.number(expr.cond) else expr.no)
            case ir.Aggregate():
                return self._aggregate(expr)
            case ir.StackLiteral():
                assert isinstance(expr.type, StackType)
                return Stack(expr.type, [self.value(element) for element in expr.elements])
            case ir.InvalidHeader() | ir.DontCare():
                return default_value(expr.type)
            case ir.IsValid():
                header = self.composite(expr.header)
                assert isinstance(header, Header | Union)
                return header.valid
            case ir.TableApply():
                hit, _ = self.table_apply(expr.table)
                return hit == (expr.result == "hit")
            case ir.FunctionCall() | ir.ExternCall():
                result = self.call(expr)
                if result is None:
                    raise InterpreterError(f"{expr.loc}: a call without a value")
                return result
        raise InterpreterError(f"{expr.loc}: expression {type(expr).__name__}")

    def number(self, expr: ir.Expr) -> int:
        """Evaluate a scalar expression."""
        value = self.value(expr)
        assert isinstance(value, int), expr
        return value

    def call(self, expr: ir.FunctionCall | ir.ExternCall) -> Value | None:
        """A call, of something that may return nothing."""
        return self.function_call(expr) if isinstance(expr, ir.FunctionCall) else self.extern_call(expr)

    def _unary(self, expr: ir.Unary) -> Value:
        operand = self.number(expr.operand)
        if expr.op == "!":
            return not operand
        return wrapped(-operand if expr.op == "-" else ~operand, expr.type)

    def _binary(self, expr: ir.Binary) -> Value:
        if expr.op == "&&":
            return bool(self.number(expr.left)) and bool(self.number(expr.right))
        if expr.op == "||":
            return bool(self.number(expr.left)) or bool(self.number(expr.right))
        if expr.op in ("==", "!="):
            left, right = self.value(expr.left), self.value(expr.right)
            return equal(left, right) == (expr.op == "==")
        return compute(expr.op, self.number(expr.left), self.number(expr.right), expr.left.type)

    def _cast(self, expr: ir.Cast) -> Value:
        value = self.value(expr.operand)
        if not isinstance(value, int):
            return value
        if isinstance(expr.type, BoolType):
            return value != 0
        # A negative number has ones all the way up: this is sign extension.
        return from_bits(int(value), expr.type)

    def _aggregate(self, expr: ir.Aggregate) -> Value:
        names = [name for name, _ in members_of(expr.type)]
        values = {at: self.value(expr.members[at]) for at in expr.order or range(len(expr.members))}
        fields = {name: values[at] for at, name in enumerate(names)}
        if isinstance(expr.type, HeaderType):
            return Header(expr.type, fields, True)
        return Struct(expr.type, fields)

    # Places -----------------------------------------------------------------------------------------------------------

    def composite(self, expr: ir.Expr) -> Composite:
        """The very object that an lvalue names, or the value of something that is no lvalue."""
        match expr:
            case ir.VarRef():
                found = self.frame.variables[expr.variable]
                assert not isinstance(found, ByReference)
                value: Value = found
            case ir.FieldRef():
                value = _member(self.composite(expr.base), expr.name)
            case ir.Index() | ir.StackNext() | ir.StackLast():
                place = self.place(expr)
                value = place.stack.elements[place.index] if isinstance(place, ElementPlace) else place.get()
            case _:
                value = self.value(expr)
        assert isinstance(value, Composite), expr
        return value

    def place(self, expr: ir.Expr) -> Place:
        """The place that `expr` names, its indices evaluated now."""
        match expr:
            case ir.VarRef():
                return VariablePlace(self.frame.variables, expr.variable)
            case ir.FieldRef():
                owner = self.composite(expr.base)
                assert not isinstance(owner, Stack)
                return MemberPlace(owner, expr.name)
            case ir.Index():
                return self._element(expr)
            case ir.StackNext() | ir.StackLast():
                stack = self.composite(expr.stack)
                assert isinstance(stack, Stack)
                index = stack.next if isinstance(expr, ir.StackNext) else stack.next - 1
                if not 0 <= index < len(stack.elements):
                    raise RejectSignal("StackOutOfBounds")
                return ElementPlace(stack, index)
            case ir.Slice():
                return BitsPlace(self.place(expr.base), expr.base.type, expr.lo, expr.hi - expr.lo + 1)
            case ir.PlusSlice():
                base = self.place(expr.base)
                start = to_bits(self.value(expr.start), expr.start.type)
                return BitsPlace(base, expr.base.type, start, expr.width)
            case ir.DontCare():
                return Scratch(default_value(expr.type))
            case ir.Cast():  # between a type and what it was made from
                return self.place(expr.operand)
        raise InterpreterError(f"{expr.loc}: {type(expr).__name__} is no lvalue")

    def _element(self, expr: ir.Index) -> Place:
        base = self.composite(expr.base)
        index = self.number(expr.index)
        if isinstance(base, Struct):  # a tuple
            return MemberPlace(base, str(index))
        assert isinstance(base, Stack)
        if 0 <= index < len(base.elements):
            return ElementPlace(base, index)
        return Scratch(default_value(expr.type))


def _member(owner: Composite, name: str) -> Value:
    assert not isinstance(owner, Stack)
    return owner.members[name] if isinstance(owner, Union) else owner.fields[name]
