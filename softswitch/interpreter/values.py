"""Run-time values, as plain as Python has them.

`bit<w>` and `int<w>` are ints within the type's range (`int<w>`: signed), `bool` is a bool, an enum member or error is
its ordinal, a serializable enum its underlying value. Everything with members is an object that is changed in place;
who wants to keep a value takes a `copy_of`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from catchment.softswitch.compiler.types import (
    BitType,
    BoolType,
    EnumType,
    ErrorType,
    FieldsType,
    HeaderType,
    IntType,
    SerEnumType,
    StackType,
    TupleType,
    Type,
    UnionType,
    VarbitType,
    bit_width,
)
from catchment.softswitch.interpreter.errors import InterpreterError


@dataclass(frozen=True, slots=True)
class Varbit:
    """`width` bits; `number` is what they say, first bit on top."""

    number: int = 0
    width: int = 0


@dataclass(slots=True, eq=False)
class Struct:
    """A struct or tuple; the members of a tuple are called "0", "1", ..."""

    type: Type
    fields: dict[str, Value]


@dataclass(slots=True, eq=False)
class Header:
    """A header. The fields of an invalid one keep what they held."""

    type: HeaderType
    fields: dict[str, Value]
    valid: bool = False


@dataclass(slots=True, eq=False)
class Union:
    """A header union: at most one of `members` is valid."""

    type: UnionType
    members: dict[str, Header]

    def only(self, name: str) -> None:
        """`name` has become valid: the others are not."""
        for other, header in self.members.items():
            if other != name:
                header.valid = False

    @property
    def valid(self) -> bool:
        return any(header.valid for header in self.members.values())


@dataclass(frozen=True, slots=True)
class ExternObject:
    """A register, counter or meter that a parameter stands for."""

    name: str


@dataclass(slots=True, eq=False)
class Stack:
    """A header stack, or an array of anything; `next` is nextIndex."""

    type: StackType
    elements: list[Value]
    next: int = 0

    def put(self, index: int, value: Value) -> None:
        """Sets an element; every holder of a composite element sees the new value."""
        mine = self.elements[index]
        if isinstance(mine, Composite):
            overwrite(mine, value)
        else:
            self.elements[index] = copy_of(value)


Value = int | Varbit | Struct | Header | Union | Stack
Composite = Struct | Header | Union | Stack


def members_of(t: Type) -> list[tuple[str, Type]]:
    """Names and types of the members of a struct, header, union or tuple."""
    if isinstance(t, TupleType):
        return [(str(i), element) for i, element in enumerate(t.elements)]
    assert isinstance(t, FieldsType)
    return [(field.name, field.type) for field in t.fields]


def leaves(value: Value, t: Type) -> Iterator[tuple[Value, Type]]:
    """The scalars in a value, in order, also those of invalid headers."""
    if isinstance(value, Struct | Header):
        for name, member in members_of(t):
            yield from leaves(value.fields[name], member)
    else:
        yield value, t


def default_value(t: Type) -> Value:
    """Zero; headers invalid. v1model begins everything so."""
    if isinstance(t, BoolType):
        return False
    if isinstance(t, VarbitType):
        return Varbit()
    if isinstance(t, StackType):
        return Stack(t, [default_value(t.element) for _ in range(t.size)])
    if isinstance(t, FieldsType | TupleType):
        fields = {name: default_value(member) for name, member in members_of(t)}
        if isinstance(t, HeaderType):
            return Header(t, fields)
        if isinstance(t, UnionType):
            return Union(t, {name: h for name, h in fields.items() if isinstance(h, Header)})
        return Struct(t, fields)
    return 0


def copy_of(value: Value) -> Value:
    """The same value, sharing nothing that can change."""
    if isinstance(value, Struct):
        return Struct(value.type, {name: copy_of(member) for name, member in value.fields.items()})
    if isinstance(value, Header):
        return Header(value.type, {name: copy_of(member) for name, member in value.fields.items()}, value.valid)
    if isinstance(value, Union):
        copies = {name: copy_of(header) for name, header in value.members.items()}
        return Union(value.type, {name: h for name, h in copies.items() if isinstance(h, Header)})
    if isinstance(value, Stack):
        return Stack(value.type, [copy_of(element) for element in value.elements], value.next)
    return value


def overwrite(target: Composite, source: Value) -> None:
    """Makes `target` equal to `source` in place, so that every holder of `target` sees it."""
    fresh = copy_of(source)
    if isinstance(target, Struct) and isinstance(fresh, Struct):
        _overwrite_members(target.fields, fresh.fields)
    elif isinstance(target, Header) and isinstance(fresh, Header):
        _overwrite_members(target.fields, fresh.fields)
        target.valid = fresh.valid
    elif isinstance(target, Union) and isinstance(fresh, Union):
        for name, header in target.members.items():
            overwrite(header, fresh.members[name])
    elif isinstance(target, Stack) and isinstance(fresh, Stack):
        for index in range(len(target.elements)):
            target.put(index, fresh.elements[index])
        target.next = fresh.next
    else:
        raise InterpreterError(f"a {type(source).__name__} for a {type(target).__name__}")


def _overwrite_members(target: dict[str, Value], source: dict[str, Value]) -> None:
    for name, value in source.items():
        mine = target[name]
        if isinstance(mine, Composite):
            overwrite(mine, value)
        else:
            target[name] = value


def equal(left: Value, right: Value) -> bool:
    """`==` of P4: two invalid headers are equal, nextIndex does not count."""
    if isinstance(left, Header) and isinstance(right, Header):
        if not left.valid or not right.valid:
            return left.valid == right.valid
        return all(equal(left.fields[name], right.fields[name]) for name in left.fields)
    if isinstance(left, Struct) and isinstance(right, Struct):
        pairs = zip(left.fields.values(), right.fields.values(), strict=True)
        return all(equal(a, b) for a, b in pairs)
    if isinstance(left, Union) and isinstance(right, Union):
        return all(equal(left.members[name], right.members[name]) for name in left.members)
    if isinstance(left, Stack) and isinstance(right, Stack):
        return all(equal(a, b) for a, b in zip(left.elements, right.elements, strict=True))
    return left == right


def width_of(t: Type) -> int:
    """Bits of a scalar as keys, digests and hashes see it."""
    if isinstance(t, ErrorType):
        return 16
    if isinstance(t, EnumType):
        return 32
    return bit_width(t)


def is_signed(t: Type) -> bool:
    """Whether the values of `t` are two's complement."""
    return isinstance(t, IntType) or (isinstance(t, SerEnumType) and isinstance(t.underlying, IntType))


