"""Statements of the IR."""

from __future__ import annotations

from dataclasses import dataclass

from catchment.softswitch.compiler.ir.base import Node, Variable
from catchment.softswitch.compiler.ir.expressions import Expr


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


def branches(stmt: If) -> tuple[list[If], Block]:
    """The `if` with each that follows it as `else if`, in order, and what runs where no condition holds."""
    links = [stmt]
    while len(links[-1].orelse.body) == 1 and isinstance(following := links[-1].orelse.body[0], If):
        links.append(following)
    return links, links[-1].orelse


@dataclass(frozen=True, slots=True)
class Evaluate(Stmt):
    """An expression for its effect: `FunctionCall`, `ExternCall`, `TableApply`."""

    expr: Expr


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
