"""Tables, controls and parsers, and the tree of their instances."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from catchment.softswitch.compiler.annotation import Annotation
from catchment.softswitch.compiler.ir.base import Node, Param
from catchment.softswitch.compiler.ir.expressions import Expr
from catchment.softswitch.compiler.ir.statements import Block, Declare, Stmt
from catchment.softswitch.compiler.ir.tables import (
    Action,
    ActionValue,
    Entry,
    Function,
    Key,
    Match,
    TableAction,
    ValueSet,
)
from catchment.softswitch.compiler.types import (
    EnumType,
    ExternType,
    HeaderType,
    SerEnumType,
    StructType,
    UnionType,
)


@dataclass(frozen=True, slots=True, eq=False)
class InstanceDecl(Node):
    """A sub-instance of a unit, or an extern instance at the program's top level (`is_global`).

    `unit` is set for controls and parsers, `type` for externs. `args` are the constructor arguments (literals, enum
    values; a
    reference to another extern instance is left out and appears as an alias inside the unit).
    """

    name: str
    cp_name: str
    unit: ControlUnit | ParserUnit | None
    type: ExternType | None
    args: tuple[Expr, ...]
    annotations: tuple[Annotation, ...]
    alias: bool = False
    is_global: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Table(Node):
    """A table. `size` is 0 when not given (P4Info then says 1024, as p4c).

    `keys` may be empty: the default action runs.
    """

    name: str
    cp_name: str
    keys: tuple[Key, ...]
    actions: tuple[TableAction, ...]
    default_action: ActionValue
    const_default: bool
    entries: tuple[Entry, ...]
    const_entries: bool
    largest_priority_wins: bool
    size: int
    implementation: InstanceDecl | None
    """An action_profile or action_selector."""
    counters: InstanceDecl | None
    """A direct_counter."""
    meters: InstanceDecl | None
    """A direct_meter."""
    support_timeout: bool
    annotations: tuple[Annotation, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ControlUnit(Node):
    """A control type specialised by its constructor arguments.

    `locals` run first on each apply (Declares, in order).
    """

    name: str
    unique: str
    params: tuple[Param, ...]
    instances: tuple[InstanceDecl, ...]
    locals: tuple[Declare, ...]
    actions: tuple[Action, ...]
    tables: tuple[Table, ...]
    body: Block
    annotations: tuple[Annotation, ...]


@dataclass(frozen=True, slots=True)
class SelectCase(Node):
    """A label of a select: one `Match` per selector (a single VALUE_SET over several selectors stands for all of
    them)."""

    matches: tuple[Match, ...]
    next_state: str


@dataclass(frozen=True, slots=True)
class Select(Node):
    """`select (exprs) {...}`: the first case that matches; none: reject, on v1model without an error."""

    exprs: tuple[Expr, ...]
    cases: tuple[SelectCase, ...]


@dataclass(frozen=True, slots=True)
class Goto(Node):
    """`transition name;`."""

    next_state: str


@dataclass(frozen=True, slots=True)
class State(Node):
    """A parser state. `accept` and `reject` are implied and have no `State`."""

    name: str
    body: tuple[Stmt, ...]
    transition: Select | Goto
    annotations: tuple[Annotation, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ParserUnit(Node):
    """A parser type specialised by its constructor arguments. It begins in state `start`."""

    name: str
    unique: str
    params: tuple[Param, ...]
    instances: tuple[InstanceDecl, ...]
    value_sets: tuple[ValueSet, ...]
    locals: tuple[Declare, ...]
    states: Mapping[str, State]
    annotations: tuple[Annotation, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ExternInstance:
    """One extern object of the running program, e.g. the register `ingress.aggregate.lane0.sum`."""

    full_name: str
    decl: InstanceDecl


@dataclass(frozen=True, slots=True, eq=False)
class Instance:
    """One control or parser of the running program. `path` is its hierarchical control-plane name."""

    path: str
    decl: InstanceDecl
    unit: ControlUnit | ParserUnit
    children: Mapping[str, Instance | ExternInstance]
    """`InstanceDecl.name` -> what was made of it."""


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """A whole program for one architecture.

    `pipeline` maps the parameter names of the package (v1model's V1Switch: p, vr, ig, eg, ck, dep) to instances.
    `units` are in dependency order (a unit after those that it instantiates), `functions` after those they call.
    """

    architecture: str
    package: str
    pipeline: Mapping[str, Instance]
    units: tuple[ControlUnit | ParserUnit, ...]
    functions: tuple[Function, ...]
    global_actions: tuple[Action, ...]
    global_externs: Mapping[str, ExternInstance]
    errors: tuple[str, ...]
    headers: tuple[HeaderType, ...]
    unions: tuple[UnionType, ...]
    structs: tuple[StructType, ...]
    """Headers, unions and structs in dependency order within each tuple; those of core.p4 and v1model.p4 included."""
    enums: tuple[EnumType | SerEnumType, ...]
    annotations: tuple[Annotation, ...]
    """Those of the package instance `main` (e.g. @pkginfo)."""


def full_name(path: str, cp_name: str) -> str:
    """The control-plane name of something called `cp_name` in the instance at `path`; a leading dot makes it
    absolute."""
    if cp_name.startswith("."):
        return cp_name[1:]
    return f"{path}.{cp_name}" if path else cp_name
