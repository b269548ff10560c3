"""v1model's and core.p4's extern functions and methods."""

from __future__ import annotations

import re
from collections.abc import Callable

from catchment.softswitch.compiler import ir
from catchment.softswitch.compiler.backend import bitstrings, packet_externs, user_externs
from catchment.softswitch.compiler.backend.errors import unsupported
from catchment.softswitch.compiler.backend.expression_writer import ExpressionWriter
from catchment.softswitch.compiler.backend.scope import DigestRequest, instance_name, variable_name
from catchment.softswitch.compiler.backend.text import string_literal
from catchment.softswitch.compiler.p4info.visible import digest_name
from catchment.softswitch.compiler.source import Location
from catchment.softswitch.compiler.types import (
    BitType,
    BoolType,
    EnumType,
    ExternType,
    FieldsType,
    IntType,
    SerEnumType,
    TupleType,
)

_WITHOUT_DATA = ("direct_counter", "direct_meter", "action_profile", "action_selector")

Handler = Callable[[ExpressionWriter, ir.ExternCall], str]


def _object(call: ir.ExternCall) -> str:
    """The C++ object of a register, counter or meter: an instance's, or a parameter."""
    if isinstance(call.target, ir.InstanceDecl):
        return instance_name(call.target)
    assert call.target is not None, "methods have an object"
    return variable_name(call.target)


def _decl(call: ir.ExternCall) -> ir.InstanceDecl:
    if not isinstance(call.target, ir.InstanceDecl):
        raise unsupported(call.loc, f"{call.extern}.{call.method} through a parameter")
    return call.target


def _index(ex: ExpressionWriter, arg: ir.Expr) -> str:
    return f"to_u64({ex.value(arg)})"


def _register_read(ex: ExpressionWriter, call: ir.ExternCall) -> str:
    ex.assign(call.args[0], f"{_object(call)}.read({_index(ex, call.args[1])})")
    return ""


def _register_write(ex: ExpressionWriter, call: ir.ExternCall) -> str:
    index, value = ex.values(call.args)
    ex.scope.out.line(f"{_object(call)}.write(to_u64({index}), {value});")
    return ""


def _count(ex: ExpressionWriter, call: ir.ExternCall) -> str:
    ex.scope.out.line(f"{_object(call)}.count({_index(ex, call.args[0])}, pkt.length);")
    return ""


def _direct_count(ex: ExpressionWriter, call: ir.ExternCall) -> str:
    _decl(call)
    return ""  # the table counts by itself when an entry is hit


def _execute_meter(ex: ExpressionWriter, call: ir.ExternCall) -> str:
    index = _index(ex, call.args[0])
    target = call.args[1]
    width = ex.width(target.type)
    before = "0" if isinstance(target, ir.DontCare) else f"static_cast<std::uint32_t>(to_u64({ex.value(target)}))"
    color = f"{_object(call)}.execute({index}, pkt.engine.now_us, pkt.length, {before})"
    ex.assign(target, f"resize<{width}>({color})")
    return ""


def _direct_meter_read(ex: ExpressionWriter, call: ir.ExternCall) -> str:
    width = ex.width(call.args[0].type)
    ex.assign(call.args[0], f"resize<{width}>(color_{_decl(call).name})")
    return ""


def _mark_to_drop(ex: ExpressionWriter, call: ir.ExternCall) -> str:
    if not call.args:
        raise unsupported(call.loc, "mark_to_drop() without standard_metadata", "write mark_to_drop(standard_metadata)")
    place = ex.place(call.args[0])
    ex.scope.out.line(f"{place}.f_egress_spec = static_cast<bits<9>>(pkt.engine.drop_port);")
    ex.scope.out.line(f"{place}.f_mcast_grp = 0;")
    return ""


def _random(ex: ExpressionWriter, call: ir.ExternCall) -> str:
    result, low, high = call.args
    low_text, high_text = ex.values((low, high))
    number = f"pkt.engine.random->between(to_u64({low_text}), to_u64({high_text}))"
    ex.assign(result, f"resize<{ex.width(result.type)}>({number})")
    return ""


