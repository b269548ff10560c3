"""Values on the wire: cursors over a packet, and the bit string that headers and hashes become."""

from __future__ import annotations

from catchment.softswitch.compiler.types import (
    FieldsType,
    HeaderType,
    StackType,
    StructType,
    TupleType,
    Type,
    UnionType,
    VarbitType,
    bit_width,
)
from catchment.softswitch.interpreter.errors import InterpreterError
from catchment.softswitch.interpreter.signals import RejectSignal
from catchment.softswitch.interpreter.values import (
    Composite,
    Header,
    Stack,
    Struct,
    Union,
    Value,
    Varbit,
    default_value,
    from_bits,
    members_of,
    to_bits,
    width_of,
)


class BitWriter:
    """A growing string of bits."""

    def __init__(self) -> None:
        self.number = 0
        self.width = 0

    def put(self, number: int, width: int) -> None:
        self.number = self.number << width | number
        self.width += width

    def to_bytes(self) -> bytes:
        """Padded with zeros at the end to whole bytes."""
        pad = -self.width % 8
        return (self.number << pad).to_bytes((self.width + pad) // 8, "big")


class PacketIn:
    """The packet as the parser sees it; positions are in bits."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    @property
    def left(self) -> int:
        """Bits."""
        return 8 * len(self.data) - self.at

    @property
    def rest(self) -> bytes:
        """What is not parsed yet."""
        return self.data[self.at // 8 :]

    def need(self, bits: int) -> None:
        if self.left < bits:
            raise RejectSignal("PacketTooShort")

    def peek(self, offset: int, width: int) -> int:
        """`width` bits from `offset` bits ahead."""
        start = self.at + offset
        first, last = start // 8, (start + width + 7) // 8
        number = int.from_bytes(self.data[first:last], "big")
        return number >> (8 * last - start - width) & ((1 << width) - 1)


def fixed_bits(t: HeaderType) -> int:
    """Bits of a header without its varbit."""
    return bit_width(t) - varbit_limit(t)


def varbit_limit(t: HeaderType) -> int:
    """The most bits that its varbit can hold; 0 without one."""
    return sum(f.type.max_width for f in t.fields if isinstance(f.type, VarbitType))


def read_header(packet: PacketIn, header: Header, varbits: int, offset: int = 0) -> int:
    """Fills `header` from `offset` bits ahead and makes it valid; the offset behind it."""
    offset = _read_members(packet, header.fields, header.type, varbits, offset)
    header.valid = True
    return offset


def _read_members(packet: PacketIn, fields: dict[str, Value], t: FieldsType, varbits: int, offset: int) -> int:
    for field in t.fields:
        inner = fields[field.name]
        if isinstance(inner, Struct):
            assert isinstance(inner.type, StructType)
            offset = _read_members(packet, inner.fields, inner.type, varbits, offset)
        elif isinstance(field.type, VarbitType):
            fields[field.name] = Varbit(packet.peek(offset, varbits), varbits)
            offset += varbits
        else:
            width = width_of(field.type)
            fields[field.name] = from_bits(packet.peek(offset, width), field.type)
            offset += width
    return offset


def look(packet: PacketIn, t: Type, offset: int = 0) -> tuple[Value, int]:
    """A value of type `t` from `offset` bits ahead, and the offset behind it."""
    if isinstance(t, HeaderType):
        header = default_value(t)
        assert isinstance(header, Header)
        return header, read_header(packet, header, 0, offset)
    if isinstance(t, StructType | TupleType):
        fields = {}
        for name, member in members_of(t):
            fields[name], offset = look(packet, member, offset)
        return Struct(t, fields), offset
    if isinstance(t, UnionType | StackType):
        raise InterpreterError(f"lookahead() of {t}")
    width = width_of(t)
    return from_bits(packet.peek(offset, width), t), offset + width


def write_value(out: BitWriter, value: Value, t: Type) -> None:
    """Appends every bit of `value`, whether its headers are valid or not."""
    if isinstance(value, Varbit):
        out.put(value.number, value.width)
    elif isinstance(value, Struct | Header):
        for name, member in members_of(t):
            write_value(out, value.fields[name], member)
    elif isinstance(value, Composite):
        raise InterpreterError(f"{t} as a string of bits")
    else:
        out.put(to_bits(value, t), width_of(t))


def emit(out: BitWriter, value: Value) -> None:
    """What the deparser does: valid headers only, in order."""
    if isinstance(value, Header):
        if value.valid:
            write_value(out, value, value.type)
    elif isinstance(value, Struct):
        for member in value.fields.values():
            emit(out, member)
    elif isinstance(value, Union):
        for header in value.members.values():
            emit(out, header)
    elif isinstance(value, Stack):
        for element in value.elements:
            emit(out, element)
    else:
        raise InterpreterError(f"emit() of {value!r}")
