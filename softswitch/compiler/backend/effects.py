"""Finds out what code may do: change anything by an expression, end the control by `exit` in a call."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from catchment.softswitch.compiler import ir

_EFFECTS = (ir.FunctionCall, ir.ExternCall, ir.TableApply, ir.StackNext, ir.StackLast)
_CALLS = (ir.ActionCall, ir.SwitchAction, ir.UnitApply)
_OPAQUE = (ir.Variable, ir.Action, ir.Table, ir.Function, ir.InstanceDecl, ir.ControlUnit, ir.ParserUnit)


def children(root: object) -> Iterator[object]:
    """The nodes, and tuples of them, right below `root`; declared objects that are only referred to are left out.

    Every `else if` of an `if` counts as right below it: a chain of them, however long, is one level.
    """
    if isinstance(root, ir.If):
        links, orelse = ir.branches(root)
        for link in links:
            yield link.cond
            yield link.then
        yield orelse
    else:
        yield from _below(root)


def _below(root: object) -> Iterator[object]:
    if isinstance(root, tuple):
        yield from root
    elif isinstance(root, ir.Node):
        for f in dataclasses.fields(root):
            value: Any = getattr(root, f.name)
            if isinstance(value, tuple | ir.Node) and not isinstance(value, _OPAQUE):
                yield value


def nodes(root: object) -> Iterator[ir.Node]:
    """Every node below `root`, itself included, outermost first, in source order."""
    pending = [root]
    while pending:
        at = pending.pop()
        if isinstance(at, ir.Node):
            yield at
        pending += reversed(list(_below(at)))


def has_effects(expr: ir.Expr) -> bool:
    """Whether evaluating an expression may change state or leave the parser."""
    return any(isinstance(n, _EFFECTS) for n in nodes(expr))


def only_emits(unit: ir.ControlUnit | ir.ParserUnit) -> bool:
    """Whether applying a deparser again writes the same headers again, and does nothing else."""
    if not isinstance(unit, ir.ControlUnit) or unit.instances:
        return False
    calls = [node for node in nodes((unit.locals, unit.body)) if isinstance(node, (*_EFFECTS, *_CALLS))]
    return all(isinstance(call, ir.ExternCall) and call.method == "emit" for call in calls)


class ExitAnalysis:
    """Finds the actions, tables and units that may run `exit`. Memoized; the language has no recursion."""

    def __init__(self) -> None:
        self._known: dict[int, bool] = {}

    def _code(self, code: object) -> bool:
        for node in nodes(code):
            if isinstance(node, ir.Exit):
                return True
            if isinstance(node, ir.TableApply | ir.SwitchAction) and self.table(node.table):
                return True
            if isinstance(node, ir.ActionCall) and self.action(node.action):
                return True
            if isinstance(node, ir.UnitApply) and node.instance.unit is not None and self.unit(node.instance.unit):
                return True
        return False

    def action(self, action: ir.Action) -> bool:
        return self._memo(action, lambda: self._code(action.body))

    def table(self, table: ir.Table) -> bool:
        return self._memo(table, lambda: any(self.action(choice.action) for choice in table.actions))

    def unit(self, unit: ir.ControlUnit | ir.ParserUnit) -> bool:
        return self._memo(unit, lambda: isinstance(unit, ir.ControlUnit) and self._code(unit.body))

    def _memo(self, key: object, compute: Any) -> bool:
        if id(key) not in self._known:
            self._known[id(key)] = compute()
        return self._known[id(key)]
