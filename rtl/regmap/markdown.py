"""The page of a map in docs/."""

from __future__ import annotations

import re

from catchment.rtl.regmap.model import Field, Register, RegisterMap
from catchment.rtl.regmap.systemverilog import banner

_ACCESS = """\
Every register is a 32-bit word on AXI4-Lite; a wider one takes two, the low word first. Access: `rw` is a setting, `ro`
is what the hardware says, `wo` is a command (reads as zero), `w1c` stays until a one is written to it. A write may
select bytes; of a command or an event the others count as zero, and a write that selects none does nothing. Reserved
bits are ignored and read as zero. An address without a register, a write to a `ro` one, and
{locked}, is answered with SLVERR, changes nothing, and counts as REGISTER_ERRORS."""


def _bits(field: Field) -> str:
    return str(field.lsb) if field.bits == 1 else f"{field.lsb + field.bits - 1}:{field.lsb}"


def _rows(register: Register) -> list[str]:
    (first, *_) = register.fields
    plain = first.name == "value"
    bits = _bits(first) if plain else ""
    reset = f"{first.reset:#x}" if plain and register.access == "rw" else ""
    rows = [f"| {register.address:#05x} | `{register.name}` | {register.access} | {bits} | {reset} | {register.doc} |"]
    if not plain:
        rows += [
            f"| | `.{f.name}` | | {_bits(f)} | {f'{f.reset:#x}' if register.access == 'rw' else ''} | {f.doc} |"
            for f in register.fields
        ]
    return rows


def emit(registers: RegisterMap) -> str:
    """The page."""
    lines = [
        f"<!-- {banner(registers)} -->", f"# {registers.title}", "", _ACCESS.format(locked=registers.locked), "",
    ]  # fmt: skip
    for block in registers.blocks:
        lines += [f"## {block.name.capitalize()}", "", block.doc, ""]
        lines += ["| address | register | access | bits | reset | |", "|---|---|---|---|---|---|"]
        for register in block.registers:
            lines += _rows(register)
        lines.append("")
    enums = {enum.name: enum for enum in registers.enums}
    for table in registers.tables:
        lines += [f"## {table.name.capitalize()}", "", f"{table.doc.capitalize()}.", ""]
        lines += ["| address | counter | |", "|---|---|---|"]
        lines += [
            f"| {table.address + 4 * table.words * v.value:#05x} | `{v.name}` | {v.doc} |"
            for v in enums.pop(table.enum).values
        ]
        lines.append("")
    for enum in enums.values():
        lines += [
            f"## {enum.name}",
            "",
            f"{enum.doc[0].upper()}{enum.doc[1:]}.",
            "",
            "| value | name | |",
            "|---|---|---|",
        ]
        lines += [f"| {v.value} | `{v.name}` | {v.doc} |" for v in enum.values]
        lines.append("")
    for record in registers.records:
        title = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", record.name).capitalize()
        lines += [
            f"## {title}",
            "",
            f"{record.doc[0].upper()}{record.doc[1:]}: {record.bytes} bytes, little-endian.",
            "",
        ]
        lines += ["| byte | field | |", "|---|---|---|"]
        for field in record.fields:
            if not field.reserved:
                place = str(field.offset) if field.bytes == 1 else f"{field.offset}..{field.offset + field.bytes - 1}"
                lines.append(f"| {place} | `{field.name}` | {field.doc} |")
        lines.append("")
    return "\n".join(lines)
