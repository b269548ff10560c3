"""The Python map: registers and tables as values of rtl.regmap.model, enumerations as IntEnum, records as the
arguments of numpy.dtype."""

from __future__ import annotations

import re

from catchment.rtl.regmap.model import RecordField, Register, RegisterMap
from catchment.rtl.regmap.systemverilog import banner


def _register(register: Register) -> list[str]:
    fields = [
        f"        Field({f.name!r}, lsb={f.lsb}, bits={f.bits}, reset={f.reset}, signed={f.signed}, doc={f.doc!r}),"
        for f in register.fields
    ]
    return [
        f"{register.name} = Register(",
        f"    {register.name!r}, {register.address:#05x}, {register.words}, {register.access!r},",
        "    (",
        *fields,
        "    ),",
        f"    {register.doc!r},",
        *([f"    lock={register.lock!r},"] if register.lock else []),
        ")",
    ]


def _constant(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).upper()


def _member(field: RecordField) -> str:
    if field.bytes not in (1, 2, 4, 8):
        return f"    ({field.name!r}, 'u1', ({field.bytes},)),"
    kind = f"{'i' if field.signed else 'u'}{field.bytes}"
    return f"    ({field.name!r}, {(kind if field.bytes == 1 else '<' + kind)!r}),"


def emit(registers: RegisterMap) -> str:
    """The text of the module."""
    lines = [
        f'"""{banner(registers)}"""',
        "",
        "# fmt: off",
        "# ruff: noqa: E501",
        "from enum import IntEnum",
        "",
        f"from catchment.rtl.regmap.model import Field, Register{', Table' if registers.tables else ''}",
        "",
    ]
    for block in registers.blocks:
        lines.append(f"# {block.name}: {block.doc}")
        for register in block.registers:
            lines += _register(register)
        lines.append("")
    names = ", ".join(register.name for register in registers.registers)
    lines += [f"REGISTERS: tuple[Register, ...] = ({names})", ""]
    for table in registers.tables:
        lines.append(
            f"{table.name} = Table({table.name!r}, {table.address:#05x}, {table.words}, {table.count}, "
            f"{table.enum!r}, {table.doc!r})"
        )
    for enum in registers.enums:
        lines += ["", "", f"class {enum.name}(IntEnum):", f'    """{enum.doc}"""', ""]
        lines += [f"    {v.name} = {v.value}{'  # ' + v.doc if v.doc else ''}" for v in enum.values]
    for record in registers.records:
        lines += ["", "", f"# {record.doc}", f"{_constant(record.name)} = (", *map(_member, record.fields), ")"]
    return "\n".join([*lines, ""])
