"""The C++ functions that describe a program to the runtime: ProgramInfo, Layout, its own entries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from catchment.softswitch.compiler import ir
from catchment.softswitch.compiler.backend import tables
from catchment.softswitch.compiler.backend.entries import initial_entries
from catchment.softswitch.compiler.backend.errors import unsupported
from catchment.softswitch.compiler.backend.ids import Ids
from catchment.softswitch.compiler.backend.layout import Types
from catchment.softswitch.compiler.backend.objects import ExternObject, Objects, TableObject, action_full_name
from catchment.softswitch.compiler.backend.parser_states import value_set_fields, value_set_layout
from catchment.softswitch.compiler.backend.registers import Place
from catchment.softswitch.compiler.backend.scope import DigestRequest
from catchment.softswitch.compiler.backend.text import Writer, string_literal
from catchment.softswitch.compiler.p4info.typespec import flat_fields
from catchment.softswitch.compiler.types import HeaderType

DEFAULT_TABLE_SIZE = 1024


def _bool(value: bool) -> str:
    return "true" if value else "false"


class Description:
    """Writes the functions that describe one program."""

    def __init__(
        self,
        types: Types,
        ids: Ids,
        objects: Objects,
        *,
        places: Mapping[int, Place],
        arena: int,
        own_state: bool,
        out: Writer,
    ) -> None:
        self.types = types
        self.ids = ids
        self.objects = objects
        self.places = places
        self.arena = arena
        self.own_state = own_state
        self.out = out

    def write(self, name: str, digests: Sequence[str], headers: Sequence[HeaderType]) -> None:
        self._registers_array()
        with self.out.block("ProgramInfo make_info()"):
            self.out.line("ProgramInfo info;")
            self.out.line(f"info.name = {string_literal(name)};")
            self._actions()
            for table in self.objects.tables:
                self._table(table)
            self._externs()
            for value_set in self.objects.value_sets:
                self._value_set_info(value_set.id, value_set.name, value_set.value_set)
            for digest in digests:
                number = self._digest_id(digest)
                self.out.line(f"info.digests.push_back({{{number}U, {string_literal(digest)}, {{}}}});")
            self._packet_headers(headers)
            with self.out.block("for (const RegisterPlace& place : kRegisters)"):
                self.out.line(
                    "if (place.id != 0) info.registers.push_back({place.id, place.name, place.width, place.size});"
                )
            self.out.line("return info;")
        with self.out.block("Layout make_layout()"):
            self.out.line("Layout layout;")
            for table in self.objects.tables:
                self._layout("tables", tables.table_layout(self.types, table.table))
            for value_set in self.objects.value_sets:
                self._layout("value_sets", value_set_layout(self.types.width, value_set.value_set))
            with self.out.block("for (const RegisterPlace& place : kRegisters)"):
                self.out.line(
                    "if (place.id != 0) layout.registers.push_back({place.offset, place.stride, place.cell});"
                )
            self.out.line(f"layout.arena_bytes = {self.arena}ULL;")
            self.out.line(f"layout.own_state = {'true' if self.own_state else 'false'};")
            self.out.line("return layout;")
        with self.out.block("std::vector<TableEntry> make_entries()"):
            self.out.line("std::vector<TableEntry> entries;")
            for table in self.objects.tables:
                initial_entries(self.types, self.ids, self.objects, table, self.out)
            self.out.line("return entries;")

    def _packet_headers(self, headers: Sequence[HeaderType]) -> None:
        """The controller headers as they lie in a frame: P4Info has other widths for translated types."""
        for header in headers:
            for name in [str(a.values[0]) for a in header.annotations if a.name == "controller_header" and a.values]:
                found = self.ids.find("controller_packet_metadata", name)
                known = {} if found is None else {one.name: int(one.id) for one in found.metadata}
                fields = ", ".join(
                    f"{{{known.get(field, 0)}U, {max(self.types.width(info.type), 0)}U}}"
                    for field, info in flat_fields(header)
                )
                self.out.line(f"info.packet_headers.push_back({{{string_literal(name)}, {{{fields}}}}});")

    def _digest_id(self, name: str) -> int:
        return self.ids.id("digests", name)

    def send_digest(self, requests: Sequence[DigestRequest]) -> None:
        """The member function that sends what digest() asked for, with the values of the end of ingress."""
        parameters = "[[maybe_unused]] Headers& headers, [[maybe_unused]] Metadata& metadata"
        standard = "[[maybe_unused]] StandardMetadata& standard"
        with self.out.block(f"void send_digest(PacketContext& packet, {parameters}, {standard})"):
            self.out.line("std::vector<std::string>& members = packet.engine.digest;")
            self.out.line("std::uint32_t id = 0;")
            with self.out.block("switch (packet.requests.digest)"):
                for number, request in enumerate(requests, start=1):
                    self.out.line(f"case {number}:")
                    self.out.line(f"id = {self._digest_id(request.name)}U;")
                    for place, member in enumerate(request.members):
                        if member is not None:
                            self.out.line(f"members.at({place}) = {member};")
                    self.out.line("break;")
                self.out.line("default: break;")
            self.out.line("packet.engine.hooks->digest(id, std::move(members));")

    def _registers_array(self) -> None:
        with self.out.block("struct RegisterPlace", "};"):
            self.out.line("std::uint32_t id; const char* name; std::uint32_t width; std::uint64_t size;")
            self.out.line("std::uint64_t offset; std::uint64_t stride; std::uint32_t cell;")
        with self.out.block("constexpr RegisterPlace kRegisters[] =", "};"):
            for r in self.objects.registers:
                p = self.places[id(r.extern)]
                self.out.line(
                    f"{{{r.id}U, {string_literal(r.name)}, {p.width}U, {p.size}ULL, "
                    f"{p.offset}ULL, {p.stride}ULL, {p.cell_bytes}U}},"
                )
            self.out.line('{0U, "", 0U, 0ULL, 0ULL, 0ULL, 0U},')

    def _actions(self) -> None:
        for action in self.objects.actions:
            data = action.action.data
            ids = self.ids.parts("actions", action.name, "params", len(data))
            params = ", ".join(
                f"{{{number}U, {string_literal(p.name)}, {self.types.width(p.type)}U}}"
                for number, p in zip(ids, data, strict=True)
            )
            head = f"{action.id}U, {string_literal(action.name)}"
            self.out.line(f"info.actions.push_back({{{head}, {{{params}}}}});")

    def _table(self, t: TableObject) -> None:
        table = t.table
        out = self.out
        with out.block():
            out.line("TableInfo table;")
            out.line(f"table.id = {t.id}U;")
            out.line(f"table.name = {string_literal(t.name)};")
            keys = tables.match_keys(table)
            for number, key in zip(self.ids.parts("tables", t.name, "match_fields", len(keys)), keys, strict=True):
                width = self.types.width(key.expr.type)
                kind = f"MatchKind::{key.kind}"
                out.line(f"table.fields.push_back({{{number}U, {string_literal(key.name)}, {width}U, {kind}}});")
            for choice in table.actions:
                number = self.objects.action_ids[action_full_name(t.owner, choice.action)]
                allowed = f"{_bool(not choice.default_only)}, {_bool(not choice.table_only)}"
                out.line(f"table.actions.push_back({{{number}U, {allowed}}});")
            out.line(f"table.size = {table.size or DEFAULT_TABLE_SIZE};")
            out.line(f"table.const_entries = {_bool(table.const_entries)};")
            out.line(f"table.const_default = {_bool(table.const_default)};")
            out.line(f"table.idle_timeout = {_bool(table.support_timeout)};")
            for member, decl, objects in (
                ("profile_id", table.implementation, self.objects.profiles),
                ("direct_counter_id", table.counters, self.objects.counters),
                ("direct_meter_id", table.meters, self.objects.meters),
            ):
                if decl is not None:
                    out.line(f"table.{member} = {self._child_id(t.owner, decl, objects)}U;")
            out.line("info.tables.push_back(std::move(table));")

    def _child_id(self, owner: ir.Instance, decl: ir.InstanceDecl, objects: Sequence[ExternObject]) -> int:
        for candidate in objects:
            if candidate.extern is owner.children.get(decl.name) or candidate.extern.decl is decl:
                return candidate.id
        raise unsupported(decl.loc, f"{decl.name} as a table's property")

    def _externs(self) -> None:
        for c in self.objects.counters:
            head = f"{c.id}U, {string_literal(c.name)}, CounterUnit::{_unit(c.extern)}"
            self.out.line(f"info.counters.push_back({{{head}, {_size(c)}ULL, {c.table_id}U}});")
        for m in self.objects.meters:
            head = f"{m.id}U, {string_literal(m.name)}, CounterUnit::{_unit(m.extern)}"
            self.out.line(f"info.meters.push_back({{{head}, {_size(m)}ULL, {m.table_id}U}});")
        for p in self.objects.profiles:
            decl = p.extern.decl
            assert decl.type is not None
            selector = decl.type.name == "action_selector"
            size = decl.args[1 if selector else 0]
            assert isinstance(size, ir.Literal)
            message = self.ids.find("action_profiles", p.name)
            group = int(message.max_group_size) if message is not None else 0
            head = f"{p.id}U, {string_literal(p.name)}, {int(size.value)}ULL"
            self.out.line(f"info.profiles.push_back({{{head}, {_bool(selector)}, {group}U}});")

    def _value_set_info(self, number: int, name: str, value_set: ir.ValueSet) -> None:
        with self.out.block():
            self.out.line(f"ValueSetInfo set{{{number}U, {string_literal(name)}, {{}}, {value_set.size}ULL}};")
            fields = value_set_fields(value_set)
            ids = self.ids.parts("value_sets", name, "match", len(fields))
            for field_id, (field, t, kind) in zip(ids, fields, strict=True):
                text = f"{field_id}U, {string_literal(field)}, {self.types.width(t)}U, MatchKind::{kind}"
                self.out.line(f"set.fields.push_back({{{text}}});")
            self.out.line("info.value_sets.push_back(std::move(set));")

    def _layout(self, target: str, layout: tables.KeyLayout) -> None:
        fields = ", ".join(f"{{{f.word}U, {f.shift}U, {f.words}U, {_bool(f.is_range)}}}" for f in layout.fields)
        head = f"{layout.key_words}U, {layout.ranges}U, {_bool(layout.exact)}"
        self.out.line(f"layout.{target}.push_back({{{head}, {{{fields}}}}});")


def _unit(extern: ir.ExternInstance) -> str:
    kind = next(a.member for a in extern.decl.args if isinstance(a, ir.EnumValue))
    return "both" if kind == "packets_and_bytes" else kind


def _size(extern: ExternObject) -> int:
    first = extern.extern.decl.args[0]
    return int(first.value) if isinstance(first, ir.Literal) else 0
