"""The extern functions and methods of core.p4 and v1model.p4."""

from __future__ import annotations

from collections.abc import Callable

from catchment.softswitch.compiler import ir
from catchment.softswitch.compiler.p4info.visible import digest_name
from catchment.softswitch.compiler.types import HeaderType
from catchment.softswitch.interpreter import packet_externs, user_externs
from catchment.softswitch.interpreter.bitstrings import hash_of
from catchment.softswitch.interpreter.errors import InterpreterError
from catchment.softswitch.interpreter.hashes import in_range
from catchment.softswitch.interpreter.tables import Tables
from catchment.softswitch.interpreter.values import Header, Struct, Value, from_bits, leaves, to_bits

DROP_PORT = 511


class Machine(Tables):
    """Runs every block of a program on one packet."""

    def extern_call(self, call: ir.ExternCall) -> Value | None:
        handler = _HANDLERS.get((call.extern, call.method))
        return handler(self, call) if handler is not None else _user_call(self, call)


def _user_call(machine: Machine, call: ir.ExternCall) -> Value | None:
    """A function or method that the user's Python file implements."""
    state = machine.packet.state
    if call.target is None:
        function = state.user_externs.find(call.method, call.loc)
    else:
        found = state.user_objects.get(_name(machine, call))
        function = getattr(found, call.method, None)
        if function is None:
            raise InterpreterError(f"{call.loc}: extern {call.extern}.{call.method} is not implemented")
    places = []
    arguments: list[object] = []
    for param, argument in zip(call.params, call.args, strict=True):
        if param.direction in (ir.Direction.OUT, ir.Direction.INOUT):
            places.append(machine.place(argument))
            if param.direction is ir.Direction.OUT:
                continue
        is_text = isinstance(argument, ir.Literal) and isinstance(argument.value, str)
        arguments.append(argument.value if is_text and isinstance(argument, ir.Literal) else machine.value(argument))
    values = user_externs.outputs(call, state.user_externs.call(function, arguments, call.loc))
    result = values.pop(0) if len(values) > len(places) else None
    for place, value in zip(places, values, strict=True):
        place.set(value)
    machine.trace.line(f"extern {call.method}{tuple(arguments)}: {result!r}, {values!r}", call.loc)
    return result


def _name(machine: Machine, call: ir.ExternCall) -> str:
    assert call.target is not None, "methods have an object"
    return machine.extern_of(call.target)


def _bits(machine: Machine, expr: ir.Expr) -> int:
    return to_bits(machine.value(expr), expr.type)


def _register_read(machine: Machine, call: ir.ExternCall) -> None:
    register = machine.packet.state.registers[_name(machine, call)]
    place = machine.place(call.args[0])
    index = _bits(machine, call.args[1])
    value = register.read(index)
    machine.trace.line(f"{_name(machine, call)}[{index}] is {value!r}", call.loc)
    place.set(value)


def _register_write(machine: Machine, call: ir.ExternCall) -> None:
    register = machine.packet.state.registers[_name(machine, call)]
    index, value = _bits(machine, call.args[0]), machine.value(call.args[1])
    machine.trace.line(f"{_name(machine, call)}[{index}] = {value!r}", call.loc)
    register.write(index, value)


def _count(machine: Machine, call: ir.ExternCall) -> None:
    cells = machine.packet.state.counters[_name(machine, call)]
    index = _bits(machine, call.args[0])
    if index < len(cells):
        cells[index].count(machine.packet.length)


def _execute_meter(machine: Machine, call: ir.ExternCall) -> None:
    cells = machine.packet.state.meters[_name(machine, call)]
    index, place = _bits(machine, call.args[0]), machine.place(call.args[1])
    if index < len(cells):
        color = cells[index].execute(machine.packet.now_us, machine.packet.length)
        place.set(from_bits(color, call.args[1].type))


def _direct_meter_read(machine: Machine, call: ir.ExternCall) -> None:
    assert isinstance(call.target, ir.InstanceDecl)
    color = machine.frame.colors.get(call.target.name, 0)
    machine.place(call.args[0]).set(from_bits(color, call.args[0].type))


def _mark_to_drop(machine: Machine, call: ir.ExternCall) -> None:
    standard = machine.composite(call.args[0])
    assert isinstance(standard, Struct)
    standard.fields["egress_spec"] = DROP_PORT
    standard.fields["mcast_grp"] = 0


