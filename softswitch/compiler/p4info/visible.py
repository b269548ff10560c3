"""What of a program the control plane sees: the tables that are applied, the actions that can run, and so on."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from softswitch.compiler import ir
from softswitch.compiler.types import Type


@dataclass(slots=True)
class Visible:
    """The control-plane objects of one control instance, in source order."""

    instance: ir.Instance
    tables: list[ir.Table] = field(default_factory=list)
    actions: list[tuple[ir.Action, bool]] = field(default_factory=list)
    """With whether a table may run it: then its data are parameters."""
    externs: list[ir.ExternInstance] = field(default_factory=list)
    digests: list[Type] = field(default_factory=list)
    calls_externs: bool = False
    """Whether an extern function is called."""


def breadth_first(program: ir.Program) -> Iterator[ir.Instance]:
    """The instances, each level of the hierarchy in turn."""
    queue = deque(program.pipeline.values())
    while queue:
        instance = queue.popleft()
        yield instance
        queue.extend(c for c in instance.children.values() if isinstance(c, ir.Instance))


def visible(instance: ir.Instance) -> Visible:
    """What the control plane sees of one instance (not of those inside it)."""
    result = Visible(instance)
    result.externs = [
        c for n, c in instance.children.items() if isinstance(c, ir.ExternInstance) and not _is_alias(instance, n)
    ]
    if isinstance(instance.unit, ir.ControlUnit):
        _collect(instance.unit, result)
    return result


def _is_alias(instance: ir.Instance, name: str) -> bool:
    return any(decl.name == name and decl.alias for decl in instance.unit.instances)


def _collect(unit: ir.ControlUnit, result: Visible) -> None:
    nodes = [node for part in (unit.body, *unit.locals) for node in ir.walk(part)]
    direct = {node.action for node in nodes if isinstance(node, ir.ActionCall)}
    applied = _applied(nodes)
    result.tables = [t for t in unit.tables if t in applied]
    by_table = {c.action: None for t in result.tables for c in t.actions}
    order = [a for a in by_table if a.is_global] + [a for a in unit.actions if a in by_table or a in direct]
    order += [a for a in direct if a.is_global and a not in by_table]
    result.actions = [(a, a in by_table) for a in order]
    for action in order:
        nodes += ir.walk(action.body)
    for node in nodes:
        if isinstance(node, ir.ExternCall) and not node.extern:
            result.calls_externs = True
            if node.method == "digest" and node.type_args[0] not in result.digests:
                result.digests.append(node.type_args[0])


def _applied(nodes: list[ir.Node]) -> set[ir.Table]:
    """The tables applied in `nodes`, and in the keys of those tables."""
    applied: set[ir.Table] = set()
    pending = list(nodes)
    while pending:
        node = pending.pop()
        if isinstance(node, ir.TableApply | ir.SwitchAction) and node.table not in applied:
            applied.add(node.table)
            pending += [inner for key in node.table.keys for inner in ir.walk(key)]
    return applied
