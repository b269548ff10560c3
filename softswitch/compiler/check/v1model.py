"""What v1model asks of a whole program, beyond the language: the rules that p4c's back end for it applies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from catchment.softswitch.compiler import ast, ir
from catchment.softswitch.compiler.check.typing import MAX_SIZE
from catchment.softswitch.compiler.diagnostics import Diagnostics, Refusal, shown
from catchment.softswitch.compiler.types import BitType, ErrorType, HeaderType, StackType, StructType, Type, UnionType

_CHECKSUMS = {
    "vr": ("verify_checksum", "verify_checksum_with_payload"),
    "ck": ("update_checksum", "update_checksum_with_payload"),
}
_CHECKSUM_CALLS = tuple(name for names in _CHECKSUMS.values() for name in names)


BLOCKS = {"p": 4, "vr": 2, "ig": 3, "eg": 3, "ck": 2, "dep": 2}
"""The parameters of the package V1Switch, and how many parameters the block that each takes has."""
_STANDARD_METADATA = {
    "ingress_port": 9,
    "egress_spec": 9,
    "egress_port": 9,
    "instance_type": 32,
    "packet_length": 32,
    "enq_timestamp": 32,
    "ingress_global_timestamp": 48,
    "egress_global_timestamp": 48,
    "mcast_grp": 16,
    "egress_rid": 16,
    "checksum_error": 1,
}
"""What the target sets or reads of it, and its width; also `parser_error`, an error."""


def check_package(package: ast.PackageDecl) -> None:
    """Refuses a package of the architecture's name that is not the architecture's, before it is instantiated."""
    names = [param.name for param in package.params]
    if names != list(BLOCKS):
        message = f"{package.name}: the program declares this package with the blocks {', '.join(names) or '(none)'}"
        hint = f"v1model's has {', '.join(BLOCKS)}: #include <v1model.p4>, or call yours something else"
        raise Refusal(package.loc, message, hint)


def check_blocks(package: ast.PackageDecl, blocks: Mapping[str, ir.InstanceDecl]) -> None:
    """Refuses blocks that take other parameters than v1model's: the program declared their types itself."""
    for name, wanted in BLOCKS.items():
        unit = blocks[name].unit
        assert unit is not None, "a block is a control or parser"
        kind = ir.ParserUnit if name == "p" else ir.ControlUnit
        if not isinstance(unit, kind) or len(unit.params) != wanted:
            message = f"{package.name}: {name} is declared otherwise than v1model's, which has {wanted} parameters"
            raise Refusal(package.loc, message, "#include <v1model.p4>, or call your package something else")


def _standard_metadata(program: ir.Program, diagnostics: Diagnostics) -> None:
    """A program that declares the type itself must declare what the target sets and reads."""
    t = program.pipeline["ig"].unit.params[2].type
    if not isinstance(t, StructType):
        diagnostics.error(program.pipeline["ig"].unit.params[2].loc, f"{t}: the standard metadata must be a struct")
        return
    for name, width in _STANDARD_METADATA.items():
        field = t.field(name)
        if field is None or not isinstance(field.type, BitType) or field.type.width != width:
            message = f"{t}: v1model's standard metadata have a field bit<{width}> {name}"
            diagnostics.error(t.loc, message, "#include <v1model.p4> declares all of them")
    error = t.field("parser_error")
    if error is None or not isinstance(error.type, ErrorType):
        diagnostics.error(t.loc, f"{t}: v1model's standard metadata have a field error parser_error")


def check_program(program: ir.Program, diagnostics: Diagnostics) -> None:
    """Adds an error for each rule that the program breaks."""
    _standard_metadata(program, diagnostics)
    headers = program.pipeline["p"].unit.params[1]
    if not isinstance(headers.type, StructType) or not _only_headers(headers.type):
        message = f"{headers.type}: the type of the headers must be a struct of headers, stacks and unions"
        diagnostics.error(headers.loc, message, "other fields belong in the metadata")
    metadata = program.pipeline["p"].unit.params[2]
    if not isinstance(metadata.type, StructType):
        diagnostics.error(metadata.loc, f"{metadata.type}: the type of the metadata must be a struct")
    for extern in program.global_externs.values():
        _register_size(extern.decl, diagnostics)
    attached: dict[ir.InstanceDecl, ir.Table] = {}
    for unit in program.units:
        if isinstance(unit, ir.ControlUnit):
            _direct_objects(unit, attached, diagnostics)
        for decl in unit.instances:
            _register_size(decl, diagnostics)
    for block, root in program.pipeline.items():
        for unit in _units(root):
            _checksums(unit, _CHECKSUMS.get(block, ()), diagnostics)


def _register_size(decl: ir.InstanceDecl, diagnostics: Diagnostics) -> None:
    if decl.type is None or decl.type.name != "register" or not decl.args:
        return
    size = decl.args[0]
    if isinstance(size, ir.Literal) and int(size.value) > MAX_SIZE:
        diagnostics.error(size.loc, f"{decl.name}: {shown(int(size.value))} cells; a register has {MAX_SIZE} at most")


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
