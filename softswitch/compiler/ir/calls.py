"""Expressions and statements that call what a program declares: functions, externs, actions, tables, units."""

from __future__ import annotations

from dataclasses import dataclass

from catchment.softswitch.compiler.ir.base import Node, Param, Variable
from catchment.softswitch.compiler.ir.expressions import Expr
from catchment.softswitch.compiler.ir.statements import Block, Stmt
from catchment.softswitch.compiler.ir.tables import Action, Function
from catchment.softswitch.compiler.ir.units import InstanceDecl, Table
from catchment.softswitch.compiler.types import Type


@dataclass(frozen=True, slots=True)
class InstanceRef(Expr):
    """An extern instance as the argument of a parameter of extern type."""

    instance: InstanceDecl


@dataclass(frozen=True, slots=True)
class FunctionCall(Expr):
    """A call of a P4 function; arguments in parameter order, evaluated in `order` (empty: as they stand)."""

    function: Function
    args: tuple[Expr, ...]
    order: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ExternCall(Expr):
    """A call of an extern function (`target` None) or of a method of an extern object.

    `target` is an `InstanceDecl` of the unit (or of the program, for one at top level), or a `Param` of extern type
    (`packet_in`). `extern` names the object's type, empty for a function. `params` are those of the declaration, with
    types
    substituted, so that directions are known. `type_args` are those of the method or function; the object's own
    are in the target's type.
    """

    target: InstanceDecl | Variable | None
    extern: str
    method: str
    type_args: tuple[Type, ...]
    params: tuple[Param, ...]
    args: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class TableApply(Expr):
    """`table.apply()` with what is asked of it: "" (type void), "hit" or "miss" (type bool)."""

    table: Table
    result: str


@dataclass(frozen=True, slots=True)
class ActionCall(Stmt):
    """A direct call of an action; arguments for all its parameters, evaluated in `order` (empty: as they stand)."""

    action: Action
    args: tuple[Expr, ...]
    order: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class UnitApply(Stmt):
    """`instance.apply(args)` of a sub-control or sub-parser; directions are those of `instance.unit.params`.

    Arguments are evaluated in `order` (empty: as they stand).
    """

    instance: InstanceDecl
    args: tuple[Expr, ...]
    order: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ActionCase(Node):
    """One arm of `switch (t.apply().action_run)`: any of `actions`, or everything else if `is_default`."""

    actions: tuple[Action, ...]
    is_default: bool
    body: Block


@dataclass(frozen=True, slots=True)
class SwitchAction(Stmt):
    """Applies `table`, then runs the arm of the action that ran. Fall-through labels are merged into one case."""

    table: Table
    cases: tuple[ActionCase, ...]
