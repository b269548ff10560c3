"""Instance data of units, and the code that binds it to the runtime's objects."""

from __future__ import annotations

from collections.abc import Mapping

from catchment.softswitch.compiler import ir
from catchment.softswitch.compiler.backend import externs, reroll, user_externs
from catchment.softswitch.compiler.backend.layout import Types
from catchment.softswitch.compiler.backend.objects import ExternObject, Objects
from catchment.softswitch.compiler.backend.parser_states import value_set_member
from catchment.softswitch.compiler.backend.registers import Place
from catchment.softswitch.compiler.backend.scope import instance_member, state_name, table_name
from catchment.softswitch.compiler.backend.text import Writer


def _extern_type(decl: ir.InstanceDecl) -> str | None:
    assert decl.type is not None, "an instance is of a unit or an extern"
    return externs.stored_type(decl.type, decl.loc)


def _members(out: Writer, decls: tuple[ir.InstanceDecl, ...]) -> None:
    for decl in decls:
        cpp = state_name(decl.unit) if decl.unit is not None else _extern_type(decl)
        if cpp is not None:
            out.line(f"{cpp} {instance_member(decl)}{{}};")


def globals_struct(out: Writer, program: ir.Program) -> None:
    """Extern objects at the program's top level."""
    with out.block("struct Globals", "};"):
        _members(out, tuple(e.decl for e in program.global_externs.values()))
    out.line()


def unit_struct(out: Writer, unit: ir.ControlUnit | ir.ParserUnit) -> None:
    """What every instance of a unit has of its own."""
    with out.block(f"struct {state_name(unit)}", "};"):
        out.line("const Globals* g{};")
        _members(out, unit.instances)
        if isinstance(unit, ir.ControlUnit):
            for table in unit.tables:
                out.line(f"const Table* {table_name(table)}{{}};")
            if reroll.shiftable(unit):
                shifted = ", ".join(f"{instance_member(d)}.neighbour(k)" for d in unit.instances)
                with out.block(f"[[nodiscard, gnu::always_inline]] {state_name(unit)} at(std::size_t k) const"):
                    out.line(f"return {{g, {shifted}}};")
        else:
            for value_set in unit.value_sets:
                out.line(f"const Table* {value_set_member(value_set)}{{}};")
    out.line()


class Binding:
    """Writes the body of Program::bind()."""

    def __init__(self, types: Types, objects: Objects, places: Mapping[int, Place], out: Writer) -> None:
        self.types = types
        self.objects = objects
        self.places = places
        self.out = out

    def extern(self, target: str, extern: ir.ExternInstance) -> None:
        cpp = _extern_type(extern.decl)
        if cpp is None:
            return
        if cpp.startswith("Register"):
            place = self.places[id(extern)]
            self.out.line(f"{target} = {{b.arena + {place.offset}ULL, {place.size}ULL, {place.stride}ULL}};")
            return
        if cpp not in ("Counter", "Meter"):
            self.out.line(f"{target} = {user_externs.construction(self.types, extern.decl)};")
            return
        objects = self.objects.counters if cpp == "Counter" else self.objects.meters
        self.out.line(f"{target} = b.{cpp.lower()}s[{_index(objects, extern)}];")

    def instance(self, target: str, instance: ir.Instance) -> None:
        self.out.line(f"{target}.g = &globals_;")
        unit = instance.unit
        if isinstance(unit, ir.ControlUnit):
            for table in unit.tables:
                index = self.objects.table_index(instance, table)
                self.out.line(f"{target}.{table_name(table)} = b.tables[{index}];")
        else:
            for value_set in unit.value_sets:
                index = next(
                    i for i, v in enumerate(self.objects.value_sets) if v.owner is instance and v.value_set is value_set
                )
                self.out.line(f"{target}.{value_set_member(value_set)} = b.value_sets[{index}];")
        for decl in unit.instances:
            child = instance.children[decl.name]
            member = f"{target}.{instance_member(decl)}"
            if isinstance(child, ir.Instance):
                self.instance(member, child)
            else:
                self.extern(member, child)


def _index(objects: list[ExternObject], extern: ir.ExternInstance) -> int:
    return next(i for i, o in enumerate(objects) if o.extern is extern)