def _hash(ex: ExpressionWriter, call: ir.ExternCall) -> str:
    result, algorithm, base, data, most = call.args
    value = bitstrings.hashed(ex, algorithm, data, with_payload=False)
    base_text, most_text = ex.values((base, most))
    in_range = f"hash_in_range({value}, to_u64({base_text}), to_u64({most_text}))"
    ex.assign(result, f"resize<{ex.width(result.type)}>({in_range})")
    return ""


def _checksum(verify: bool, with_payload: bool) -> Handler:
    def handler(ex: ExpressionWriter, call: ir.ExternCall) -> str:
        condition, data, checksum, algorithm = call.args
        text = ex.value(condition)
        if isinstance(checksum, ir.FieldRef) and bitstrings.is_header_field(checksum):
            text = f"({text}) && {ex.value(checksum.base)}.valid"
        with ex.scope.out.block(f"if ({text})"):
            value = bitstrings.hashed(ex, algorithm, data, with_payload=with_payload)
            width = ex.width(checksum.type)
            if verify:
                ex.scope.out.line(f"if (resize<{width}>({value}) != {ex.value(checksum)}) pkt.checksum_error = true;")
            else:
                ex.assign(checksum, f"resize<{width}>({value})")
        return ""

    return handler


def _clone(ex: ExpressionWriter, call: ir.ExternCall) -> str:
    session = ex.value(call.args[1])
    out = ex.scope.out
    out.line(f"pkt.requests.clone_session = Requests::kRequested | ({session} & 0x7FFFU);")
    index = ex.value(call.args[2]) if len(call.args) > 2 else "0"
    out.line(f"pkt.requests.clone_list = {index};")
    return ""


def _start_over(field: str) -> Handler:
    def handler(ex: ExpressionWriter, call: ir.ExternCall) -> str:
        ex.scope.out.line(f"pkt.requests.{field} = Requests::kRequested | {ex.value(call.args[0])};")
        return ""

    return handler


def _truncate(ex: ExpressionWriter, call: ir.ExternCall) -> str:
    length = ex.value(call.args[0])
    ex.scope.out.line(f"pkt.requests.truncate_to = std::min(pkt.requests.truncate_to, {length});")
    return ""


def _digest(ex: ExpressionWriter, call: ir.ExternCall) -> str:
    """Asks for a digest; the last one of a packet is sent when ingress ends, with the values of then."""
    data = call.args[1]
    now: list[str] = []
    later: list[str | None] = []
    for t, text in bitstrings.leaves(ex, data):
        if ex.width(t) < 0 or isinstance(t, FieldsType | TupleType):
            raise unsupported(call.loc, f"digest() of a value of type {t}")
        now.append(f"digest_bytes<{ex.width(t)}>({bitstrings.as_bits(t, text)})")
        at_end = _later(ex, text)
        later.append(at_end and f"digest_bytes<{ex.width(t)}>({bitstrings.as_bits(t, at_end)})")
    requests = ex.scope.program.digests
    requests.append(DigestRequest(digest_name(call.type_args[0]), tuple(later)))
    ex.scope.out.line(f"pkt.requests.digest = {len(requests)};")
    ex.scope.out.line(f"pkt.engine.digest.assign({{{', '.join(now)}}});")
    return ""


def _later(ex: ExpressionWriter, place: str) -> str | None:
    """A place as the pipeline reaches it when ingress has ended; None for what is local to a control, or a value."""
    owner, dot, path = place.partition(".")
    for param in ex.scope.unit.params if ex.scope.unit is not None else ():
        role = ex.scope.program.roles.get(id(param.type))
        if role is not None and dot and owner == variable_name(param) and re.fullmatch(r"[\w.\[\]]+", path):
            return f"{role}.{path}"
    return None


def _assert(ex: ExpressionWriter, call: ir.ExternCall) -> str:
    where = f"{call.loc}: {call.method} failed"
    ex.scope.out.line(f"if (!({ex.value(call.args[0])})) pkt.engine.hooks->log({string_literal(where)});")
    return ""


def _log_msg(ex: ExpressionWriter, call: ir.ExternCall) -> str:
    text = call.args[0]
    assert isinstance(text, ir.Literal)
    values: list[str] = []
    if len(call.args) > 1:
        for t, value in bitstrings.leaves(ex, call.args[1]):
            values.append(f"decimal<{ex.width(t)}>({bitstrings.as_bits(t, value)})")
    ex.scope.out.line(f"pkt.engine.hooks->log(log_text({string_literal(str(text.value))}, {{{', '.join(values)}}}));")
    return ""


