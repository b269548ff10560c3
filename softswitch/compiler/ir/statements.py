"""Statements of the IR."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from catchment.softswitch.compiler.ir.base import Node, Variable
from catchment.softswitch.compiler.ir.expressions import Expr

if TYPE_CHECKING:
    from catchment.softswitch.compiler.ir.tables import Action, Table
    from catchment.softswitch.compiler.ir.units import InstanceDecl


@dataclass(frozen=True, slots=True)
class Stmt(Node):
    """A statement."""


@dataclass(frozen=True, slots=True)
class Block(Stmt):
    """A sequence. Variables' `unique` names never clash, so a back end need not open a scope."""

    body: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class Declare(Stmt):
    """A variable comes into being, initialised or not, each time this is executed."""

    variable: Variable
    init: Expr | None


@dataclass(frozen=True, slots=True)
class Assign(Stmt):
    """`target = value`; the types are equal."""

    target: Expr
    value: Expr


@dataclass(frozen=True, slots=True)
class If(Stmt):
    """`orelse` may be an empty block."""

    cond: Expr
    then: Block
    orelse: Block


@dataclass(frozen=True, slots=True)
class Evaluate(Stmt):
    """An expression for its effect: `FunctionCall`, `ExternCall`, `TableApply`."""

    expr: Expr


@dataclass(frozen=True, slots=True)
class ActionCall(Stmt):
    """A direct call of an action; arguments for all its parameters, in order."""

    action: Action
    args: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class UnitApply(Stmt):
    """`instance.apply(args)` of a sub-control or sub-parser; directions are those of `instance.unit.params`."""

    instance: InstanceDecl
    args: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class SetValidity(Stmt):
    """`header.setValid()` / `setInvalid()`. In a union, setValid makes the others invalid."""

    header: Expr
    valid: bool


@dataclass(frozen=True, slots=True)
class StackShift(Stmt):
    """`stack.push_front(count)` (`push` true) or `pop_front(count)`."""

    stack: Expr
    push: bool
    count: int


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


@dataclass(frozen=True, slots=True)
class ValueCase(Node):
    """One arm of a switch on values: any of `values` (literals or enum values), or everything else."""

    values: tuple[Expr, ...]
    is_default: bool
    body: Block


@dataclass(frozen=True, slots=True)
class SwitchValue(Stmt):
    """`switch (subject)` on bit, int, enum, or error. At most one arm runs."""

    subject: Expr
    cases: tuple[ValueCase, ...]


@dataclass(frozen=True, slots=True)
class For(Stmt):
    """`for (init; cond; update) body`."""

    init: tuple[Stmt, ...]
    cond: Expr
    update: tuple[Stmt, ...]
    body: Block


@dataclass(frozen=True, slots=True)
class ForRange(Stmt):
    """`for (variable in low .. high)`, both inclusive, evaluated once; none if low > high."""

    variable: Variable
    low: Expr
    high: Expr
    body: Block


@dataclass(frozen=True, slots=True)
class ForEach(Stmt):
    """`for (variable in collection)` over a header stack (all elements), tuple or list aggregate."""

    variable: Variable
    collection: Expr
    body: Block


@dataclass(frozen=True, slots=True)
class Break(Stmt):
    """Leaves the innermost loop."""


@dataclass(frozen=True, slots=True)
class Continue(Stmt):
    """Goes on with the innermost loop's next round."""


@dataclass(frozen=True, slots=True)
class Return(Stmt):
    """Leaves the action, function, or control's apply block."""

    value: Expr | None


@dataclass(frozen=True, slots=True)
class Exit(Stmt):
    """Ends the whole top-level control (ingress, egress, ...), out of every nested call; copy-out still happens."""
