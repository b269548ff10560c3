"""One field of a key: what an entry wants it to be."""

from __future__ import annotations

from dataclasses import dataclass

from catchment.softswitch.compiler import ir
from catchment.softswitch.compiler.ir import MatchValueKind
from catchment.softswitch.compiler.types import FieldsType, TupleType, Type
from catchment.softswitch.entry import Match
from catchment.softswitch.errors import SwitchError
from catchment.softswitch.interpreter.errors import InterpreterError
from catchment.softswitch.interpreter.values import to_bits, width_of

INVALID_ARGUMENT, OUT_OF_RANGE = 3, 11


@dataclass(frozen=True, slots=True)
class Want:
    """`low` <= field & `mask` <= `high`. Exact and ternary matches have low = high; `prefix` is that of lpm."""

    mask: int
    low: int
    high: int
    prefix: int = 0

    def fits(self, value: int) -> bool:
        return self.low <= value & self.mask <= self.high


@dataclass(frozen=True, slots=True)
class Field:
    """A key field: control-plane name, type and match kind."""

    name: str
    type: Type
    kind: str

    @property
    def width(self) -> int:
        return width_of(self.type)

    @property
    def ones(self) -> int:
        return (1 << self.width) - 1

    def prefix_mask(self, length: int) -> int:
        return self.ones & ~((1 << (self.width - length)) - 1)

    def want(self, match: Match | None, where: str) -> Want:
        """Make a match from the control plane's; None matches any value. Raises SwitchError."""
        where = f"{where}.{self.name}"
        if match is None:
            if self.kind == "exact":
                raise SwitchError(INVALID_ARGUMENT, f"{where}: an exact field must be given")
            return Want(self.ones, 0, self.ones) if self.kind == "range" else Want(0, 0, 0)
        if isinstance(match, tuple) != (self.kind in ("lpm", "ternary", "range")):
            raise SwitchError(INVALID_ARGUMENT, f"{where}: not a match of kind {self.kind}")
        first, second = match if isinstance(match, tuple) else (match, self.ones)
        limits = self.width if self.kind == "lpm" else self.ones
        if not (0 <= first <= self.ones and 0 <= second <= limits):
            raise SwitchError(OUT_OF_RANGE, f"{where}: out of the range of {self.width} bits")
        if self.kind == "range":
            if first > second:
                raise SwitchError(INVALID_ARGUMENT, f"{where}: the range ends before it begins")
            return Want(self.ones, first, second)
        mask = self.prefix_mask(second) if self.kind == "lpm" else second
        if first & ~mask:
            raise SwitchError(INVALID_ARGUMENT, f"{where}: the value has bits outside its mask")
        return Want(mask, first, first, second if self.kind == "lpm" else 0)

    def shown(self, want: Want) -> Match | None:
        """The match as the control plane writes it; None matches any value."""
        if self.kind == "range":
            return None if (want.low, want.high) == (0, self.ones) else (want.low, want.high)
        if self.kind == "lpm":
            return (want.low, want.prefix) if want.prefix else None
        if self.kind == "ternary":
            return (want.low, want.mask) if want.mask else None
        return None if self.kind == "optional" and not want.mask else want.low


def key_fields(table: ir.Table) -> tuple[Field, ...]:
    """What entries match on: all keys but those of a selector."""
    return tuple(Field(k.name, k.expr.type, k.kind) for k in table.keys if k.kind != "selector")


def member_fields(value_set: ir.ValueSet) -> tuple[Field, ...]:
    """What the members of a value set match on."""
    element = value_set.element
    if isinstance(element, FieldsType):
        fields = []
        for field in element.fields:
            kinds = [str(a.values[0] if a.values else a.text) for a in field.annotations if a.name == "match"]
            fields.append(Field(field.name, field.type, kinds[0].strip() if kinds else "exact"))
        return tuple(fields)
    if isinstance(element, TupleType):
        return tuple(Field(f"f{i}", t, "exact") for i, t in enumerate(element.elements))
    return (Field(value_set.name, element, "exact"),)


def _number(expr: ir.Expr, t: Type) -> int:
    if isinstance(expr, ir.Literal) and not isinstance(expr.value, str):
        return to_bits(expr.value, t)
    if isinstance(expr, ir.EnumValue):
        return expr.ordinal
    if isinstance(expr, ir.Cast):
        return _number(expr.operand, t)
    raise InterpreterError(f"{expr.loc}: an entry's value is not a constant")


def program_match(field: Field, match: ir.Match) -> Want:
    """Make a match from an entry that was written in the program."""
    if match.kind is MatchValueKind.ANY:
        return Want(field.ones, 0, field.ones) if field.kind == "range" else Want(0, 0, 0)
    if match.first is None:
        raise InterpreterError(f"{match.loc}: a value set in an entry")
    first = _number(match.first, field.type)
    if match.kind is MatchValueKind.EXACT:
        return Want(field.ones, first, first, field.width if field.kind == "lpm" else 0)
    assert match.second is not None
    second = _number(match.second, field.type)
    if match.kind is MatchValueKind.RANGE:
        if first > second:  # of signed numbers: to the control plane, none is below zero
            raise InterpreterError(f"{match.loc}: a range from below zero to above in an entry")
        return Want(field.ones, first, second)
    return Want(second, first & second, first & second, second.bit_count() if field.kind == "lpm" else 0)
