"""What of a program the control plane sees: the tables that are applied, the actions that can run, and so on.

Order is that of the program with every sub-control put in the place of its declaration, as p4c writes it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from catchment.softswitch.compiler import ir
from catchment.softswitch.compiler.diagnostics import CompileError, Diagnostic
from catchment.softswitch.compiler.p4info.typespec import cp_name
from catchment.softswitch.compiler.types import HeaderType, StructType, Type


@dataclass(slots=True)
class Visible:
    """The control-plane objects of one block of the pipeline, with all that is inside it."""

    tables: list[tuple[ir.Instance, ir.Table]] = field(default_factory=list)
    actions: dict[str, tuple[ir.Action, bool]] = field(default_factory=dict)
    """Full name -> the action, and whether a table may run it: then its data are parameters."""
    externs: list[ir.ExternInstance] = field(default_factory=list)
    value_sets: list[tuple[str, ir.ValueSet]] = field(default_factory=list)
    """The value sets with their full names."""
    digests: list[Type] = field(default_factory=list)
    calls_externs: bool = False
    """Whether an extern function is called."""


def action_name(instance: ir.Instance, action: ir.Action) -> str:
    """The full name of an action that a table or statement of `instance` refers to."""
    return ir.full_name("" if action.is_global else instance.path, action.cp_name)


def digest_name(type_: Type) -> str:
    """What a digest of values of this type goes by."""
    if isinstance(type_, StructType | HeaderType) and not type_.name.startswith("struct#"):
        return cp_name(type_.name, type_.annotations)
    return "digest_0"


def visible(block: ir.Instance, *, unique_names: bool) -> Visible:
    """What the control plane sees of one block. `unique_names`: two actions of one name are an error."""
    result = Visible()
    local_actions: dict[str, tuple[ir.Action, bool]] = {}
    used: dict[int, dict[ir.Action, bool]] = {}
    for instance, item in _in_order(block):
        if isinstance(item, ir.ExternInstance):
            result.externs.append(item)
        elif isinstance(item, ir.ValueSet):
            result.value_sets.append((ir.full_name(instance.path, item.cp_name), item))
        elif isinstance(item, ir.ControlUnit):
            used[id(instance)] = _collect(instance, item, result)
        elif isinstance(item, ir.Action) and item in used[id(instance)]:
            name = action_name(instance, item)
            first, _ = local_actions.setdefault(name, (item, used[id(instance)][item]))
            if unique_names and first.loc != item.loc:
                raise CompileError([Diagnostic(item.loc, f"{name}: conflicting control plane name of this action")])
        elif isinstance(item, ir.Table) and _is_applied(instance, item):
            result.tables.append((instance, item))
    for name, action in local_actions.items():
        result.actions.setdefault(name, action)
    return result


_Item = ir.ExternInstance | ir.ValueSet | ir.Table | ir.Action | ir.ControlUnit


def _in_order(instance: ir.Instance) -> Iterator[tuple[ir.Instance, _Item]]:
    """Declarations of an instance and of those inside it; a unit itself stands before its declarations."""
    unit = instance.unit
    declared: list[ir.InstanceDecl | ir.Table | ir.Action | ir.ValueSet] = [d for d in unit.instances if not d.alias]
    if isinstance(unit, ir.ControlUnit):
        yield instance, unit
        declared += [*unit.actions, *unit.tables]
    else:
        declared += unit.value_sets
    if len({d.loc.file for d in declared}) <= 1:
        declared.sort(key=lambda d: (d.loc.line, d.loc.col))
    for item in declared:
        if not isinstance(item, ir.InstanceDecl):
            yield instance, item
            continue
        child = instance.children[item.name]
        if isinstance(child, ir.Instance):
            yield from _in_order(child)
        else:
            yield instance, child


def _nodes(unit: ir.ControlUnit) -> list[ir.Node]:
    return [node for part in (unit.body, *unit.locals) for node in ir.walk(part)]


def _is_applied(instance: ir.Instance, table: ir.Table) -> bool:
    assert isinstance(instance.unit, ir.ControlUnit), "tables stand in controls"
    return table in _applied(_nodes(instance.unit))


def _collect(instance: ir.Instance, unit: ir.ControlUnit, result: Visible) -> dict[ir.Action, bool]:
    """Adds global actions and digests; the unit's actions that can run, each with whether a table may run it."""
    nodes = _nodes(unit)
    called = {node.action: None for node in nodes if isinstance(node, ir.ActionCall)}
    applied = _applied(nodes)
    by_table = {c.action: None for t in unit.tables if t in applied for c in t.actions}
    for action in (*by_table, *called):
        if action.is_global:
            result.actions.setdefault(action_name(instance, action), (action, action in by_table))
    for action in (*by_table, *called):
        nodes += ir.walk(action.body)
    for node in nodes:
        if isinstance(node, ir.ExternCall) and not node.extern:
            result.calls_externs = True
            if node.method == "digest" and node.type_args[0] not in result.digests:
                result.digests.append(node.type_args[0])
    return {action: action in by_table for action in (*by_table, *called)}


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
