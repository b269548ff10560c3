"""packet_in, packet_out and verify."""

from __future__ import annotations

from catchment.softswitch.compiler import ir
from catchment.softswitch.compiler.types import HeaderType, bit_width
from catchment.softswitch.interpreter.bits import BitWriter, PacketIn, emit, fixed_bits, look, read_header, varbit_limit
from catchment.softswitch.interpreter.parser_states import ParserStates
from catchment.softswitch.interpreter.signals import RejectSignal
from catchment.softswitch.interpreter.trace import text_of
from catchment.softswitch.interpreter.values import Header, Stack, Value, default_value, show, to_bits


def _packet_in(machine: ParserStates, call: ir.ExternCall) -> PacketIn:
    assert isinstance(call.target, ir.Variable)
    packet = machine.frame.variables[call.target]
    assert isinstance(packet, PacketIn)
    return packet


def extract(machine: ParserStates, call: ir.ExternCall) -> None:
    """`extract(header)` and `extract(header, bits of its varbit)`; nothing happens when the packet is too short."""
    packet = _packet_in(machine, call)
    target = call.args[0]
    t = call.type_args[0] if isinstance(target, ir.DontCare) and call.type_args else target.type
    assert isinstance(t, HeaderType)
    varbits = to_bits(machine.value(call.args[1]), call.args[1].type) if len(call.args) > 1 else 0
    if varbits % 8 != 0:
        raise RejectSignal("ParserInvalidArgument")
    place = machine.place(target)
    packet.need(fixed_bits(t) + varbits)
    if varbits > varbit_limit(t):
        raise RejectSignal("HeaderTooShort")
    header = default_value(t)
    assert isinstance(header, Header)
    packet.at += read_header(packet, header, varbits)
    place.set(header)
    if machine.trace.on:
        machine.trace.line(f"extract {text_of(target)} = {show(header)}", call.loc)
    next_ = target.base if isinstance(target, ir.FieldRef) else target
    if isinstance(next_, ir.StackNext):
        stack = machine.composite(next_.stack)
        assert isinstance(stack, Stack)
        stack.next += 1


def lookahead(machine: ParserStates, call: ir.ExternCall) -> Value:
    """`lookahead<T>()`."""
    packet = _packet_in(machine, call)
    packet.need(bit_width(call.type))
    value, _ = look(packet, call.type)
    if machine.trace.on:
        machine.trace.line(f"lookahead {show(value)}", call.loc)
    return value


def advance(machine: ParserStates, call: ir.ExternCall) -> None:
    """`advance(bits)`: whole bytes only."""
    packet = _packet_in(machine, call)
    bits = to_bits(machine.value(call.args[0]), call.args[0].type)
    if bits % 8 != 0:
        raise RejectSignal("ParserInvalidArgument")
    packet.need(bits)
    packet.at += bits
    machine.trace.line(f"advance {bits} bits", call.loc)


def length(machine: ParserStates, call: ir.ExternCall) -> Value:
    """Length of the whole packet, in bytes."""
    return len(_packet_in(machine, call).data)


def verify(machine: ParserStates, call: ir.ExternCall) -> None:
    """`verify(condition, error)`."""
    condition, error = machine.number(call.args[0]), machine.number(call.args[1])
    if not condition:
        raise RejectSignal(machine.packet.program.errors[error])


def emit_value(machine: ParserStates, call: ir.ExternCall) -> None:
    """`emit(header, struct, stack or union)`."""
    assert isinstance(call.target, ir.Variable)
    out = machine.frame.variables[call.target]
    assert isinstance(out, BitWriter)
    emit(out, machine.value(call.args[0]))
