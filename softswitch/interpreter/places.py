"""A place that a value can be written to: an lvalue becomes one once its indices are known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from catchment.softswitch.compiler import ir
from catchment.softswitch.compiler.types import Type
from catchment.softswitch.interpreter.bits import BitWriter, PacketIn
from catchment.softswitch.interpreter.values import (
    Composite,
    ExternObject,
    Header,
    Stack,
    Struct,
    Union,
    Value,
    copy_of,
    from_bits,
    overwrite,
    to_bits,
    width_of,
)

ByReference = PacketIn | BitWriter | ExternObject
"""What a parameter of extern type holds."""
Variables = dict[ir.Variable, Value | ByReference]
"""What the variables of a running unit hold."""


class Place(Protocol):
    """Something that can be read and written."""

    def get(self) -> Value:
        """A copy of what is there."""

    def set(self, value: Value) -> None:
        """Objects keep their identity: their members are overwritten."""


@dataclass(frozen=True, slots=True)
class VariablePlace:
    """A variable."""

    variables: Variables
    variable: ir.Variable

    def get(self) -> Value:
        value = self.variables[self.variable]
        assert not isinstance(value, ByReference)
        return copy_of(value)

    def set(self, value: Value) -> None:
        mine = self.variables[self.variable]
        if isinstance(mine, Composite):
            overwrite(mine, value)
        else:
            self.variables[self.variable] = value


@dataclass(frozen=True, slots=True)
class MemberPlace:
    """A member of a struct, header or union."""

    owner: Struct | Header | Union
    name: str

    def get(self) -> Value:
        return copy_of(self._members()[self.name])

    def set(self, value: Value) -> None:
        if isinstance(self.owner, Union):
            overwrite(self.owner.members[self.name], value)
            if self.owner.members[self.name].valid:
                self.owner.only(self.name)
            return
        mine = self.owner.fields[self.name]
        if isinstance(mine, Composite):
            overwrite(mine, value)
        else:
            self.owner.fields[self.name] = value

    def _members(self) -> dict[str, Value]:
        if isinstance(self.owner, Union):
            return dict(self.owner.members)
        return self.owner.fields


@dataclass(frozen=True, slots=True)
class ElementPlace:
    """An element of a header stack or array, within its bounds."""

    stack: Stack
    index: int

    def get(self) -> Value:
        return copy_of(self.stack.elements[self.index])

    def set(self, value: Value) -> None:
        self.stack.put(self.index, value)


@dataclass(frozen=True, slots=True)
class BitsPlace:
    """`width` bits from bit `low` of a scalar. Bits outside the scalar read as zero and forget what is written."""

    base: Place
    type: Type
    low: int
    width: int

    def get(self) -> Value:
        return to_bits(self.base.get(), self.type) >> self.low & ((1 << self.width) - 1)

    def set(self, value: Value) -> None:
        assert isinstance(value, int)
        if self.low >= width_of(self.type):
            return
        hole = ((1 << self.width) - 1) << self.low
        bits = to_bits(self.base.get(), self.type) & ~hole | value << self.low
        self.base.set(from_bits(bits, self.type))


@dataclass(slots=True)
class Scratch:
    """Nowhere: `_`, or an element outside its stack. Begins as `value`; no other place sees what is written."""

    value: Value

    def get(self) -> Value:
        return copy_of(self.value)

    def set(self, value: Value) -> None:
        self.value = value
