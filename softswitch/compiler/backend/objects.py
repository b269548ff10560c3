"""The control-visible objects of a program, numbered as the runtime sees them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from catchment.softswitch.compiler import ir
from catchment.softswitch.compiler.backend import registers
from catchment.softswitch.compiler.backend.ids import Ids


@dataclass(frozen=True, slots=True)
class TableObject:
    """One table of one instance."""

    name: str
    id: int
    table: ir.Table
    owner: ir.Instance


@dataclass(frozen=True, slots=True)
class ActionObject:
    """One action of one instance, or a global one."""

    name: str
    id: int
    action: ir.Action


@dataclass(frozen=True, slots=True)
class ExternObject:
    """A register, counter, meter or profile; `table_id` of a direct one."""

    name: str
    id: int
    extern: ir.ExternInstance
    table_id: int = 0


@dataclass(frozen=True, slots=True)
class ValueSetObject:
    """One value set of one parser instance."""

    name: str
    id: int
    value_set: ir.ValueSet
    owner: ir.Instance


@dataclass(slots=True)
class Objects:
    """All of them, in order."""

    tables: list[TableObject] = field(default_factory=list)
    actions: list[ActionObject] = field(default_factory=list)
    registers: list[ExternObject] = field(default_factory=list)
    counters: list[ExternObject] = field(default_factory=list)
    meters: list[ExternObject] = field(default_factory=list)
    profiles: list[ExternObject] = field(default_factory=list)
    value_sets: list[ValueSetObject] = field(default_factory=list)
    instances: list[ir.Instance] = field(default_factory=list)
    action_ids: dict[str, int] = field(default_factory=dict)

    def table_index(self, owner: ir.Instance, table: ir.Table) -> int:
        return next(i for i, t in enumerate(self.tables) if t.owner is owner and t.table is table)


def action_full_name(owner: ir.Instance, action: ir.Action) -> str:
    """The name of an action as used by a table of `owner`."""
    return ir.full_name("" if action.is_global else owner.path, action.cp_name)


_LISTS = {
    "register": ("registers", "registers"),
    "counter": ("counters", "counters"),
    "direct_counter": ("counters", "direct_counters"),
    "meter": ("meters", "meters"),
    "direct_meter": ("meters", "direct_meters"),
    "action_profile": ("profiles", "action_profiles"),
    "action_selector": ("profiles", "action_profiles"),
}


class _Collector:
    def __init__(self, ids: Ids, global_externs: Iterable[ir.ExternInstance]) -> None:
        self.ids = ids
        self.globals = {id(extern.decl): extern for extern in global_externs}
        self.out = Objects()
        self.direct: dict[int, int] = {}
        self.externs: list[ir.ExternInstance] = []
        self.seen: set[int] = set()

    def instance(self, instance: ir.Instance) -> None:
        self.out.instances.append(instance)
        if isinstance(instance.unit, ir.ControlUnit):
            for table in instance.unit.tables:
                self.table(instance, table)
        else:
            for value_set in instance.unit.value_sets:
                name = ir.full_name(instance.path, value_set.cp_name)
                number = self.ids.id("value_sets", name)
                self.out.value_sets.append(ValueSetObject(name, number, value_set, instance))
        for child in instance.children.values():
            if isinstance(child, ir.Instance):
                self.instance(child)
            else:
                self.extern(child)

    def table(self, owner: ir.Instance, table: ir.Table) -> None:
        name = ir.full_name(owner.path, table.cp_name)
        number = self.ids.id("tables", name)
        self.out.tables.append(TableObject(name, number, table, owner))
        for choice in table.actions:
            full = action_full_name(owner, choice.action)
            if full not in self.out.action_ids:
                self.out.action_ids[full] = self.ids.id("actions", full)
                self.out.actions.append(ActionObject(full, self.out.action_ids[full], choice.action))
        for decl in (table.counters, table.meters):
            if decl is not None:
                child = self.globals.get(id(decl)) or owner.children.get(decl.name)
                if isinstance(child, ir.ExternInstance):
                    self.direct[id(child)] = number

    def extern(self, extern: ir.ExternInstance) -> None:
        if id(extern) not in self.seen:
            self.seen.add(id(extern))
            self.externs.append(extern)

    def finish(self) -> Objects:
        for extern in self.externs:
            if extern.decl.type is None or extern.decl.type.name not in _LISTS:
                continue
            target, section = _LISTS[extern.decl.type.name]
            number = self.ids.id(section, extern.full_name)
            table_id = self.direct.get(id(extern), 0)
            if section.startswith("direct") and table_id == 0:
                continue  # not attached to a table
            getattr(self.out, target).append(ExternObject(extern.full_name, number, extern, table_id))
        return self.out


def collect(program: ir.Program, ids: Ids) -> Objects:
    """Walks the instance tree."""
    collector = _Collector(ids, program.global_externs.values())
    for extern in program.global_externs.values():
        collector.extern(extern)
    for root in program.pipeline.values():
        collector.instance(root)
    return collector.finish()


def place_registers(program: ir.Program) -> tuple[dict[int, registers.Place], int]:
    """See registers.place."""
    return registers.place(program.pipeline, list(program.global_externs.values()))
