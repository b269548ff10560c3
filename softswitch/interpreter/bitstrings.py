"""Lists of values as bytes: what hashes and checksums are computed over."""

from __future__ import annotations

from collections.abc import Sequence

from catchment.softswitch.compiler import ir
from catchment.softswitch.compiler.source import Location
from catchment.softswitch.compiler.types import HeaderType, TupleType
from catchment.softswitch.interpreter.bits import BitWriter, write_value
from catchment.softswitch.interpreter.calls import Calls
from catchment.softswitch.interpreter.errors import InterpreterError
from catchment.softswitch.interpreter.hashes import ALGORITHMS
from catchment.softswitch.interpreter.values import Header


def tuple_of(loc: Location, members: Sequence[ir.Expr]) -> ir.Expr:
    """The tuple of some expressions."""
    return ir.Aggregate(loc, TupleType(tuple(m.type for m in members)), tuple(members))


def _put(machine: Calls, out: BitWriter, data: ir.Expr) -> None:
    """What belongs to an invalid header is left out, as BMv2 does."""
    if isinstance(data, ir.Aggregate) and not isinstance(data.type, HeaderType):
        for member in data.members:
            _put(machine, out, member)
        return
    if isinstance(data, ir.FieldRef) and isinstance(data.base.type, HeaderType):
        base = machine.composite(data.base)
        assert isinstance(base, Header)
        if not base.valid:
            return
    value = machine.value(data)
    if isinstance(value, Header) and not value.valid:
        return
    write_value(out, value, data.type)


def bytes_of(machine: Calls, data: ir.Expr) -> bytes:
    """All members one after the other, padded with zeros to whole bytes."""
    out = BitWriter()
    _put(machine, out, data)
    return out.to_bytes()


def hash_of(machine: Calls, algorithm: ir.Expr, data: ir.Expr, suffix: bytes = b"") -> int:
    """A HashAlgorithm over `data`, then `suffix`."""
    assert isinstance(algorithm, ir.EnumValue)
    if algorithm.member == "random":
        return machine.packet.dice.getrandbits(64)
    function = ALGORITHMS.get(algorithm.member)
    if function is None:
        raise InterpreterError(f"{algorithm.loc}: hash algorithm {algorithm.member}")
    return function(bytes_of(machine, data) + suffix)
