"""The C++ header: addresses, masks and enumerations, and records in memory."""

from __future__ import annotations

from catchment.rtl.regmap.model import RecordField, RegisterMap
from catchment.rtl.regmap.systemverilog import banner


def _camel(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


def _member(field: RecordField) -> str:
    doc = f"  // {field.doc}" if field.doc else ""
    if field.bytes not in (1, 2, 4, 8):
        return f"  std::uint8_t {field.name}[{field.bytes}];{doc}"
    return f"  std::{'' if field.signed else 'u'}int{8 * field.bytes}_t {field.name};{doc}"


def emit(registers: RegisterMap) -> str:
    """The text of the header."""
    lines = [
        f"// {banner(registers)}",
        "// clang-format off",
        "#pragma once",
        "",
        "#include <cstdint>",
        "",
        f"namespace catchment::{registers.name} {{",
        "",
        "struct Field { unsigned lsb; unsigned bits; };",
        "",
    ]
    for block in registers.blocks:
        lines.append(f"// {block.name}: {block.doc}")
        for register in block.registers:
            name = _camel(register.name)
            lines.append(f"constexpr std::uint32_t k{name} = 0x{register.address:03x};  // {register.doc}")
            lines += [
                f"constexpr Field k{name}{_camel(field.name)}{{{field.lsb}, {field.bits}}};  // {field.doc}"
                for field in register.fields
                if field.name != "value"
            ]
        lines.append("")
    for table in registers.tables:
        name = _camel(table.name)
        lines += [f"// {table.doc}", f"constexpr std::uint32_t k{name} = 0x{table.address:03x};"]
        lines += [f"constexpr std::uint32_t k{name}Stride = {4 * table.words};", ""]
    for enum in registers.enums:
        lines += [f"// {enum.doc}", f"enum class {enum.name} : std::uint8_t {{"]
        lines += [f"  k{_camel(v.name)} = {v.value},{'  // ' + v.doc if v.doc else ''}" for v in enum.values]
        lines += ["};", ""]
    for record in registers.records:
        lines += [f"// {record.doc}; little-endian", f"struct {record.name} {{", *map(_member, record.fields), "};"]
        lines += [f"static_assert(sizeof({record.name}) == {record.bytes});", ""]
    return "\n".join([*lines, f"}}  // namespace catchment::{registers.name}", ""])
