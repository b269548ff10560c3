"""Functions, actions, and what the keys and entries of tables are."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from catchment.softswitch.compiler.annotation import Annotation
from catchment.softswitch.compiler.ir.base import Direction, Node, Param
from catchment.softswitch.compiler.ir.expressions import Expr
from catchment.softswitch.compiler.ir.statements import Block
from catchment.softswitch.compiler.types import Type


@dataclass(frozen=True, slots=True, eq=False)
class Function(Node):
    """A P4 function, specialised by its type arguments. `unique` is an identifier unique in the program."""

    name: str
    unique: str
    params: tuple[Param, ...]
    return_type: Type
    body: Block


@dataclass(frozen=True, slots=True, eq=False)
class Action(Node):
    """An action of a unit, or of the program when `is_global`. Parameters with no direction are the control plane's
    data.

    `cp_name` is the control-plane name within the unit's instance; see `full_name`.
    """

    name: str
    cp_name: str
    params: tuple[Param, ...]
    body: Block
    is_global: bool
    annotations: tuple[Annotation, ...]

    @property
    def data(self) -> tuple[Param, ...]:
        """The parameters that a table entry carries."""
        return tuple(p for p in self.params if p.direction is Direction.NONE)


class MatchValueKind(Enum):
    """What a `Match` holds."""

    ANY = "any"
    EXACT = "exact"
    MASK = "mask"
    RANGE = "range"
    VALUE_SET = "value_set"


@dataclass(frozen=True, slots=True, eq=False)
class ValueSet(Node):
    """A `value_set<T>(size)`; its members come from the control plane. `element` T is a bit type, struct or tuple."""

    name: str
    cp_name: str
    element: Type
    size: int
    annotations: tuple[Annotation, ...]


@dataclass(frozen=True, slots=True)
class Match(Node):
    """One component of a select case or table entry.

    EXACT: `first`. MASK: `first &&& second`. RANGE: `first .. second`, both inclusive. VALUE_SET: `value_set`. For an
    lpm
    key, MASK's mask is a run of ones from the top and EXACT means the full length.
    """

    kind: MatchValueKind
    first: Expr | None = None
    second: Expr | None = None
    value_set: ValueSet | None = None


@dataclass(frozen=True, slots=True)
class Key(Node):
    """One key field: `kind` is the match kind's name, `name` the control-plane name of the field."""

    expr: Expr
    kind: str
    name: str
    annotations: tuple[Annotation, ...]


@dataclass(frozen=True, slots=True)
class TableAction(Node):
    """An action a table may run. `bound` are the arguments written in the action list for its directed parameters,

    aligned with `action.params` (None for a parameter that the entry supplies)."""

    action: Action
    bound: tuple[Expr | None, ...]
    annotations: tuple[Annotation, ...]
    table_only: bool
    default_only: bool


@dataclass(frozen=True, slots=True)
class ActionValue(Node):
    """An action with its data: literals, aligned with `choice.action.data`. `choice` is the table's `TableAction`."""

    choice: TableAction
    data: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Entry(Node):
    """An entry written in the program; `matches` are aligned with the table's keys without those of kind selector.

    In a const list the first that matches wins and `priority` is None. In another list every entry of a table with
    ternary, range or optional keys has a priority; `Table.largest_priority_wins` says which end of the scale wins.
    """

    matches: tuple[Match, ...]
    action: ActionValue
    priority: int | None
    is_const: bool
    annotations: tuple[Annotation, ...]
