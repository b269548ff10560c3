"""C++20: constants, enumerations, and a header struct with its big-endian codec."""

from __future__ import annotations

from catchment.wire.emit.layout import BANNER, byte_groups
from catchment.wire.frame import Enumeration, Field, Frame


def _ctype(field: Field) -> str:
    width = 8 if field.bits <= 8 else 16 if field.bits <= 16 else 32
    return f"std::{'' if field.signed else 'u'}int{width}_t"


def _enum(enum: Enumeration) -> str:
    rows = [f"  k{v.name} = {v.value:#x},  // {v.doc}" for v in enum.values]
    lines = [f"// {enum.doc}", f"enum class {enum.name} : std::uint8_t {{", *rows, "};"]
    if enum.flags:
        lines.append(f"inline constexpr std::uint8_t k{enum.name}All = {enum.mask:#04x};")
        lines.append(
            f"constexpr std::uint8_t operator|({enum.name} a, {enum.name} b) {{\n"
            "  return static_cast<std::uint8_t>(static_cast<unsigned>(a) | static_cast<unsigned>(b));\n}"
        )
        lines.append(
            f"constexpr bool has(std::uint8_t set, {enum.name} flag) {{\n"
            "  return (set & static_cast<std::uint8_t>(flag)) != 0;\n}"
        )
    else:
        cases = [f'    case {enum.name}::k{v.name}:\n      return "{v.name}";' for v in enum.values]
        lines += [
            f"constexpr std::string_view name({enum.name} value) {{",
            "  switch (value) {",
            *cases,
            "  }",
            '  return "unknown";',
            "}",
        ]
    return "\n".join(lines)


def _decode(first: int, fields: list[Field]) -> list[str]:
    if len(fields) > 1:  # sub-byte fields share one byte
        shift, lines = 8, []
        for field in fields:
            shift -= field.bits
            mask = (1 << field.bits) - 1
            lines.append(f"  h.{field.name} = static_cast<std::uint8_t>((p[{first}] >> {shift}) & {mask:#x});")
        return lines
    field = fields[0]
    count = field.bits // 8
    terms = [f"(static_cast<std::uint32_t>(p[{first + i}]) << {8 * (count - 1 - i)})" for i in range(count)]
    return [f"  h.{field.name} = static_cast<{_ctype(field)}>({' | '.join(terms)});"]


def _encode(first: int, fields: list[Field]) -> list[str]:
    if len(fields) > 1:
        shift, terms = 8, []
        for field in fields:
            shift -= field.bits
            terms.append(f"((h.{field.name} & {(1 << field.bits) - 1:#x}) << {shift})")
        return [f"  p[{first}] = static_cast<std::uint8_t>({' | '.join(terms)});"]
    field = fields[0]
    count = field.bits // 8
    raw = f"static_cast<std::uint32_t>(h.{field.name})"
    return [f"  p[{first + i}] = static_cast<std::uint8_t>({raw} >> {8 * (count - 1 - i)});" for i in range(count)]


def emit(frame: Frame) -> str:
    """The text of wire.hpp."""
    constants = [
        ("std::uint8_t", "kVersion", frame.version),
        ("std::uint8_t", "kTaggedVersion", frame.tagged_version),
        ("std::size_t", "kTagBytes", frame.tag_bytes),
        ("std::uint64_t", "kKeyFrames", frame.key_frames),
        ("std::uint32_t", "kTermBits", frame.term_bits),
        ("std::uint16_t", "kUdpPort", frame.udp_port),
        ("std::size_t", "kHeaderBytes", frame.header_bytes),
        ("std::size_t", "kEthernetBytes", frame.encapsulation.ethernet),
        ("std::size_t", "kIpv4Bytes", frame.encapsulation.ipv4),
        ("std::size_t", "kUdpBytes", frame.encapsulation.udp),
        ("std::size_t", "kHeaderOffset", frame.encapsulation.total),
        ("std::size_t", "kLaneBytes", frame.lane_bits // 8),
        ("std::size_t", "kDefaultLanes", frame.default_lanes),
        ("std::size_t", "kMaxLanes", max(frame.supported_lanes)),
        ("std::size_t", "kMaxWorkers", frame.max_workers),
        ("std::size_t", "kMaxParamBytes", frame.max_param_bytes),
    ]
    groups = byte_groups(frame)
    return "\n".join(
        [
            f"// {BANNER}",
            "// clang-format off",
            "#pragma once",
            "",
            "#include <cstddef>",
            "#include <cstdint>",
            "#include <string_view>",
            "",
            f"namespace {frame.name}::wire {{",
            "",
            *[f"inline constexpr {ctype} {name} = {value};" for ctype, name, value in constants],
            "",
            *[_enum(e) + "\n" for e in frame.enums],
            "struct Header {",
            *[f"  {_ctype(f)} {f.name} = 0;  // {f.doc}" for f in frame.fields],
            "",
            "  friend bool operator==(const Header&, const Header&) = default;",
            "};",
            "",
            "// Reads kHeaderBytes in network byte order; the caller has checked the length.",
            "inline Header decode(const std::uint8_t* p) {",
            "  Header h;",
            *[line for first, fields in groups for line in _decode(first, fields)],
            "  return h;",
            "}",
            "",
            "// Writes kHeaderBytes in network byte order.",
            "inline void encode(const Header& h, std::uint8_t* p) {",
            *[line for first, fields in groups for line in _encode(first, fields)],
            "}",
            "",
            f"}}  // namespace {frame.name}::wire",
            "",
        ]
    )
