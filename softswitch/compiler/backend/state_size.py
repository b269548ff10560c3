"""How much each packet's headers and metadata take: nested types grow fast, and each packet clears them."""

from __future__ import annotations

from catchment.softswitch.compiler.backend.errors import unsupported
from catchment.softswitch.compiler.types import (
    BitType,
    FieldsType,
    IntType,
    StackType,
    TupleType,
    Type,
    VarbitType,
)

MOST_BYTES = 1 << 20
_OTHER = 64  # bits of a number of another kind, an enum or a boolean


def bits_of(t: Type, known: dict[Type, int]) -> int:
    """Bits of all that is in a value, each type looked at once; `known`: of those that were."""
    if t not in known:
        match t:
            case BitType() | IntType():
                found = t.width
            case VarbitType():
                found = t.max_width
            case StackType():
                found = t.size * bits_of(t.element, known)
            case TupleType():
                found = sum(bits_of(one, known) for one in t.elements)
            case FieldsType():
                found = sum(bits_of(field.type, known) for field in t.fields)
            case _:
                found = _OTHER
        known[t] = found
    return known[t]


def check_state(t: FieldsType) -> None:
    """Refuse a type of headers or metadata that is too large, where it is declared."""
    size = bits_of(t, {}) // 8
    if size > MOST_BYTES:
        raise unsupported(t.loc, f"{t.name} of {size} bytes, of which {MOST_BYTES} are the most")
