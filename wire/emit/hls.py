"""C++ that an HLS compiler takes: the element types alone, without what C++20 brought."""

from __future__ import annotations

from catchment.wire.emit.layout import BANNER
from catchment.wire.frame import Frame


def emit(frame: Frame) -> str:
    """The text of wire_hls.hpp."""
    (types,) = [enum for enum in frame.enums if enum.name == "DataType"]
    return "\n".join(
        [
            f"// {BANNER}",
            "// clang-format off",
            "#pragma once",
            "",
            f"namespace {frame.name} {{",
            "namespace wire_hls {",
            "",
            f"// {types.doc}",
            "enum class DataType : unsigned {",
            *[f"  k{v.name} = {v.value},  // {v.doc}" for v in types.values],
            "};",
            "",
            "}  // namespace wire_hls",
            f"}}  // namespace {frame.name}",
            "",
        ]
    )
