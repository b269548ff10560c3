"""Statements as written."""

from __future__ import annotations

from dataclasses import dataclass

from catchment.softswitch.compiler.ast.expressions import Annotation, Call, Expr, Node, TypeExpr


@dataclass(frozen=True, slots=True, eq=False)
class Stmt(Node):
    """A statement, or a declaration among statements."""


@dataclass(frozen=True, slots=True, eq=False)
class Assign(Stmt):
    """`target op= value`; `op` is empty for a plain `=`."""

    target: Expr
    op: str
    value: Expr


@dataclass(frozen=True, slots=True, eq=False)
class CallStmt(Stmt):
    """A call for its effect."""

    call: Call


@dataclass(frozen=True, slots=True, eq=False)
class Block(Stmt):
    """`{ ... }`."""

    body: tuple[Stmt, ...]
    annotations: tuple[Annotation, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Empty(Stmt):
    """`;`."""


@dataclass(frozen=True, slots=True, eq=False)
class If(Stmt):
    """`if (cond) then else orelse`."""

    cond: Expr
    then: Stmt
    orelse: Stmt | None


@dataclass(frozen=True, slots=True, eq=False)
class SwitchCase(Node):
    """`label: block`; label None is `default`; block None falls through."""

    label: Expr | None
    body: Block | None


@dataclass(frozen=True, slots=True, eq=False)
class Switch(Stmt):
    """`switch (subject) { cases }`."""

    subject: Expr
    cases: tuple[SwitchCase, ...]


@dataclass(frozen=True, slots=True, eq=False)
class For(Stmt):
    """`for (init; cond; update) body`."""

    init: tuple[Stmt, ...]
    cond: Expr
    update: tuple[Stmt, ...]
    body: Stmt


@dataclass(frozen=True, slots=True, eq=False)
class ForIn(Stmt):
    """`for (type name in collection) body`."""

    type: TypeExpr
    name: str
    collection: Expr
    body: Stmt


@dataclass(frozen=True, slots=True, eq=False)
class Break(Stmt):
    """`break;`."""


@dataclass(frozen=True, slots=True, eq=False)
class Continue(Stmt):
    """`continue;`."""


@dataclass(frozen=True, slots=True, eq=False)
class Return(Stmt):
    """`return value;`."""

    value: Expr | None


@dataclass(frozen=True, slots=True, eq=False)
class Exit(Stmt):
    """`exit;`."""
