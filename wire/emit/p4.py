"""P4_16: constants, enumerations and the header type."""

from __future__ import annotations

from catchment.wire.emit.layout import BANNER
from catchment.wire.frame import Enumeration, Field, Frame


def _enum(enum: Enumeration) -> str:
    if enum.flags:
        kind, prefix = f"const bit<{enum.bits}>", enum.name.upper()
        rows = [f"{kind} {prefix}_{v.name} = {v.value:#04x};  // {v.doc}" for v in enum.values]
        return "\n".join([f"// {enum.doc}", *rows, f"{kind} {prefix}_ALL = {enum.mask:#04x};"])
    rows = [f"    {v.name} = {v.value}{',' if v is not enum.values[-1] else ''}  // {v.doc}" for v in enum.values]
    return "\n".join([f"// {enum.doc}", f"enum bit<{enum.bits}> {enum.name} {{", *rows, "}"])


def _type(frame: Frame, field: Field) -> str:
    if field.enum is not None and frame.enum(field.enum).flags is False:
        return field.enum
    return f"{'int' if field.signed else 'bit'}<{field.bits}>"


def emit(frame: Frame) -> str:
    """The text of wire.p4."""
    guard = "CATCHMENT_WIRE_P4"
    fields = [f"    {_type(frame, f)} {f.name};  // {f.doc}" for f in frame.fields]
    prefix = frame.name.upper()
    return "\n".join(
        [
            f"// {BANNER}",
            f"#ifndef {guard}",
            f"#define {guard}",
            "",
            f"const bit<4> {prefix}_VERSION = {frame.version};",
            f"const bit<4> {prefix}_TAGGED_VERSION = {frame.tagged_version};",
            f"const bit<16> {prefix}_TAG_BYTES = {frame.tag_bytes};",
            f"const bit<16> {prefix}_UDP_PORT = {frame.udp_port};",
            f"const bit<16> {prefix}_HEADER_BYTES = {frame.header_bytes};",
            f"const bit<16> {prefix}_LANE_BYTES = {frame.lane_bits // 8};",
            f"const bit<16> IPV4_HEADER_BYTES = {frame.encapsulation.ipv4};",
            f"const bit<16> UDP_HEADER_BYTES = {frame.encapsulation.udp};",
            "",
            *[_enum(e) + "\n" for e in frame.enums],
            f"header {frame.name}_h {{",
            *fields,
            "}",
            "",
            f"#endif  // {guard}",
            "",
        ]
    )
