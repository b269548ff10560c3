"""Lists of values as one bit string: what hashes and checksums are computed over."""

from __future__ import annotations

from collections.abc import Iterator

from catchment.softswitch.compiler import ir
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


def _put(ex: ExpressionWriter, data: ir.Expr, name: str) -> None:
    """Appends `data`; the fields of an invalid header are left out, as BMv2 does."""
    out = ex.scope.out
    if isinstance(data, ir.Aggregate) and not isinstance(data.type, HeaderType):
        for member in data.members:
            _put(ex, member, name)
        return
    base = data.base if isinstance(data, ir.FieldRef) and is_header_field(data) else data
    lines = []
    for t, text in _parts(data.type, ex.value(data), ex):
        if isinstance(t, VarbitType):
            lines.append(f"{name}.put({text});")
        elif isinstance(t, FieldsType) or ex.width(t) < 0:
            raise unsupported(data.loc, f"a hash or checksum over {t}")
        else:
            lines.append(f"{name}.put<{ex.width(t)}>({as_bits(t, text)});")
    if isinstance(base.type, HeaderType):
        with out.block(f"if ({ex.value(base)}.valid)"):
            for line in lines:
                out.line(line)
    else:
        for line in lines:
            out.line(line)


def hashed(ex: ExpressionWriter, algorithm: ir.Expr, data: ir.Expr, *, with_payload: bool) -> str:
    """The 64-bit value of a HashAlgorithm over `data`."""
    if not isinstance(algorithm, ir.EnumValue):
        raise unsupported(algorithm.loc, "a hash algorithm that is not a constant")
    if algorithm.member == "random":
        return "pkt.engine.random.next()"
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
