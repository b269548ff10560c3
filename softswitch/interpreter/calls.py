"""Calls: arguments are copied in, and what was written is copied out when the callee ends, however it ends."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from catchment.softswitch.compiler import ir
from catchment.softswitch.compiler.types import ExternType
from catchment.softswitch.interpreter.errors import InterpreterError
from catchment.softswitch.interpreter.expressions import Expressions, Frame
from catchment.softswitch.interpreter.packet import Packet
from catchment.softswitch.interpreter.places import ByReference, Place, Variables
from catchment.softswitch.interpreter.signals import ReturnSignal
from catchment.softswitch.interpreter.values import ExternObject, Value, copy_of, default_value, show


class Calls(Expressions):
    """Calls of functions, actions and sub-units, on one packet."""

    def __init__(self, packet: Packet) -> None:
        super().__init__()
        self.packet = packet
        self.trace = packet.trace

    @abstractmethod
    def run(self, stmt: ir.Stmt) -> None:
        """Runs a statement."""

    @abstractmethod
    def run_states(self, unit: ir.ParserUnit) -> None:
        """Runs a parser's states in the current frame."""

    # Arguments --------------------------------------------------------------------------------------------------------

    def copy_in(
        self, params: Sequence[ir.Param], args: Sequence[ir.Expr], order: Sequence[int] = ()
    ) -> tuple[Variables, list[tuple[ir.Param, Place]]]:
        """The parameters' values, and where those that come out go; evaluated in `order`, or from left to right."""
        variables: Variables = {}
        outs: list[tuple[ir.Param, Place]] = []
        for at in order or range(len(params)):
            param, arg = params[at], args[at]
            if isinstance(param.type, ExternType):
                variables[param] = self._by_reference(arg)
            elif param.direction in (ir.Direction.OUT, ir.Direction.INOUT):
                place = self.place(arg)
                outs.append((param, place))
                inout = param.direction is ir.Direction.INOUT
                variables[param] = place.get() if inout else default_value(param.type)
            else:
                variables[param] = self.value(arg)
        return variables, outs

    def _by_reference(self, arg: ir.Expr) -> ByReference | Value:
        if isinstance(arg, ir.InstanceRef):
            return ExternObject(self.extern_of(arg.instance))
        assert isinstance(arg, ir.VarRef), "an extern's name, or a parameter's"
        return self.frame.variables[arg.variable]

    def copy_out(self, variables: Variables, outs: list[tuple[ir.Param, Place]]) -> None:
        """Copy the arguments out, in the order in which they were evaluated."""
        for param, place in outs:
            value = variables[param]
            assert not isinstance(value, ByReference)
            place.set(copy_of(value))

    @contextmanager
    def frame_of(self, frame: Frame) -> Iterator[None]:
        """Evaluates in `frame` for a while."""
        caller, self.frame = self.frame, frame
        self.trace.depth += 1
        try:
            yield
        finally:
            self.frame = caller
            self.trace.depth -= 1

    # Callees ----------------------------------------------------------------------------------------------------------

    def function_call(self, call: ir.FunctionCall) -> Value | None:
        variables, outs = self.copy_in(call.function.params, call.args, call.order)
        if self.trace.on:
            self.trace.line(f"function {call.function.name}({_arguments(variables)})", call.loc)
        try:
            with self.frame_of(Frame(None, variables)):
                self.run(call.function.body)
        except ReturnSignal as returned:
            return returned.value
        finally:
            self.copy_out(variables, outs)
        return None

    def action_call(self, call: ir.ActionCall) -> None:
        """A direct call."""
        variables, outs = self.copy_in(call.action.params, call.args, call.order)
        self.run_action(call.action, variables, outs)

    def run_action(self, action: ir.Action, given: Variables, outs: list[tuple[ir.Param, Place]]) -> None:
        """An action sees the variables of its control."""
        if self.trace.on:
            self.trace.line(f"action {action.name}({_arguments(given)})", action.loc)
        variables = self.frame.variables
        variables.update(given)
        self.trace.depth += 1
        try:
            self.run(action.body)
        except ReturnSignal:
            pass
        finally:
            self.trace.depth -= 1
            self.copy_out(variables, outs)

    def unit_apply(self, stmt: ir.UnitApply) -> None:
        """A sub-control or sub-parser."""
        assert self.frame.instance is not None
        child = self.frame.instance.children[stmt.instance.name]
        assert isinstance(child, ir.Instance)
        variables, outs = self.copy_in(child.unit.params, stmt.args, stmt.order)
        try:
            self.run_unit(child, variables)
        finally:
            self.copy_out(variables, outs)

    def run_unit(self, instance: ir.Instance, variables: Variables) -> None:
        """A control or parser whose parameters are in `variables`."""
        unit = instance.unit
        kind = "control" if isinstance(unit, ir.ControlUnit) else "parser"
        self.trace.line(f"{kind} {instance.path or unit.name}", unit.loc)
        with self.frame_of(Frame(instance, variables)):
            for local in unit.locals:
                self.run(local)
            if isinstance(unit, ir.ParserUnit):
                self.run_states(unit)
                return
            with suppress(ReturnSignal):
                self.run(unit.body)

    def extern_of(self, target: ir.InstanceDecl | ir.Variable) -> str:
        """The full name of an extern object of the running unit, or of the one that a parameter stands for."""
        if not isinstance(target, ir.InstanceDecl):
            known = self.frame.variables[target]
            assert isinstance(known, ExternObject), "the type checker takes no other argument"
            return known.name
        decl = target
        instance = self.frame.instance
        child = instance.children.get(decl.name) if instance is not None and not decl.is_global else None
        if child is None:
            child = next((e for e in self.packet.program.global_externs.values() if e.decl is decl), None)
        if not isinstance(child, ir.ExternInstance):
            raise InterpreterError(f"{decl.loc}: {decl.name} is not an object of this control")
        return child.full_name


def _arguments(variables: Variables) -> str:
    shown = [
        f"{variable.name}={show(value, variable.type)}"
        for variable, value in variables.items()
        if not isinstance(value, ByReference)
    ]
    return ", ".join(shown)
