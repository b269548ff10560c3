"""Controls, parsers and functions as C++ structs and functions.

A unit is a struct: the packet, its instance's data (`s`), its parameters (references to the caller's), its locals;
actions and tables are member functions, `run()` is its body.
"""

from __future__ import annotations

from catchment.softswitch.compiler import ir
from catchment.softswitch.compiler.backend import calls, externs, reroll
from catchment.softswitch.compiler.backend.effects import nodes
from catchment.softswitch.compiler.backend.expressions import Expressions
from catchment.softswitch.compiler.backend.parser_states import write_states
from catchment.softswitch.compiler.backend.scope import (
    ProgramScope,
    Scope,
    action_name,
    state_name,
    unit_name,
    variable_name,
)
from catchment.softswitch.compiler.backend.statements import Statements
from catchment.softswitch.compiler.backend.tables import TableFunction, parameter
from catchment.softswitch.compiler.backend.text import Writer, identifier
from catchment.softswitch.compiler.diagnostics import refuse_deep
from catchment.softswitch.compiler.types import ExternType


def unit_parameter(ex: Expressions, param: ir.Param) -> str:
    """A member that is a parameter of the unit."""
    name = variable_name(param)
    if isinstance(param.type, ExternType):
        return f"{externs.reference(param.type, param.loc)} {name};"
    cpp = ex.cpp(param.type, param)
    if param.direction in (ir.Direction.OUT, ir.Direction.INOUT):
        return f"{cpp}& {name};"
    return f"const {cpp}& {name};" if calls.is_big(param.type) else f"const {cpp} {name};"


def _members(program: ProgramScope, out: Writer, unit: ir.ControlUnit | ir.ParserUnit) -> None:
    ex = Expressions(Scope(program, out, unit))
    out.line("PacketContext& pkt;")
    out.line(f"const {state_name(unit)}& s;")
    if isinstance(unit, ir.ParserUnit):
        out.line("bits<16>& error;")
    for param in unit.params:
        out.line(unit_parameter(ex, param))
    for local in unit.locals:
        out.line(f"{ex.cpp(local.variable.type, local)} {variable_name(local.variable)}{{}};")


def _used_global_actions(unit: ir.ControlUnit) -> list[ir.Action]:
    found: dict[int, ir.Action] = {}

    def visit(code: object) -> None:
        for node in nodes(code):
            if isinstance(node, ir.ActionCall) and node.action.is_global and id(node.action) not in found:
                found[id(node.action)] = node.action
                visit(node.action.body)

    visit(unit.body)
    for action in unit.actions:
        visit(action.body)
    for table in unit.tables:
        for choice in table.actions:
            if choice.action.is_global and id(choice.action) not in found:
                found[id(choice.action)] = choice.action
                visit(choice.action.body)
    return list(found.values())


def _action(program: ProgramScope, out: Writer, unit: ir.ControlUnit, action: ir.Action) -> None:
    exits = program.exits.action(action)
    scope = Scope(program, out, unit, returns_exit=exits)
    params = ", ".join(parameter(Expressions(scope), p) for p in action.params)
    with out.block(f"{'bool' if exits else 'void'} {action_name(action)}({params})"):
        Statements(scope).run((action.body,))
        if exits:
            out.line("return false;")


def control(program: ProgramScope, out: Writer, unit: ir.ControlUnit) -> None:
    """A control type."""
    exits = program.exits.unit(unit)
    with out.block(f"struct {unit_name(unit)}", "};"):
        _members(program, out, unit)
        direct = [d for d in unit.instances if d.type is not None and d.type.name == "direct_meter"]
        attached = [t.meters for t in unit.tables if t.meters is not None]
        for name in dict.fromkeys(decl.name for decl in [*direct, *attached]):
            out.line(f"std::uint32_t color_{name}{{}};")
        for action in [*_used_global_actions(unit), *unit.actions]:
            _action(program, out, unit, action)
        for table in unit.tables:
            with refuse_deep(table.loc):
                TableFunction(Scope(program, out, unit), table).write()
        scope = Scope(program, out, unit, returns_exit=exits)
        inline = "[[gnu::always_inline]] " if reroll.shiftable(unit) else ""
        with out.block(f"{inline}{'bool' if exits else 'void'} run()"):
            statements = Statements(scope)
            for local in unit.locals:
                if local.init is not None:
                    statements.declare_member(local)
            statements.run((unit.body,))
            if exits:
                out.line("return false;")
    out.line()


def parser(program: ProgramScope, out: Writer, unit: ir.ParserUnit) -> None:
    """A parser type; `run()` returns whether it rejected."""
    with out.block(f"struct {unit_name(unit)}", "};"):
        _members(program, out, unit)
        scope = Scope(program, out, unit, in_parser=True)
        with out.block("bool run()"):
            statements = Statements(scope)
            for local in unit.locals:
                if local.init is not None:
                    statements.declare_member(local)
            write_states(scope, unit)
    out.line()


def write_unit(program: ProgramScope, out: Writer, unit: ir.ControlUnit | ir.ParserUnit) -> None:
    """A control or parser type."""
    if isinstance(unit, ir.ControlUnit):
        control(program, out, unit)
    else:
        parser(program, out, unit)


def function(program: ProgramScope, out: Writer, fn: ir.Function) -> None:
    """A P4 function."""
    scope = Scope(program, out, None, returns_value=True)
    ex = Expressions(scope)
    params = ", ".join(["[[maybe_unused]] PacketContext& pkt", *(parameter(ex, p) for p in fn.params)])
    void = str(fn.return_type) == "void"
    cpp = "void" if void else ex.cpp(fn.return_type, fn)
    with out.block(f"inline {cpp} fn_{identifier(fn.unique)}({params})"):
        Statements(scope).run((fn.body,))
        if not void:
            out.line(f"return {cpp}{{}};")
    out.line()
