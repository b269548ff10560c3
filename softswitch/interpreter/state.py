"""What lives longer than a packet: registers, counters, meters, and what tables, profiles and value sets hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from catchment.softswitch.compiler import ir
from catchment.softswitch.compiler.types import Type
from catchment.softswitch.errors import SwitchError
from catchment.softswitch.interpreter.entries import ProfileState, TableState, ValueSetState
from catchment.softswitch.interpreter.errors import InterpreterError
from catchment.softswitch.interpreter.meters import MeterCell
from catchment.softswitch.interpreter.user_externs import UserExterns
from catchment.softswitch.interpreter.values import Value, copy_of, default_value

NOT_FOUND = 5


@dataclass(slots=True)
class RegisterState:
    """A register array; outside of it reads give zero and writes are forgotten."""

    type: Type
    cells: list[Value]

    def read(self, index: int) -> Value:
        return copy_of(self.cells[index]) if 0 <= index < len(self.cells) else default_value(self.type)

    def write(self, index: int, value: Value) -> None:
        if 0 <= index < len(self.cells):
            self.cells[index] = value


@dataclass(slots=True)
class CounterCell:
    """Packets and bytes; both are counted whatever the counter's type."""

    packets: int = 0
    bytes: int = 0

    def count(self, length: int) -> None:
        self.packets += 1
        self.bytes += length


@dataclass(slots=True)
class State:
    """All objects of one running program, by full name; `externs` also by the instance they belong to."""

    registers: dict[str, RegisterState] = field(default_factory=dict)
    counters: dict[str, list[CounterCell]] = field(default_factory=dict)
    meters: dict[str, list[MeterCell]] = field(default_factory=dict)
    profiles: dict[str, ProfileState] = field(default_factory=dict)
    tables: dict[str, TableState] = field(default_factory=dict)
    value_sets: dict[str, ValueSetState] = field(default_factory=dict)
    user_externs: UserExterns = field(default_factory=UserExterns)
    user_objects: dict[str, Any] = field(default_factory=dict)
    """Objects of the user's own classes."""


def find(objects: Mapping[str, object], name: str, what: str) -> str:
    """The full name of what `name` is, or an unambiguous end of. Raises SwitchError."""
    if name in objects:
        return name
    found = [full for full in objects if full.endswith("." + name)]
    if len(found) != 1:
        problem = "is ambiguous" if found else "is unknown"
        raise SwitchError(NOT_FOUND, f"{name} {problem} among the {what}: {', '.join(found or objects)}")
    return found[0]


def instances(program: ir.Program) -> Iterator[ir.Instance]:
    """Every control and parser of the running program."""
    waiting = list(program.pipeline.values())
    while waiting:
        instance = waiting.pop(0)
        yield instance
        waiting += [child for child in instance.children.values() if isinstance(child, ir.Instance)]


def _externs(program: ir.Program) -> Iterator[ir.ExternInstance]:
    yield from program.global_externs.values()
    for instance in instances(program):
        yield from (child for child in instance.children.values() if isinstance(child, ir.ExternInstance))


def _size(decl: ir.InstanceDecl) -> int:
    first = decl.args[0]
    if not isinstance(first, ir.Literal) or isinstance(first.value, str):
        raise InterpreterError(f"{decl.loc}: the size of {decl.name} is not a number")
    return int(first.value)


def _constant(args: Sequence[ir.Expr]) -> str:
    return next(arg.member for arg in args if isinstance(arg, ir.EnumValue))


_DIRECT = ("direct_counter", "direct_meter")


def make_state(program: ir.Program, user_externs: UserExterns | None = None) -> State:
    """Everything zero or empty, but for the entries that the program brings with it."""
    state = State(user_externs=user_externs or UserExterns())
    for extern in _externs(program):
        decl, name = extern.decl, extern.full_name
        kind = decl.type.name if decl.type is not None else ""
        if kind == "register":
            assert decl.type is not None
            element = decl.type.type_args[0]
            state.registers[name] = RegisterState(element, [default_value(element) for _ in range(_size(decl))])
        elif kind == "counter":
            state.counters[name] = [CounterCell() for _ in range(_size(decl))]
        elif kind == "meter":
            by_bytes = _constant(decl.args) == "bytes"
            state.meters[name] = [MeterCell(by_bytes) for _ in range(_size(decl))]
        elif kind in ("action_profile", "action_selector"):
            state.profiles[name] = ProfileState(name, kind == "action_selector")
        elif kind not in _DIRECT:
            state.user_objects[name] = state.user_externs.make(decl)
    for instance in instances(program):
        if isinstance(instance.unit, ir.ControlUnit):
            for table in instance.unit.tables:
                profile = table.implementation
                child = instance.children.get(profile.name) if profile is not None else None
                if child is None and profile is not None:
                    child = program.global_externs.get(profile.name)
                name = ir.full_name(instance.path, table.cp_name)
                owned = state.profiles[child.full_name] if isinstance(child, ir.ExternInstance) else None
                state.tables[name] = TableState.of(name, instance, table, owned)
        else:
            for value_set in instance.unit.value_sets:
                name = ir.full_name(instance.path, value_set.cp_name)
                state.value_sets[name] = ValueSetState.of(name, value_set)
    return state
