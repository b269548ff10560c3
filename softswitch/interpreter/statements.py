"""Statements: what they do."""

from __future__ import annotations

from catchment.softswitch.compiler import ir
from catchment.softswitch.compiler.loop_rounds import Loop
from catchment.softswitch.compiler.types import TupleType
from catchment.softswitch.interpreter.arithmetic import wrapped
from catchment.softswitch.interpreter.calls import Calls
from catchment.softswitch.interpreter.errors import InterpreterError, too_deep
from catchment.softswitch.interpreter.places import ElementPlace, MemberPlace
from catchment.softswitch.interpreter.signals import BreakSignal, ContinueSignal, ExitSignal, ReturnSignal
from catchment.softswitch.interpreter.trace import text_of
from catchment.softswitch.interpreter.values import (
    Header,
    Stack,
    Struct,
    Union,
    Value,
    default_value,
    equal,
    overwrite,
    show,
)


class Statements(Calls):
    """Runs the statements of the current frame."""

    def run(self, stmt: ir.Stmt) -> None:  # noqa: PLR0912 - one branch per kind of statement
        match stmt:
            case ir.Block():
                for inner in stmt.body:
                    try:
                        self.run(inner)
                    except RecursionError:
                        raise too_deep(inner.loc) from None
            case ir.Declare():
                self._declare(stmt.variable, self.value(stmt.init) if stmt.init is not None else None)
            case ir.Assign():
                self._assign(stmt)
            case ir.If():
                self.run(self._taken(stmt))
            case ir.Evaluate():
                self._evaluate(stmt.expr)
            case ir.ActionCall():
                self.action_call(stmt)
            case ir.UnitApply():
                self.unit_apply(stmt)
            case ir.SetValidity():
                self._set_validity(stmt)
            case ir.StackShift():
                self._shift(stmt)
            case ir.SwitchAction():
                self._switch_action(stmt)
            case ir.SwitchValue():
                self._switch_value(stmt)
            case ir.For():
                for inner in stmt.init:
                    self.run(inner)
                self._for(stmt)
            case ir.ForRange():
                self._for_range(stmt)
            case ir.ForEach():
                self._for_each(stmt)
            case ir.Return():
                raise ReturnSignal(self.value(stmt.value) if stmt.value is not None else None)
            case ir.Exit():
                self.trace.line("exit", stmt.loc)
                raise ExitSignal
            case ir.Break():
                raise BreakSignal
            case ir.Continue():
                raise ContinueSignal
            case _:
                raise InterpreterError(f"{stmt.loc}: statement {type(stmt).__name__}")

    def _taken(self, stmt: ir.If) -> ir.Block:
        """The body that an `if` with all its `else if` comes to."""
        links, orelse = ir.branches(stmt)
        for link in links:
            taken = self.number(link.cond)
            self.trace.line(f"if: {'true' if taken else 'false'}", link.loc)
            if taken:
                return link.then
        return orelse

    def _declare(self, variable: ir.Variable, value: Value | None) -> None:
        self.frame.variables[variable] = default_value(variable.type) if value is None else value
        if value is not None and self.trace.on:
            self.trace.line(f"{variable.name} = {show(value, variable.type)}", variable.loc)

    def _assign(self, stmt: ir.Assign) -> None:
        place = self.place(stmt.target)
        value = self.value(stmt.value)
        place.set(value)
        if self.trace.on:
            self.trace.line(f"{text_of(stmt.target)} = {show(value, stmt.value.type)}", stmt.loc)

    def _evaluate(self, expr: ir.Expr) -> None:
        if isinstance(expr, ir.TableApply):
            self.table_apply(expr.table)
        elif isinstance(expr, ir.FunctionCall | ir.ExternCall):
            self.call(expr)
        else:
            self.value(expr)

    def _set_validity(self, stmt: ir.SetValidity) -> None:
        self.trace.line(f"{text_of(stmt.header)}.{'setValid' if stmt.valid else 'setInvalid'}()", stmt.loc)
        header = self.composite(stmt.header)
        assert isinstance(header, Header)
        if stmt.valid and not header.valid:
            overwrite(header, default_value(header.type))
        header.valid = stmt.valid
        if stmt.valid and isinstance(stmt.header, ir.FieldRef):
            owner = self.composite(stmt.header.base)
            if isinstance(owner, Union):
                owner.only(stmt.header.name)

    def _shift(self, stmt: ir.StackShift) -> None:
        self.trace.line(f"{text_of(stmt.stack)}.{'push' if stmt.push else 'pop'}_front({stmt.count})", stmt.loc)
        stack = self.composite(stmt.stack)
        assert isinstance(stack, Stack)
        size = len(stack.elements)
        new = [default_value(stack.type.element) for _ in range(min(stmt.count, size))]
        if stmt.push:
            stack.elements = (new + stack.elements)[:size]
            stack.next = min(stack.next + stmt.count, size)
        else:
            stack.elements = (stack.elements + new)[-size:]
            stack.next = max(stack.next - stmt.count, 0)

    # Switches ---------------------------------------------------------------------------------------------------------

    def _switch_action(self, stmt: ir.SwitchAction) -> None:
        _, action = self.table_apply(stmt.table)
        default = None
        for case in stmt.cases:
            if any(action is label for label in case.actions):
                self.run(case.body)
                return
            if case.is_default:
                default = case.body
        if default is not None:
            self.run(default)

    def _switch_value(self, stmt: ir.SwitchValue) -> None:
        subject = self.value(stmt.subject)
        default = None
        for case in stmt.cases:
            if any(equal(subject, self.value(label)) for label in case.values):
                self.run(case.body)
                return
            if case.is_default:
                default = case.body
        if default is not None:
            self.run(default)

    # Loops ------------------------------------------------------------------------------------------------------------

    def _for(self, stmt: ir.For) -> None:
        while self.number(stmt.cond):
            if not self._round(stmt):
                return
            for step in stmt.update:
                self.run(step)

    def _for_range(self, stmt: ir.ForRange) -> None:
        low, high = self.number(stmt.low), self.number(stmt.high)
        for number in range(low, high + 1):
            self._declare(stmt.variable, wrapped(number, stmt.variable.type))
            if not self._round(stmt):
                return

    def _for_each(self, stmt: ir.ForEach) -> None:
        collection = self.value(stmt.collection)
        if isinstance(collection, Stack):
            values = [ElementPlace(collection, i).get() for i in range(len(collection.elements))]
        else:
            assert isinstance(collection, Struct)
            assert isinstance(collection.type, TupleType)
            values = [MemberPlace(collection, name).get() for name in collection.fields]
        for value in values:
            self._declare(stmt.variable, value)
            if not self._round(stmt):
                return

    def _round(self, loop: Loop) -> bool:
        """One round of a loop; whether it goes on."""
        self.packet.steps.take(loop)
        try:
            self.run(loop.body)
        except ContinueSignal:
            pass
        except BreakSignal:
            return False
        return True