def _random(machine: Machine, call: ir.ExternCall) -> None:
    place = machine.place(call.args[0])
    low, high = machine.number(call.args[1]), machine.number(call.args[2])
    place.set(from_bits(machine.packet.dice.randint(low, high) if low < high else low, call.args[0].type))


def _hash(machine: Machine, call: ir.ExternCall) -> None:
    result, algorithm, base, data, most = call.args
    place = machine.place(result)
    low = _bits(machine, base)
    value = in_range(hash_of(machine, algorithm, data), low, _bits(machine, most))
    place.set(from_bits(value & ((1 << 64) - 1), result.type))


def _checksum(*, verify: bool, with_payload: bool) -> Callable[[Machine, ir.ExternCall], None]:
    def handler(machine: Machine, call: ir.ExternCall) -> None:
        condition, data, checksum, algorithm = call.args
        if not machine.number(condition):
            return
        if isinstance(checksum, ir.FieldRef) and isinstance(checksum.base.type, HeaderType):
            header = machine.composite(checksum.base)
            assert isinstance(header, Header)
            if not header.valid:
                return
        computed = hash_of(machine, algorithm, data, machine.packet.payload if with_payload else b"")
        value = from_bits(computed, checksum.type)
        if not verify:
            machine.trace.line(f"checksum {value!r}", call.loc)
            machine.place(checksum).set(value)
        elif machine.value(checksum) != value:
            machine.trace.line(f"checksum error: {value!r} is due", call.loc)
            machine.packet.checksum_error = True

    return handler


def _clone(machine: Machine, call: ir.ExternCall) -> None:
    session = _bits(machine, call.args[1]) & 0x7FFF
    fields = _bits(machine, call.args[2]) if len(call.args) > 2 else 0
    machine.packet.requests.clone = (session, fields)


def _resubmit(machine: Machine, call: ir.ExternCall) -> None:
    machine.packet.requests.resubmit = _bits(machine, call.args[0])


def _recirculate(machine: Machine, call: ir.ExternCall) -> None:
    machine.packet.requests.recirculate = _bits(machine, call.args[0])


def _truncate(machine: Machine, call: ir.ExternCall) -> None:
    requests = machine.packet.requests
    length = _bits(machine, call.args[0])
    requests.truncate = length if requests.truncate is None else min(length, requests.truncate)


def _digest(machine: Machine, call: ir.ExternCall) -> None:
    data = call.args[1]
    members = [to_bits(value, t) for value, t in leaves(machine.value(data), data.type)]
    machine.trace.line(f"digest {data.type}{members}", call.loc)
    if machine.packet.on_digest is not None:
        machine.packet.on_digest(digest_name(call.type_args[0]), members)


def _assert(machine: Machine, call: ir.ExternCall) -> None:
    if not machine.number(call.args[0]):
        machine.packet.log(f"{call.loc}: {call.method} failed")


def _log_msg(machine: Machine, call: ir.ExternCall) -> None:
    text = call.args[0]
    assert isinstance(text, ir.Literal)
    values: list[int] = []
    if len(call.args) > 1:
        listed = call.args[1]
        values = [to_bits(value, t) for value, t in leaves(machine.value(listed), listed.type)]
    parts = str(text.value).split("{}")
    out = parts[0]
    for i, part in enumerate(parts[1:]):
        out += (str(values[i]) if i < len(values) else "{}") + part
    machine.packet.log(out)


def _nothing(machine: Machine, call: ir.ExternCall) -> None:
    """Done elsewhere: a direct counter counts when its table is hit."""
    del machine, call


_HANDLERS: dict[tuple[str, str], Callable[[Machine, ir.ExternCall], Value | None]] = {
    ("register", "read"): _register_read,
    ("register", "write"): _register_write,
    ("counter", "count"): _count,
    ("direct_counter", "count"): _nothing,
    ("meter", "execute_meter"): _execute_meter,
    ("direct_meter", "read"): _direct_meter_read,
    ("packet_in", "extract"): packet_externs.extract,
    ("packet_in", "lookahead"): packet_externs.lookahead,
    ("packet_in", "advance"): packet_externs.advance,
    ("packet_in", "length"): packet_externs.length,
    ("packet_out", "emit"): packet_externs.emit_value,
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
    ("", "resubmit_preserving_field_list"): _resubmit,
    ("", "recirculate_preserving_field_list"): _recirculate,
    ("", "truncate"): _truncate,
    ("", "digest"): _digest,
    ("", "assert"): _assert,
    ("", "assume"): _assert,
    ("", "log_msg"): _log_msg,
    ("", "static_assert"): _nothing,
}
