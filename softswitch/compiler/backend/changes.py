"""What egress and the computing of checksums may change of a frame's state: replicas share the rest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from catchment.softswitch.compiler import ir
from catchment.softswitch.compiler.backend.effects import nodes
from catchment.softswitch.compiler.backend.layout import Types
from catchment.softswitch.compiler.backend.long_headers import code_of
from catchment.softswitch.compiler.backend.text import Writer
from catchment.softswitch.compiler.types import StructType

_WRITTEN = (ir.Direction.OUT, ir.Direction.INOUT)
_DROPPED = ("egress_spec", "mcast_grp")
"""Members that mark_to_drop() writes."""

WHOLE = ""
"""Stands for all of a parameter, among the names of its members."""

Changes = list[set[str]]
"""Names of members that may change, by parameter of a block."""


def write_changes(out: Writer, program: ir.Program, types: Types) -> None:
    """Write the function that gives a state back what egress and computing checksums may have changed."""
    params = program.pipeline["ig"].unit.params
    changes = _changes(program.pipeline["eg"].unit)
    for written, computed in zip(changes, _changes(program.pipeline["ck"].unit), strict=False):
        written.update(computed)
    names = ("headers", "metadata", "standard")
    kinds = ("Headers", "Metadata", "StandardMetadata")
    signature = ", ".join(
        f"[[maybe_unused]] {kind}& {name}, [[maybe_unused]] const {kind}& {name}_from"
        for kind, name in zip(kinds, names, strict=True)
    )
    with out.block(f"static void restore({signature})"):
        for param, changed, name in zip(params, changes, names, strict=True):
            if WHOLE in changed or not isinstance(param.type, StructType):
                if changed:
                    out.line(f"{name} = {name}_from;")
                continue
            for field in param.type.fields:
                if field.name in changed:
                    member = types.member(param.type, field.name)
                    out.line(f"{name}.{member} = {name}_from.{member};")


def _changes(unit: ir.ControlUnit | ir.ParserUnit) -> Changes:
    """What a unit may change of its parameters; what it gives out is another value each time."""
    changes: Changes = [{WHOLE} if param.direction is ir.Direction.OUT else set() for param in unit.params]
    for root in code_of(unit):
        for node in nodes(root):
            for place, member in _written(node):
                _note(changes, unit.params, place, member)
    if isinstance(unit, ir.ControlUnit):
        for table in unit.tables:
            for choice in table.actions:
                for place in _given(choice.action.params, choice.bound):
                    _note(changes, unit.params, place, WHOLE)
    return changes


def _written(node: ir.Node) -> Iterator[tuple[ir.Expr, str]]:
    """The places that a node itself may write, and which member there."""
    if isinstance(node, ir.Assign):
        yield node.target, WHOLE
    elif isinstance(node, ir.SetValidity):
        yield node.header, WHOLE
    elif isinstance(node, ir.StackShift):
        yield node.stack, WHOLE
    elif isinstance(node, ir.ExternCall) and (node.extern, node.method) == ("", "mark_to_drop"):
        yield from ((place, name) for place in node.args for name in _DROPPED)
    elif isinstance(node, ir.ExternCall):
        yield from ((place, WHOLE) for place in _given(node.params, node.args))
    elif isinstance(node, ir.FunctionCall):
        yield from ((place, WHOLE) for place in _given(node.function.params, node.args))
    elif isinstance(node, ir.ActionCall):
        yield from ((place, WHOLE) for place in _given(node.action.params, node.args))
    elif isinstance(node, ir.UnitApply) and node.instance.unit is not None:
        for place, names in zip(node.args, _changes(node.instance.unit), strict=True):
            yield from ((place, name) for name in names)


def _given(params: Sequence[ir.Param], args: Sequence[ir.Expr | None]) -> Iterator[ir.Expr]:
    """Arguments that a call may write."""
    for param, arg in zip(params, args, strict=False):
        if param.direction in _WRITTEN and arg is not None:
            yield arg


def _note(changes: Changes, params: Sequence[ir.Param], place: ir.Expr, member: str) -> None:
    """Note that a member of a place, or all of it, may be written, if the place is one of the parameters or in one."""
    while isinstance(place, ir.FieldRef | ir.Index | ir.Slice | ir.PlusSlice | ir.StackNext | ir.StackLast):
        if isinstance(place, ir.FieldRef):
            member, place = place.name, place.base
        elif isinstance(place, ir.StackNext | ir.StackLast):
            member, place = WHOLE, place.stack
        else:
            member, place = WHOLE, place.base
    for param, names in zip(params, changes, strict=True):
        if isinstance(place, ir.VarRef) and param is place.variable:
            names.add(member)