def to_bits(value: Value, t: Type) -> int:
    """A scalar as its bits, an unsigned number."""
    assert isinstance(value, int)
    return int(value) & ((1 << width_of(t)) - 1)


def from_bits(number: int, t: Type) -> Value:
    """The scalar whose low bits are `number`."""
    if isinstance(t, BoolType):
        return bool(number & 1)
    width = width_of(t)
    number &= (1 << width) - 1
    if is_signed(t) and width > 0 and number >> (width - 1):
        number -= 1 << width
    return number


def show(value: Value, t: Type | None = None) -> str:
    """Write a value for people: numbers in hexadecimal from 10 on, headers with their validity."""
    if isinstance(value, Struct):
        return "{" + ", ".join(f"{name}={show(v)}" for name, v in value.fields.items()) + "}"
    if isinstance(value, Header):
        return show(Struct(value.type, value.fields)) if value.valid else "{#}"
    if isinstance(value, Union):
        valid = [f"{name}={show(h)}" for name, h in value.members.items() if h.valid]
        return f"{{{', '.join(valid)}}}" if valid else "{#}"
    if isinstance(value, Stack):
        return f"[{', '.join(show(e) for e in value.elements)}] next {value.next}"
    if isinstance(value, Varbit):
        return f"varbit({value.width} bits, {value.number:#x})"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(t, EnumType):
        return t.members[value] if 0 <= value < len(t.members) else str(value)
    if isinstance(t, BitType) and t.width == 1:
        return str(value)
    return str(value) if -10 < value < 10 else f"{value:#x}"