def _nothing(ex: ExpressionWriter, call: ir.ExternCall) -> str:
    del ex, call
    return ""


_HANDLERS: dict[tuple[str, str], Handler] = {
    ("register", "read"): _register_read,
    ("register", "write"): _register_write,
    ("counter", "count"): _count,
    ("direct_counter", "count"): _direct_count,
    ("meter", "execute_meter"): _execute_meter,
    ("direct_meter", "read"): _direct_meter_read,
    ("packet_in", "extract"): packet_externs.extract,
    ("packet_in", "lookahead"): packet_externs.lookahead,
    ("packet_in", "advance"): packet_externs.advance,
    ("packet_in", "length"): packet_externs.length,
    ("packet_out", "emit"): packet_externs.emit,
    ("", "verify"): packet_externs.verify,
    ("", "mark_to_drop"): _mark_to_drop,
    ("", "random"): _random,
    ("", "hash"): _hash,
    ("", "verify_checksum"): _checksum(verify=True, with_payload=False),
    ("", "update_checksum"): _checksum(verify=False, with_payload=False),
    ("", "verify_checksum_with_payload"): _checksum(verify=True, with_payload=True),
    ("", "update_checksum_with_payload"): _checksum(verify=False, with_payload=True),
    ("", "clone"): _clone,
    ("", "clone_preserving_field_list"): _clone,
    ("", "resubmit_preserving_field_list"): _start_over("resubmit_list"),
    ("", "recirculate_preserving_field_list"): _start_over("recirculate_list"),
    ("", "truncate"): _truncate,
    ("", "digest"): _digest,
    ("", "assert"): _assert,
    ("", "assume"): _assert,
    ("", "log_msg"): _log_msg,
    ("", "static_assert"): _nothing,
}


_FIELDS = "and @field_list(n) on the fields of the metadata that it keeps"
_INSTEAD = {
    "clone3": f"write clone_preserving_field_list(type, session, n), {_FIELDS}",
    "resubmit": f"write resubmit_preserving_field_list(n), {_FIELDS}",
    "recirculate": f"write recirculate_preserving_field_list(n), {_FIELDS}",
    "Checksum16": "write verify_checksum or update_checksum, in the control of that purpose",
}
"""What to write instead of v1model's externs that are not taken."""


def call(ex: ExpressionWriter, expr: ir.ExternCall) -> str:
    """Writes the call; returns its value, empty for void."""
    handler = _HANDLERS.get((expr.extern, expr.method))
    if handler is None and user_externs.is_users(expr.extern or expr.method):
        if not ex.scope.program.has_user_externs:
            raise unsupported(expr.loc, user_externs.missing(expr.extern or expr.method))
        return user_externs.call(ex, expr)
    if handler is None:
        what = f"extern {expr.extern + '.' if expr.extern else ''}{expr.method}"
        raise unsupported(expr.loc, what, _INSTEAD.get(expr.extern or expr.method, ""))
    return handler(ex, expr)


def element_type(extern: ExternType, loc: Location) -> BitType:
    """What a register holds, as bits."""
    t = extern.type_args[0]
    if isinstance(t, SerEnumType):
        t = t.underlying
    if isinstance(t, BoolType):
        return BitType(1)
    if isinstance(t, EnumType):
        return BitType(32)
    if isinstance(t, BitType | IntType):
        return BitType(t.width)
    raise unsupported(loc, f"a register of {t}")


def stored_type(extern: ExternType, loc: Location) -> str | None:
    """The C++ type of an extern object; None for one that has no data of its own."""
    if extern.name == "register":
        return f"Register<{element_type(extern, loc).width}>"
    if extern.name in ("counter", "meter"):
        return extern.name.capitalize()
    if extern.name in _WITHOUT_DATA:
        return None
    if user_externs.is_users(extern.name):
        return user_externs.stored_type(extern.name)
    raise unsupported(loc, f"extern {extern.name}")


def reference(extern: ExternType, loc: Location) -> str:
    """The C++ type of a parameter of extern type."""
    packets = {"packet_in": "PacketReader&", "packet_out": "PacketWriter&"}
    return packets.get(extern.name) or f"const {stored_type(extern, loc) or 'int'}&"
