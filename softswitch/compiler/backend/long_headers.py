"""Headers with long runs (layout.Run) that the pipeline need not clear before it parses, and that replicas share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from catchment.softswitch.compiler import ir
from catchment.softswitch.compiler.backend.effects import nodes
from catchment.softswitch.compiler.backend.layout import LONG_RUN, Types, contains
from catchment.softswitch.compiler.backend.text import Writer
from catchment.softswitch.compiler.types import HeaderType, StructType, Type


@dataclass(frozen=True, slots=True)
class LongRun:
    """A run of a header that is a member of the pipeline's headers; both as C++ members."""

    header: str
    array: str


def late_runs(program: ir.Program, types: Types, headers: Type) -> list[LongRun]:
    """Those that are cleared after parsing, where they were not extracted: the parser does nothing else with them.

    Each is of a type that `headers` has once.
    """
    if not isinstance(headers, StructType):
        return []
    found = []
    for field in headers.fields:
        t = field.type
        if not isinstance(t, HeaderType) or sum(contains(other.type, t) for other in headers.fields) != 1:
            continue
        if not only_extracted(program, t):
            continue
        runs = dict.fromkeys(run for run, _ in types.runs(t).values() if run.length * run.width // 8 >= LONG_RUN)
        found += [LongRun(types.member(headers, field.name), run.array) for run in runs]
    return found


def write_passes(out: Writer, late: list[LongRun]) -> None:
    """What V1Model does with the headers besides running blocks."""
    places = [f"{run.header}.{run.array}" for run in late]
    parts = ", ".join(f"Part{{offsetof(Headers, {p}), sizeof std::declval<Headers&>().{p}}}" for p in places)
    out.line(f"static constexpr std::array<Part, {len(late)}> kLate{{{parts}}};")
    with out.block("static void settle([[maybe_unused]] Headers& headers)"):
        for run in late:
            place = f"headers.{run.header}"
            out.line(f"if (!{place}.valid) std::memset({place}.{run.array}, 0, sizeof {place}.{run.array});")


def only_extracted(program: ir.Program, header: HeaderType) -> bool:
    """Whether the parser does nothing with a header but extract it."""
    return not _touches(program, ("p",), header, extracts=True)


def shared(program: ir.Program, header: HeaderType) -> bool:
    """Whether neither egress nor the computing of checksums touches a header: all replicas have the same."""
    return not _touches(program, ("eg", "ck"), header, extracts=False)


def in_metadata(program: ir.Program, header: HeaderType) -> bool:
    """Whether a frame's metadata have such a header, too."""
    return any(
        sum(contains(param.type, header) for param in instance.unit.params) > 1
        for instance in program.pipeline.values()
    )


def has_second(program: ir.Program, header: HeaderType) -> bool:
    """Whether code may have another such header in a variable, or the pipeline's own under two names."""
    units = [unit for block in program.pipeline.values() for unit in units_of(block.unit)]
    code: list[object] = [part for unit in units for part in code_of(unit)]
    code += [function.body for function in program.functions] + [action.body for action in program.global_actions]
    return any(_makes_second(node, header) for part in code for node in nodes(part))


def _makes_second(node: object, header: HeaderType) -> bool:
    if isinstance(node, ir.Declare):
        return contains(node.variable.type, header)
    if not isinstance(node, ir.UnitApply | ir.ActionCall | ir.FunctionCall):
        return False
    if isinstance(node, ir.UnitApply):
        params = node.instance.unit.params if node.instance.unit is not None else ()
    else:
        params = node.action.params if isinstance(node, ir.ActionCall) else node.function.params
    given = [param for param in params if contains(param.type, header)]
    return len(given) > 1 or any(_written(param, header) for param in given)


def _touches(program: ir.Program, blocks: tuple[str, ...], header: HeaderType, *, extracts: bool) -> bool:
    """Whether code of the blocks may name the header, or write it as a part of something; `extracts` do not count."""
    roots: list[object] = [function.body for function in program.functions]
    roots += [action.body for action in program.global_actions]
    for block in blocks:
        for unit in units_of(program.pipeline[block].unit):
            if unit is not program.pipeline[block].unit and any(_written(param, header) for param in unit.params):
                return True
            roots += code_of(unit)
    return any(_writes(root, header) or _names(root, header, extracts=extracts) for root in roots)


def _written(param: ir.Param, header: HeaderType) -> bool:
    return param.direction is ir.Direction.OUT and contains(param.type, header)


def _writes(root: object, header: HeaderType) -> bool:
    """Whether something that has the header in it is written as a whole."""
    for node in nodes(root):
        if isinstance(node, ir.Assign) and contains(node.target.type, header):
            return True
        if isinstance(node, ir.FunctionCall) and any(_written(param, header) for param in node.function.params):
            return True
        if isinstance(node, ir.ActionCall) and any(_written(param, header) for param in node.action.params):
            return True
        if isinstance(node, ir.ExternCall) and any(
            arg.type is not header and contains(arg.type, header) for arg in node.args
        ):
            return True
    return False


def _names(root: object, header: HeaderType, *, extracts: bool) -> bool:
    extracted = {
        id(node.args[0])
        for node in nodes(root)
        if extracts and isinstance(node, ir.ExternCall) and node.method == "extract" and len(node.args) == 1
    }
    return any(isinstance(node, ir.Expr) and node.type is header and id(node) not in extracted for node in nodes(root))


def units_of(unit: ir.ControlUnit | ir.ParserUnit) -> Iterator[ir.ControlUnit | ir.ParserUnit]:
    """A unit and all that it applies."""
    yield unit
    for instance in unit.instances:
        if instance.unit is not None:
            yield from units_of(instance.unit)


def code_of(unit: ir.ControlUnit | ir.ParserUnit) -> list[object]:
    """The code of a unit by itself."""
    if isinstance(unit, ir.ParserUnit):
        return [unit.locals, *((state.body, state.transition) for state in unit.states.values())]
    tables: list[object] = [
        (table.keys, tuple(bound for action in table.actions for bound in action.bound if bound is not None))
        for table in unit.tables
    ]
    return [unit.locals, unit.body, *(action.body for action in unit.actions), *tables]
