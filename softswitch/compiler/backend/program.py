"""A whole program as one C++ file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from catchment.softswitch.compiler import ir
from catchment.softswitch.compiler.backend import units, user_externs
from catchment.softswitch.compiler.backend.changes import write_changes
from catchment.softswitch.compiler.backend.declarations import Declarations
from catchment.softswitch.compiler.backend.description import Description
from catchment.softswitch.compiler.backend.effects import ExitAnalysis, nodes, only_emits
from catchment.softswitch.compiler.backend.errors import unsupported
from catchment.softswitch.compiler.backend.frame_runs import leave_in_frames
from catchment.softswitch.compiler.backend.ids import Ids
from catchment.softswitch.compiler.backend.instances import Binding, globals_struct, unit_struct
from catchment.softswitch.compiler.backend.layout import Types
from catchment.softswitch.compiler.backend.long_headers import late_runs, write_passes
from catchment.softswitch.compiler.backend.objects import collect, place_registers
from catchment.softswitch.compiler.backend.scope import ProgramScope, instance_member, state_name, unit_name
from catchment.softswitch.compiler.backend.state_size import check_state
from catchment.softswitch.compiler.backend.text import Writer, string_literal
from catchment.softswitch.compiler.diagnostics import refuse_deep
from catchment.softswitch.compiler.source import Location
from catchment.softswitch.compiler.types import FieldsType, StructType, Type

BLOCKS = ("p", "vr", "ig", "eg", "ck", "dep")

_HEAD = """\
// Compiled from P4; do not edit.
#include "catchment/softswitch/rt/hash.hpp"
#include "catchment/softswitch/rt/text.hpp"
#include "catchment/softswitch/rt/v1model.hpp"

