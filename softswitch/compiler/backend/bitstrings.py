"""Lists of values as one bit string: what hashes and checksums are computed over."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from itertools import groupby

from catchment.softswitch.compiler import ir
from catchment.softswitch.compiler.backend.effects import nodes
from catchment.softswitch.compiler.backend.errors import unsupported
from catchment.softswitch.compiler.backend.expression_writer import ExpressionWriter
from catchment.softswitch.compiler.types import (
    BoolType,
    FieldsType,
    HeaderType,
    StructType,
    TupleType,
    Type,
    VarbitType,
    bit_width,
)

_ALGORITHMS = {
    "crc32": "hash_crc32",
    "crc32_custom": "hash_crc32",
    "crc16": "hash_crc16",
    "crc16_custom": "hash_crc16",
    "identity": "hash_identity",
    "csum16": "hash_csum16",
    "xor16": "hash_xor16",
}


def as_bits(t: Type, text: str) -> str:
    """A scalar as its bits."""
    return f"static_cast<bits<1>>({text})" if isinstance(t, BoolType) else text


def is_header_field(expr: ir.Expr) -> bool:
    """Whether an expression is a field of a header that has a place."""
    return isinstance(expr, ir.FieldRef) and isinstance(expr.base.type, HeaderType)


def _parts(t: Type, text: str, ex: ExpressionWriter) -> Iterator[tuple[Type, str]]:
    if isinstance(t, StructType | HeaderType):
        for field in t.fields:
            member = ex.scope.program.types.member(t, field.name)
            yield from _parts(field.type, f"{text}.{member}", ex)
    elif isinstance(t, TupleType):
        for i, element in enumerate(t.elements):
            yield from _parts(element, f"{text}.f_{i}", ex)
    else:
        yield t, text


def leaves(ex: ExpressionWriter, data: ir.Expr) -> list[tuple[Type, str]]:
    """The scalars of a list, tuple or struct, in order."""
    if isinstance(data, ir.Aggregate) and not isinstance(data.type, HeaderType):
        return [leaf for member in data.members for leaf in leaves(ex, member)]
    return list(_parts(data.type, ex.value(data), ex))


def _header(ex: ExpressionWriter, data: ir.Expr) -> str:
    """The place of the header that `data` is a field of, where naming it computes nothing; otherwise empty."""
    if isinstance(data, ir.FieldRef) and is_header_field(data):
        steps = (node for node in nodes(data.base) if isinstance(node, ir.Expr))
        if all(isinstance(step, ir.VarRef | ir.FieldRef) for step in steps):
            return ex.value(data.base)
    return ""


def _put(ex: ExpressionWriter, data: ir.Expr, name: str) -> None:
    """Appends `data`; the fields of an invalid header are left out, as BMv2 does."""
    if not isinstance(data, ir.Aggregate) or isinstance(data.type, HeaderType):
        base = data.base if isinstance(data, ir.FieldRef) and is_header_field(data) else data
        lines = list(_lines(ex, data, name))
        _write(ex, lines, ex.value(base) if isinstance(base.type, HeaderType) else "")
        return
    # One condition for all neighbours of one header: the C++ compiler then knows the place of each within the string.
    for header, members in groupby(data.members, lambda member: _header(ex, member)):
        if header:
            _write(ex, [line for member in members for line in _lines(ex, member, name)], header)
        else:
            for member in members:
                _put(ex, member, name)


def _lines(ex: ExpressionWriter, data: ir.Expr, name: str) -> Iterator[str]:
    for t, text in _parts(data.type, ex.value(data), ex):
        if isinstance(t, VarbitType):
            yield f"{name}.put({text});"
        elif isinstance(t, FieldsType) or ex.width(t) < 0:
            raise unsupported(data.loc, f"a hash or checksum over {t}")
        else:
            yield f"{name}.put<{ex.width(t)}>({as_bits(t, text)});"


def _write(ex: ExpressionWriter, lines: Iterable[str], header: str) -> None:
    """Writes the lines, under the condition that `header` is valid unless it is empty."""
    out = ex.scope.out
    with out.block(f"if ({header}.valid)") if header else nullcontext():
        for line in lines:
            out.line(line)


def hashed(ex: ExpressionWriter, algorithm: ir.Expr, data: ir.Expr, *, with_payload: bool) -> str:
    """The 64-bit value of a HashAlgorithm over `data`."""
    if not isinstance(algorithm, ir.EnumValue):
        raise unsupported(algorithm.loc, "a hash algorithm that is not a constant")
    if algorithm.member == "random":
        return "pkt.engine.random->next()"
    if algorithm.member not in _ALGORITHMS:
        raise unsupported(algorithm.loc, f"hash algorithm {algorithm.member}")
    bits = bit_width(data.type)
    if bits < 0:
        raise unsupported(data.loc, f"a hash or checksum over {data.type}")
    name = ex.scope.temporary()
    out = ex.scope.out
    out.line(f"BitString<{(bits + 7) // 8 + 8}> {name};")
    _put(ex, data, name)
    value = ex.scope.temporary()
    function = _ALGORITHMS[algorithm.member]
    if with_payload:
        out.line(f"const std::span<const std::uint8_t> {name}_all = with_payload(pkt, {name}.data(), {name}.size());")
        out.line(f"const std::uint64_t {value} = {function}({name}_all.data(), {name}_all.size());")
    else:
        out.line(f"const std::uint64_t {value} = {function}({name}.data(), {name}.size());")
    return value
