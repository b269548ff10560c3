"""What tables hold, and which entry matches: every entry is looked at, the best one wins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from catchment.softswitch.compiler import ir
from catchment.softswitch.entry import Match
from catchment.softswitch.errors import SwitchError
from catchment.softswitch.interpreter.errors import InterpreterError
from catchment.softswitch.interpreter.matches import Field, Want, key_fields, member_fields, program_match
from catchment.softswitch.interpreter.values import Value, from_bits, width_of

INVALID_ARGUMENT, NOT_FOUND, ALREADY_EXISTS, PERMISSION_DENIED, RESOURCE_EXHAUSTED, OUT_OF_RANGE = 3, 5, 6, 7, 8, 11
DEFAULT_SIZE = 1024
HIGHEST_PRIORITY = 0x7FFFFFFF

Target = tuple[str, int]
"""("member" | "group", id) of a profile."""


@dataclass(frozen=True, slots=True)
class BoundAction:
    """An action and the control plane's data for it."""

    choice: ir.TableAction
    data: tuple[Value, ...]


@dataclass(slots=True, eq=False)
class Row:
    """An entry: one wanted match per key field."""

    wants: tuple[Want, ...]
    priority: int
    action: BoundAction | Target
    packets: int = 0
    bytes: int = 0
    is_const: bool = False


@dataclass(slots=True)
class ProfileState:
    """The members and groups of an action profile or selector."""

    name: str
    selector: bool
    members: dict[int, BoundAction] = field(default_factory=dict)
    groups: dict[int, list[int]] = field(default_factory=dict)
    """Group -> its members, each as often as its weight says."""

    def resolve(self, target: Target, choice: int) -> BoundAction | None:
        """What an entry that points at `target` runs; None: the table's default action."""
        kind, number = target
        if kind == "member":
            return self.members.get(number)
        members = self.groups.get(number, [])
        return self.members[members[choice % len(members)]] if members else None


@dataclass(slots=True)
class TableState:
    """One table of one control instance."""

    name: str
    owner: ir.Instance
    table: ir.Table
    fields: tuple[Field, ...]
    profile: ProfileState | None
    default: BoundAction | Target
    rows: list[Row] = field(default_factory=list)

    @classmethod
    def of(cls, name: str, owner: ir.Instance, table: ir.Table, profile: ProfileState | None) -> TableState:
        """Make a table with the entries and the default action of the program."""
        state = cls(name, owner, table, key_fields(table), profile, _bound(table.default_action))
        places = [_annotated(entry, i + 1) for i, entry in enumerate(table.entries)]
        for entry, place in zip(table.entries, places, strict=True):
            wants = tuple(program_match(f, m) for f, m in zip(state.fields, entry.matches, strict=True))
            priority = max(places) + 1 - place
            if entry.priority is not None:
                priority = entry.priority if table.largest_priority_wins else HIGHEST_PRIORITY - entry.priority
            priority = priority if state.has_priority else 0
            state.rows.append(Row(wants, priority, _bound(entry.action), is_const=entry.is_const))
        return state

    @property
    def has_priority(self) -> bool:
        return any(f.kind in ("ternary", "range", "optional") for f in self.fields)

    def lookup(self, values: Sequence[int]) -> Row | None:
        """Find the entry that matches: the largest priority, else the longest prefix; of equals the oldest."""
        best: Row | None = None
        for row in self.rows:
            fits = all(want.fits(value) for want, value in zip(row.wants, values, strict=True))
            if fits and (best is None or self._rank(row) > self._rank(best)):
                best = row
        return best

    def _rank(self, row: Row) -> int:
        if self.has_priority:
            return row.priority
        return sum(want.prefix for want in row.wants)

    # The control plane's side -----------------------------------------------------------------------------------------

    def wants(self, match: Mapping[str, Match]) -> tuple[Want, ...]:
        """The control plane's match, checked. Raises SwitchError."""
        unknown = set(match) - {f.name for f in self.fields}
        if unknown:
            raise SwitchError(INVALID_ARGUMENT, f"{self.name} has no field {', '.join(sorted(unknown))}")
        if not self.fields:
            raise SwitchError(INVALID_ARGUMENT, f"{self.name} has no key: only its default action can be set")
        return tuple(f.want(match.get(f.name), self.name) for f in self.fields)

    def check(self, priority: int) -> None:
        """Whether entries may be written, and with this priority."""
        if self.table.const_entries:
            raise SwitchError(PERMISSION_DENIED, f"the entries of {self.name} are const")
        if priority <= 0 if self.has_priority else priority != 0:
            raise SwitchError(INVALID_ARGUMENT, f"{self.name}: {'a' if self.has_priority else 'no'} priority is due")

    def find(self, wants: tuple[Want, ...], priority: int) -> Row | None:
        """The entry with this very key."""
        return next((r for r in self.rows if r.wants == wants and r.priority == priority), None)

    def check_room(self, wants: tuple[Want, ...], priority: int) -> None:
        """Whether one more entry, with this key, may come in. Raises SwitchError."""
        self.check(priority)
        if self.find(wants, priority) is not None:
            raise SwitchError(ALREADY_EXISTS, f"{self.name} has an entry with this key")
        if len(self.rows) >= (self.table.size or DEFAULT_SIZE):
            raise SwitchError(RESOURCE_EXHAUSTED, f"{self.name} is full")

    def existing(self, wants: tuple[Want, ...], priority: int) -> Row:
        self.check(priority)
        row = self.find(wants, priority)
        if row is None:
            raise SwitchError(NOT_FOUND, f"{self.name} has no entry with this key")
        if row.is_const:
            raise SwitchError(PERMISSION_DENIED, f"this entry of {self.name} is const")
        return row


