"""The types of P4_16, as the checker and the IR see them.

Scalar types are values (compared by content). Types that a program names (headers, structs, enums, ...) are compared
by identity: each declaration, and each specialisation of a generic one, is one object.

After lowering only these remain: `BitType`, `IntType`, `BoolType`, `VarbitType`, `StringType`, `ErrorType`, `VoidType`,
`EnumType`, `SerEnumType`, `HeaderType`, `StructType`, `UnionType`, `StackType`, `TupleType`, `ExternType`, and
`InfIntType` for a literal handed to an extern that takes an `int`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from catchment.softswitch.compiler.annotation import Annotation
from catchment.softswitch.compiler.source import NOWHERE, Location

MAX_WIDTH = 1 << 16
"""No number is wider: a guard against typing errors, far above any packet's field."""


class Type:
    """Any type. `str()` gives P4 syntax, for messages."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class NewTypeName:
    """The name and annotations of a `type X Name;` declaration (P4Info needs them; arithmetic ignores them)."""

    name: str
    annotations: tuple[Annotation, ...] = field(default=(), compare=False)
    underlying: Type | None = None
    """The type it was made from, which may have a `newtype` of its own."""


@dataclass(frozen=True, slots=True)
class BitType(Type):
    """`bit<width>`; `newtype` is set when it was declared by `type bit<w> Name;`."""

    width: int
    newtype: NewTypeName | None = None

    def __str__(self) -> str:
        return self.newtype.name if self.newtype else f"bit<{self.width}>"


@dataclass(frozen=True, slots=True)
class IntType(Type):
    """`int<width>`, two's complement."""

    width: int
    newtype: NewTypeName | None = None

    def __str__(self) -> str:
        return self.newtype.name if self.newtype else f"int<{self.width}>"


@dataclass(frozen=True, slots=True)
class BoolType(Type):
    """`bool`."""

    newtype: NewTypeName | None = None

    def __str__(self) -> str:
        return self.newtype.name if self.newtype else "bool"


@dataclass(frozen=True, slots=True)
class VarbitType(Type):
    """`varbit<max_width>`: up to `max_width` bits and a current length."""

    max_width: int

    def __str__(self) -> str:
        return f"varbit<{self.max_width}>"


@dataclass(frozen=True, slots=True)
class InfIntType(Type):
    """`int`: a compile-time integer of any size."""

    def __str__(self) -> str:
        return "int"


@dataclass(frozen=True, slots=True)
class StringType(Type):
    """`string`: compile-time only."""

    def __str__(self) -> str:
        return "string"


@dataclass(frozen=True, slots=True)
class ErrorType(Type):
    """`error`; its members, in order, are `ir.Program.errors` (the ordinal is the run-time value)."""

    def __str__(self) -> str:
        return "error"


@dataclass(frozen=True, slots=True)
class MatchKindType(Type):
    """`match_kind`."""

    def __str__(self) -> str:
        return "match_kind"


@dataclass(frozen=True, slots=True)
class VoidType(Type):
    """The type of what returns nothing."""

    def __str__(self) -> str:
        return "void"


@dataclass(frozen=True, slots=True, eq=False)
class EnumType(Type):
    """`enum Name { A, B }`: the run-time value is the ordinal in `members`."""

    name: str
    members: tuple[str, ...]
    annotations: tuple[Annotation, ...] = ()

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True, eq=False)
class SerEnumType(Type):
    """`enum bit<8> Name { A = 1 }`: the run-time value is one of `underlying`; any value of it may occur."""

    name: str
    underlying: BitType | IntType
    members: tuple[tuple[str, int], ...]
    annotations: tuple[Annotation, ...] = ()

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Field:
    """A member of a header, struct or union, in declaration order."""

    name: str
    type: Type
    annotations: tuple[Annotation, ...] = ()
    loc: Location = field(default=NOWHERE, compare=False)


@dataclass(slots=True, eq=False)
class FieldsType(Type):
    """What headers, structs and unions share.

    `name` is unique in the program (a specialised generic is `S<bit<8>>`).
    """

    name: str
    fields: tuple[Field, ...]
    annotations: tuple[Annotation, ...] = ()
    generic: str = ""
    """The name of the generic declaration this was made from, or empty."""
    type_args: tuple[Type, ...] = ()
    loc: Location = NOWHERE

    def __str__(self) -> str:
        return self.name

    def field(self, name: str) -> Field | None:
        """The field called `name`, or None."""
        return next((f for f in self.fields if f.name == name), None)


@dataclass(slots=True, eq=False)
class HeaderType(FieldsType):
    """A header: its fields are bit, int, bool, serializable enum, varbit, or structs of these; and a validity bit."""


@dataclass(slots=True, eq=False)
class StructType(FieldsType):
    """A struct."""


@dataclass(slots=True, eq=False)
class UnionType(FieldsType):
    """A header union: at most one of its headers is valid."""


@dataclass(frozen=True, slots=True)
class StackType(Type):
    """`element[size]`: a stack of headers or header unions, or an array of anything else."""

    element: Type
    size: int

    def __str__(self) -> str:
        return f"{self.element}[{self.size}]"


@dataclass(frozen=True, slots=True)
class TupleType(Type):
    """`tuple<...>`, and the type of `{a, b}` where nothing says it is a struct."""

    elements: tuple[Type, ...]

    def __str__(self) -> str:
        return f"tuple<{', '.join(map(str, self.elements))}>"


@dataclass(frozen=True, slots=True)
class ListType(Type):
    """`list<element>`: compile-time only; its values are tuples."""

    element: Type

    def __str__(self) -> str:
        return f"list<{self.element}>"


@dataclass(frozen=True, slots=True)
class ExternType(Type):
    """An extern object type with its type arguments: `register<bit<32>>`, `packet_in`."""

    name: str
    type_args: tuple[Type, ...] = ()
    declaration: Any = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return self.name + (f"<{', '.join(map(str, self.type_args))}>" if self.type_args else "")


@dataclass(frozen=True, slots=True, eq=False)
class TypeVar(Type):
    """A type parameter, within the declaration that has it."""

    name: str

    def __str__(self) -> str:
        return self.name


def bit_width(t: Type) -> int:
    """The number of bits `t` takes on the wire, at most (varbit: its maximum); -1 if it has no such size."""
    if isinstance(t, BitType | IntType):
        return t.width
    if isinstance(t, BoolType):
        return 1
    if isinstance(t, VarbitType):
        return t.max_width
    if isinstance(t, SerEnumType):
        return t.underlying.width
    if isinstance(t, UnionType):
        return max((bit_width(f.type) for f in t.fields), default=0)
    if isinstance(t, StackType):
        return t.size * bit_width(t.element)
    if isinstance(t, FieldsType | TupleType):
        parts = [f.type for f in t.fields] if isinstance(t, FieldsType) else list(t.elements)
        widths = [bit_width(p) for p in parts]
        return -1 if any(w < 0 for w in widths) else sum(widths)
    return -1
