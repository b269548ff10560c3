"""packet_in, packet_out and verify."""

from __future__ import annotations

from catchment.softswitch.compiler import ir
from catchment.softswitch.compiler.backend.errors import unsupported
from catchment.softswitch.compiler.backend.expression_writer import ExpressionWriter
from catchment.softswitch.compiler.backend.layout import fixed_bits, varbit_width
from catchment.softswitch.compiler.backend.scope import variable_name
from catchment.softswitch.compiler.source import Location
from catchment.softswitch.compiler.types import (
    BoolType,
    FieldsType,
    HeaderType,
    StackType,
    StructType,
    TupleType,
    Type,
    UnionType,
    bit_width,
)


def _packet(call: ir.ExternCall) -> str:
    if not isinstance(call.target, ir.Variable):
        raise unsupported(call.loc, f"{call.extern}.{call.method} on something that is not a parameter")
    return variable_name(call.target)


def extract(ex: ExpressionWriter, call: ir.ExternCall) -> str:
    """`extract(header)` and `extract(header, bits)`."""
    packet = _packet(call)
    scope = ex.scope
    target = call.args[0]
    header = target.type
    if isinstance(target, ir.DontCare):
        header = call.type_args[0] if call.type_args else header
    if not isinstance(header, HeaderType):
        raise unsupported(call.loc, f"extract() into {header}")
    size = str(fixed_bits(header) // 8)
    varbits = ""
    if len(call.args) > 1:
        varbits = ex.keep(call.args[1].type, ex.value(call.args[1]), call.args[1])
        scope.out.line(f"if ({varbits} % 8 != 0) {{ {scope.reject('ParserInvalidArgument')} }}")
        size = f"{size} + {varbits} / 8"
    if isinstance(target, ir.DontCare):
        scope.out.line(f"if ({packet}.left() < {size}) {{ {scope.reject('PacketTooShort')} }}")
        scope.out.line(f"{packet}.at += {size};")
        return ""
    place = ex.place(target)
    if fixed_bits(header) or varbits:
        scope.out.line(f"if ({packet}.left() < {size}) {{ {scope.reject('PacketTooShort')} }}")
    if varbits:
        scope.out.line(f"if ({varbits} > {varbit_width(header)}U) {{ {scope.reject('HeaderTooShort')} }}")
    scope.out.line(f"{place}.load({packet}.at{', ' + varbits if varbits else ''});")
    scope.out.line(f"{packet}.at += {size};")
    ex.after_write(target, place)
    if isinstance(target, ir.StackNext):
        scope.out.line(f"++{ex.place(target.stack)}.next;")
    elif isinstance(target, ir.FieldRef) and isinstance(target.base, ir.StackNext):
        scope.out.line(f"++{ex.place(target.base.stack)}.next;")
    return ""


def _look(ex: ExpressionWriter, t: Type, place: str, offset: int, packet: str, *, loc: Location) -> int:
    """Reads a `t` at a bit offset; returns the offset after it."""
    types = ex.scope.program.types
    if isinstance(t, HeaderType):
        if offset % 8:
            raise unsupported(loc, "lookahead() of a header that does not begin on a byte")
        ex.scope.out.line(f"{place}.load({packet}.at + {offset // 8});")
        return offset + fixed_bits(t)
    if isinstance(t, StructType):
        for field in t.fields:
            offset = _look(ex, field.type, f"{place}.{types.member(t, field.name)}", offset, packet, loc=loc)
        return offset
    if isinstance(t, TupleType):
        for i, element in enumerate(t.elements):
            offset = _look(ex, element, f"{place}.f_{i}", offset, packet, loc=loc)
        return offset
    width = types.width(t)
    test = " != 0" if isinstance(t, BoolType) else ""
    ex.scope.out.line(f"{place} = load_bits<{width}>({packet}.at, {offset}){test};")
    return offset + width


def lookahead(ex: ExpressionWriter, call: ir.ExternCall) -> str:
    """`lookahead<T>()`."""
    packet = _packet(call)
    width = bit_width(call.type)
    if width < 0 or isinstance(call.type, UnionType | StackType):
        raise unsupported(call.loc, f"lookahead() of {call.type}")
    scope = ex.scope
    scope.out.line(f"if ({packet}.left() * 8 < {width}) {{ {scope.reject('PacketTooShort')} }}")
    name = scope.temporary()
    scope.out.line(f"{ex.cpp(call.type, call)} {name}{{}};")
    _look(ex, call.type, name, 0, packet, loc=call.loc)
    return name


def advance(ex: ExpressionWriter, call: ir.ExternCall) -> str:
    """`advance(bits)`: whole bytes only."""
    packet = _packet(call)
    bits = ex.keep(call.args[0].type, ex.value(call.args[0]), call.args[0])
    out = ex.scope.out
    out.line(f"if (to_u64({bits}) % 8 != 0) {{ {ex.scope.reject('ParserInvalidArgument')} }}")
    out.line(f"if ({packet}.left() < to_u64({bits}) / 8) {{ {ex.scope.reject('PacketTooShort')} }}")
    out.line(f"{packet}.at += to_u64({bits}) / 8;")
    return ""


def length(ex: ExpressionWriter, call: ir.ExternCall) -> str:
    """`length()` of the whole packet in bytes."""
    del ex
    return f"{_packet(call)}.length()"


def verify(ex: ExpressionWriter, call: ir.ExternCall) -> str:
    """`verify(condition, error)`."""
    condition, error = ex.values(call.args)
    ex.scope.rejects[0] = True
    ex.scope.out.line(f"if (!({condition})) {{ error = {error}; goto reject; }}")
    return ""


def emit(ex: ExpressionWriter, call: ir.ExternCall) -> str:
    """`emit(header, struct, stack or union)`."""
    packet = _packet(call)
    _emit(ex, call.args[0].type, ex.value(call.args[0]), packet, call)
    return ""


def _emit(ex: ExpressionWriter, t: Type, place: str, packet: str, call: ir.ExternCall) -> None:
    out = ex.scope.out
    if isinstance(t, HeaderType):
        with out.block(f"if ({place}.valid)"):
            out.line(f"if (std::uint8_t* p = {packet}.take({place}.size())) {place}.store(p, {packet}.streams);")
    elif isinstance(t, StackType):
        name = ex.scope.temporary()
        with out.block(f"for (const auto& {name} : {place}.e)"):
            _emit(ex, t.element, name, packet, call)
    elif isinstance(t, FieldsType):
        for field in t.fields:
            member = ex.scope.program.types.member(t, field.name)
            _emit(ex, field.type, f"{place}.{member}", packet, call)
    elif isinstance(t, TupleType):
        for i, element in enumerate(t.elements):
            _emit(ex, element, f"{place}.f_{i}", packet, call)
    else:
        raise unsupported(call.loc, f"emit() of {t}")
