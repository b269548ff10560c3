"""Registers as values, which the generated Python map is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Access = Literal["rw", "ro", "wo", "w1c"]
ANY = "any"
"""The lock of a setting that cannot be written while anything is on that the map's locks name."""


class RegisterMapError(Exception):
    """registers.toml is wrong, or a value does not fit its field; the message says where."""


@dataclass(frozen=True, slots=True)
class Field:
    """Bits of a register."""

    name: str
    lsb: int
    bits: int
    reset: int = 0
    signed: bool = False
    doc: str = ""

    def place(self, value: int) -> int:
        """The value at its bits.

        Raises:
            RegisterMapError: it does not fit.
        """
        low, high = (-(1 << (self.bits - 1)), 1 << (self.bits - 1)) if self.signed else (0, 1 << self.bits)
        if not low <= value < high:
            raise RegisterMapError(f"field {self.name}: {value} is outside {low}..{high - 1}")
        return (value & ((1 << self.bits) - 1)) << self.lsb

    def take(self, word: int) -> int:
        """The value from a register's bits."""
        value = (word >> self.lsb) & ((1 << self.bits) - 1)
        return value - (1 << self.bits) if self.signed and value >> (self.bits - 1) else value


@dataclass(frozen=True, slots=True)
class Register:
    """One or two words at a byte address; the low word comes first."""

    name: str
    address: int
    words: int
    access: Access
    fields: tuple[Field, ...]
    doc: str = ""
    lock: str = ""

    def pack(self, **values: int) -> int:
        """The register's bits; fields that are not named hold their reset value.

        Raises:
            RegisterMapError: no such field, or a value that does not fit.
        """
        unknown = values.keys() - {field.name for field in self.fields}
        if unknown:
            raise RegisterMapError(f"register {self.name} has no field {sorted(unknown)[0]}")
        word = 0
        for field in self.fields:
            word |= field.place(values.get(field.name, field.reset))
        return word

    def unpack(self, word: int) -> dict[str, int]:
        """Field name -> value."""
        return {field.name: field.take(word) for field in self.fields}


@dataclass(frozen=True, slots=True)
class Table:
    """`count` counters of `words` words each, from `address` on."""

    name: str
    address: int
    words: int
    count: int
    enum: str
    doc: str = ""


@dataclass(frozen=True, slots=True)
class Block:
    """Registers that belong together."""

    name: str
    doc: str
    registers: tuple[Register, ...]


@dataclass(frozen=True, slots=True)
class EnumValue:
    """A name of an enumeration."""

    name: str
    value: int
    doc: str


@dataclass(frozen=True, slots=True)
class Enumeration:
    """An enumeration that an RTL package defines."""

    name: str
    doc: str
    values: tuple[EnumValue, ...]


@dataclass(frozen=True, slots=True)
class RecordField:
    """Bytes of a record in memory, little-endian."""

    name: str
    offset: int
    bytes: int
    signed: bool
    doc: str

    @property
    def reserved(self) -> bool:
        """Zero, and of no meaning."""
        return self.name.startswith("reserved")


@dataclass(frozen=True, slots=True)
class Record:
    """What the hardware writes to memory, as an RTL package defines it."""

    name: str
    doc: str
    fields: tuple[RecordField, ...]

    @property
    def bytes(self) -> int:
        return sum(field.bytes for field in self.fields)


@dataclass(frozen=True, slots=True)
class RegisterMap:
    """All of it.

    Args:
        title: of its page.
        locked: what is refused because of a lock, in a sentence.
        locks: what can be on, so that settings cannot be written.
        source: the file that it was read from, below the repository.
    """

    name: str
    address_bits: int
    blocks: tuple[Block, ...]
    tables: tuple[Table, ...]
    enums: tuple[Enumeration, ...]
    records: tuple[Record, ...]
    title: str
    locked: str
    locks: tuple[str, ...]
    source: str

    @property
    def registers(self) -> tuple[Register, ...]:
        return tuple(register for block in self.blocks for register in block.registers)
