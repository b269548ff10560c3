"""What v1model asks of a whole program, beyond the language: the rules that p4c's back end for it applies."""

from __future__ import annotations

from collections.abc import Iterator

from catchment.softswitch.compiler import ir
from catchment.softswitch.compiler.diagnostics import Diagnostics
from catchment.softswitch.compiler.types import HeaderType, StackType, StructType, Type, UnionType

_CHECKSUMS = {
    "vr": ("verify_checksum", "verify_checksum_with_payload"),
    "ck": ("update_checksum", "update_checksum_with_payload"),
}
_CHECKSUM_CALLS = tuple(name for names in _CHECKSUMS.values() for name in names)


def check_program(program: ir.Program, diagnostics: Diagnostics) -> None:
    """Adds an error for each rule that the program breaks."""
    headers = program.pipeline["p"].unit.params[1]
    if not isinstance(headers.type, StructType) or not _only_headers(headers.type):
        message = f"{headers.type}: the type of the headers must be a struct of headers, stacks and unions"
        diagnostics.error(headers.loc, message, "other fields belong in the metadata")
    metadata = program.pipeline["p"].unit.params[2]
    if not isinstance(metadata.type, StructType):
        diagnostics.error(metadata.loc, f"{metadata.type}: the type of the metadata must be a struct")
    attached: dict[ir.InstanceDecl, ir.Table] = {}
    for unit in program.units:
        if isinstance(unit, ir.ControlUnit):
            _direct_objects(unit, attached, diagnostics)
    for block, root in program.pipeline.items():
        for unit in _units(root):
            _checksums(unit, _CHECKSUMS.get(block, ()), diagnostics)


def _only_headers(type_: Type) -> bool:
    if isinstance(type_, StackType):
        return isinstance(type_.element, HeaderType | UnionType)
    if isinstance(type_, StructType):
        return all(_only_headers(f.type) for f in type_.fields)
    return isinstance(type_, HeaderType | UnionType)


def _calls(unit: ir.ControlUnit | ir.ParserUnit) -> Iterator[ir.ExternCall]:
    parts = (unit.body, *(a.body for a in unit.actions)) if isinstance(unit, ir.ControlUnit) else ()
    for part in parts:
        for node in ir.walk(part):
            if isinstance(node, ir.ExternCall):
                yield node


def _direct_objects(unit: ir.ControlUnit, attached: dict[ir.InstanceDecl, ir.Table], diagnostics: Diagnostics) -> None:
    """A direct counter or meter has one table; a table with a meter has something that reads it."""
    reads = {call.target for call in _calls(unit) if call.extern == "direct_meter"}
    for table in unit.tables:
        for decl in (table.counters, table.meters):
            if decl is not None and attached.setdefault(decl, table) is not table:
                other = attached[decl].name
                diagnostics.error(table.loc, f"{decl.name}: is the direct object of table {other} already")
        if table.meters is not None and table.meters not in reads:
            message = f"{table.name}: table with direct meter {table.meters.name} must have an action that reads it"
            diagnostics.error(table.loc, message)
    for decl in unit.instances:
        if decl in reads and not decl.alias and decl not in attached:
            message = f"{decl.name}: direct meter is not associated with any table"
            diagnostics.error(decl.loc, message, "name it in a table's `meters` property")


def _units(instance: ir.Instance) -> Iterator[ir.ControlUnit | ir.ParserUnit]:
    yield instance.unit
    for child in instance.children.values():
        if isinstance(child, ir.Instance):
            yield from _units(child)


def _checksums(unit: ir.ControlUnit | ir.ParserUnit, allowed: tuple[str, ...], diagnostics: Diagnostics) -> None:
    """Checksums are verified and updated each in a control of its own."""
    for call in _calls(unit):
        if call.method in _CHECKSUM_CALLS and call.method not in allowed:
            diagnostics.error(call.loc, f"{call.method}: cannot be called here", "call it in its own control")