#include <algorithm>
#include <memory>
{externs}
namespace {{

using namespace catchment::softswitch;      // NOLINT
using namespace catchment::softswitch::rt;  // NOLINT

struct Applied {{
  bool hit;
  std::uint32_t action;
  bool exited;
}};
"""


def _include(externs: Path | None) -> str:
    return f"#include {string_literal(str(externs.resolve()))}\n" if externs is not None else ""


def _types_used(program: ir.Program) -> Iterator[tuple[Type, Location]]:
    """Every type that code mentions, and where: tuples among them are defined only so."""
    for unit in program.units:
        yield from ((p.type, p.loc) for p in unit.params)
        yield from ((d.variable.type, d.loc) for d in unit.locals)
        roots: list[object] = [unit.locals]
        if isinstance(unit, ir.ControlUnit):
            roots.append(unit.body)
            for action in unit.actions:
                roots.append(action.body)
                yield from ((p.type, p.loc) for p in action.params)
            for table in unit.tables:
                roots += [table.keys, tuple(b for a in table.actions for b in a.bound if b is not None)]
        else:
            roots += [(s.body, s.transition) for s in unit.states.values()]
        for root in roots:
            yield from _types_in(root)
    for function in program.functions:
        yield function.return_type, function.loc
        yield from ((p.type, p.loc) for p in function.params)
        yield from _types_in(function.body)
    for action in program.global_actions:
        yield from ((p.type, p.loc) for p in action.params)
        yield from _types_in(action.body)


def _types_in(root: object) -> Iterator[tuple[Type, Location]]:
    for node in nodes(root):
        if isinstance(node, ir.Expr):
            yield node.type, node.loc
        elif isinstance(node, ir.Declare | ir.ForRange | ir.ForEach):
            yield node.variable.type, node.loc


def _has_lists(t: StructType, known: dict[StructType, bool]) -> bool:
    """Whether a field has @field_list, here or further in: each type is looked at once, however often it is there."""
    if t not in known:
        known[t] = any(
            any(annotation.name == "field_list" for annotation in field.annotations)
            or (isinstance(field.type, StructType) and _has_lists(field.type, known))
            for field in t.fields
        )
    return known[t]


def _field_lists(t: StructType, path: str, types: Types, known: dict[StructType, bool]) -> Iterator[tuple[int, str]]:
    """(list, member path) of every field with @field_list; `known`: which types have some."""
    if not _has_lists(t, known):
        return
    for field in t.fields:
        member = f"{path}.{types.member(t, field.name)}"
        listed = False
        for annotation in field.annotations:
            if annotation.name == "field_list":
                listed = True
                yield from ((int(v), member) for v in annotation.values)
        if not listed and isinstance(field.type, StructType):
            yield from _field_lists(field.type, member, types, known)


class _Generator:
    def __init__(self, program: ir.Program, p4info: Any, name: str, externs: Path | None) -> None:
        self.program = program
        self.externs = externs
        self.name = name
        self.types = Types()
        self.ids = Ids(p4info)
        self.objects = collect(program, self.ids)
        self.places, self.arena = place_registers(program)
        roles = zip(program.pipeline["ig"].unit.params, ("headers", "metadata", "standard"), strict=True)
        self.scope = ProgramScope(self.types, ExitAnalysis(), program.errors, {id(p.type): role for p, role in roles})
        self.scope.has_user_externs = externs is not None
        leave_in_frames(program, self.types, self.scope.exits, program.pipeline["ig"].unit.params[0].type)
        self.out = Writer()

    def root(self, block: str) -> ir.Instance:
        return self.program.pipeline[block]

    def write(self) -> str:
        for block in BLOCKS:
            if block not in self.program.pipeline:
                raise unsupported(
                    self.root(next(iter(self.program.pipeline))).decl.loc, f"a {self.program.package} without {block}"
                )
        for param in self.root("ig").unit.params[:2]:
            if isinstance(param.type, FieldsType):
                check_state(param.type)
        code = Writer()
        for function in self.program.functions:
            with refuse_deep(function.loc):
                units.function(self.scope, code, function)
        for unit in self.program.units:
            with refuse_deep(unit.loc):
                units.write_unit(self.scope, code, unit)
        declarations = Declarations(self.types)
        for t, loc in _types_used(self.program):
            declarations.require(t, loc)

        out = self.out
        out.lines += _HEAD.format(externs=_include(self.externs)).splitlines()
        out.line()
        description = Description(
            self.types,
            self.ids,
            self.objects,
            places=self.places,
            arena=self.arena,
            own_state=self.externs is not None,
            out=out,
        )
        out.extend(declarations.out)
        out.line()
        globals_struct(out, self.program)
        for unit in self.program.units:
            unit_struct(out, unit)
        out.extend(code)
        description.write(self.name, list(dict.fromkeys(d.name for d in self.scope.digests)), self.program.headers)
        self._class(description)
        out.line("}  // namespace")
        out.line()
        out.line(
            'extern "C" [[gnu::visibility("default")]] std::uint32_t catchment_program_abi() { return kProgramAbi; }'
        )
        out.line(
            'extern "C" [[gnu::visibility("default")]] rt::Program* catchment_program_create() { return new Compiled; }'
        )
        return str(out)

    def _class(self, description: Description) -> None:
        out = self.out
        ingress = self.root("ig").unit
        headers, metadata, standard = (self.types.cpp(p.type, p.loc) for p in ingress.params)
        with out.block("class Compiled final : public rt::Program", "};"):
            out.line("public:")
            out.line(f"using Headers = {headers};")
            out.line(f"using Metadata = {metadata};")
            out.line(f"using StandardMetadata = {standard};")
            out.line(f"static constexpr bool kCountsSteps = {'true' if self.scope.counts_steps else 'false'};")
            emits = "true" if only_emits(self.root("dep").unit) else "false"
            out.line(f"static constexpr bool kOnlyEmits = {emits};")
            out.line("[[nodiscard]] const ProgramInfo& info() const override { return info_; }")
            out.line("[[nodiscard]] const Layout& layout() const override { return layout_; }")
            out.line(
                "[[nodiscard]] std::vector<TableEntry> initial_entries() const override { return make_entries(); }"
            )
            with out.block("void process(std::span<const InputFrame> frames, Engine& engine) override"):
                out.line("model_.run(frames, engine);")
            self._bind()
            self._blocks()
            self._preserve()
            write_passes(out, late_runs(self.program, self.types, ingress.params[0].type))
            write_changes(out, self.program, self.types)
            if self.scope.digests:
                description.send_digest(self.scope.digests)
            out.line("private:")
            out.line("ProgramInfo info_ = make_info();")
            out.line("Layout layout_ = make_layout();")
            out.line("Globals globals_;")
            for block in BLOCKS:
                out.line(f"{state_name(self.root(block).unit)} {block}_;")
            out.line("V1Model<Compiled> model_{*this};")

    def _bind(self) -> None:
        out = self.out
        binding = Binding(self.types, self.objects, self.places, out)
        with out.block("void bind([[maybe_unused]] const Bindings& b) override"):
            for extern in self.program.global_externs.values():
                binding.extern(f"globals_.{instance_member(extern.decl)}", extern)
            for block in BLOCKS:
                binding.instance(f"{block}_", self.root(block))

    def _blocks(self) -> None:
        out = self.out
        name = {block: unit_name(self.root(block).unit) for block in BLOCKS}
        context = "PacketContext& packet"
        state = "Headers& headers, Metadata& metadata, StandardMetadata& standard"
        with out.block(f"bits<16> parse({context}, PacketReader& in, {state})"):
            out.line("bits<16> error = 0;")
            out.line(f"{name['p']}{{packet, p_, error, in, headers, metadata, standard}}.run();")
            out.line("return error;")
        for function, block in (("verify", "vr"), ("compute", "ck")):
            with out.block(f"void {function}({context}, Headers& headers, Metadata& metadata)"):
                out.line(f"{name[block]}{{packet, {block}_, headers, metadata}}.run();")
        for function, block in (("ingress", "ig"), ("egress", "eg")):
            with out.block(f"void {function}({context}, {state})"):
                out.line(f"{name[block]}{{packet, {block}_, headers, metadata, standard}}.run();")
                if block == "ig" and self.scope.digests:
                    out.line("if (packet.requests.digest != 0) send_digest(packet, headers, metadata, standard);")
        with out.block(f"void deparse({context}, PacketWriter& out, const Headers& headers)"):
            out.line(f"{name['dep']}{{packet, dep_, out, headers}}.run();")

    def _preserve(self) -> None:
        metadata = self.root("ig").unit.params[1].type
        lists: dict[int, list[str]] = {}
        if isinstance(metadata, StructType):
            for number, path in _field_lists(metadata, "", self.types, {}):
                if not 0 <= number < 256:  # nobody can ask for it: the index of a list is a bit<8>
                    continue
                lists.setdefault(number, []).append(path)
        unused = "" if lists else "[[maybe_unused]] "
        parameters = f"{unused}std::uint32_t list, {unused}const Metadata& from, {unused}Metadata& to"
        with self.out.block(f"void preserve({parameters})"):
            for number, paths in lists.items():
                with self.out.block(f"if (list == {number})"):
                    for path in paths:
                        self.out.line(f"to{path} = from{path};")


def generate(program: ir.Program, p4info: Any, name: str, externs: Path | None = None) -> str:
    """The C++ source of `program`, with the ids of `p4info`; `externs` implements externs of the program's own.

    Raises:
        CompileError: the program has what the target does not take.
    """
    if externs is None:
        user_externs.refuse_without_file(program)
    with refuse_deep(program.pipeline["ig"].decl.loc, "code or instances are"):
        return _Generator(program, p4info, name, externs).write()