@dataclass(slots=True)
class ValueSetState:
    """One value set of one parser instance."""

    name: str
    fields: tuple[Field, ...]
    members: list[tuple[Want, ...]] = field(default_factory=list)

    @classmethod
    def of(cls, name: str, value_set: ir.ValueSet) -> ValueSetState:
        return cls(name, member_fields(value_set))

    def contains(self, values: Sequence[int]) -> bool:
        return any(all(w.fits(v) for w, v in zip(member, values, strict=True)) for member in self.members)


def _bound(value: ir.ActionValue) -> BoundAction:
    data = [_constant(arg) for arg in value.data]
    return BoundAction(value.choice, tuple(data))


def _constant(expr: ir.Expr) -> Value:
    if isinstance(expr, ir.Literal) and not isinstance(expr.value, str):
        return expr.value
    if isinstance(expr, ir.EnumValue):
        return expr.ordinal
    if isinstance(expr, ir.Cast):
        inner = _constant(expr.operand)
        assert isinstance(inner, int)
        return from_bits(inner, expr.type)
    raise InterpreterError(f"{expr.loc}: the data of an action is not a constant")


def data_of(action: ir.Action, given: Mapping[str, int], where: str) -> tuple[Value, ...]:
    """The control plane's numbers for the parameters of an action, checked. Raises SwitchError."""
    if set(given) != {p.name for p in action.data}:
        wanted = ", ".join(p.name for p in action.data) or "none"
        raise SwitchError(INVALID_ARGUMENT, f"{where} takes {wanted}; given: {', '.join(given)}")
    for param in action.data:
        if not 0 <= given[param.name] < 1 << width_of(param.type):
            raise SwitchError(OUT_OF_RANGE, f"{where}: {param.name} is out of range")
    return tuple(from_bits(given[p.name], p.type) for p in action.data)


def _annotated(entry: ir.Entry, place: int) -> int:
    for annotation in entry.annotations:
        if annotation.name == "priority":
            return int(annotation.values[0] if annotation.values else annotation.text)
    return place
