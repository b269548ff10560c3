"""What the externs of v1model and core.p4 look like: a program that declares one of them itself must declare it so."""

from __future__ import annotations

from catchment.softswitch.compiler import ir
from catchment.softswitch.compiler.diagnostics import Refusal
from catchment.softswitch.compiler.source import Location
from catchment.softswitch.compiler.types import EnumType

_SHAPES: dict[tuple[str, str], tuple[str, ...]] = {
    ("register", "read"): ("ow",),
    ("register", "write"): ("ww",),
    ("counter", "count"): ("w",),
    ("direct_counter", "count"): ("",),
    ("meter", "execute_meter"): ("wo",),
    ("direct_meter", "read"): ("o",),
    ("packet_in", "extract"): ("o", "ow"),
    ("packet_in", "lookahead"): ("",),
    ("packet_in", "advance"): ("w",),
    ("packet_in", "length"): ("",),
    ("packet_out", "emit"): ("w",),
    ("", "verify"): ("ww",),
    ("", "mark_to_drop"): ("", "x"),
    ("", "random"): ("oww",),
    ("", "hash"): ("oewww",),
    ("", "verify_checksum"): ("wwwe",),
    ("", "update_checksum"): ("wwxe",),
    ("", "verify_checksum_with_payload"): ("wwwe",),
    ("", "update_checksum_with_payload"): ("wwxe",),
    ("", "clone"): ("ew",),
    ("", "clone_preserving_field_list"): ("eww",),
    ("", "resubmit_preserving_field_list"): ("w",),
    ("", "recirculate_preserving_field_list"): ("w",),
    ("", "truncate"): ("w",),
    ("", "digest"): ("ww",),
    ("", "assert"): ("w",),
    ("", "assume"): ("w",),
    ("", "log_msg"): ("w", "ww"),
}
"""A letter for each parameter: w a value, e one of an enum, o `out`, x `inout`."""
_WORDS = {"w": "a value", "e": "a value of an enum", "o": "`out`", "x": "`inout`"}


def check_shape(extern: str, method: str, params: tuple[ir.Param, ...], loc: Location) -> None:
    """Refuses a call at `loc` of what has the name of the architecture's extern, and other parameters."""
    wanted = _SHAPES.get((extern, method))
    if wanted is None or any(_fits(params, shape) for shape in wanted):
        return
    name = f"{extern}.{method}" if extern else method
    takes = " or ".join("(" + ", ".join(_WORDS[letter] for letter in shape) + ")" for shape in wanted)
    hint = "#include <v1model.p4> declares it, or call yours something else"
    raise Refusal(loc, f"{name}: the program declares it with other parameters than v1model, whose takes {takes}", hint)


def _fits(params: tuple[ir.Param, ...], shape: str) -> bool:
    return len(params) == len(shape) and all(map(_fits_letter, params, shape))


def _fits_letter(param: ir.Param, letter: str) -> bool:
    if param.direction in (ir.Direction.OUT, ir.Direction.INOUT):
        return letter == ("o" if param.direction is ir.Direction.OUT else "x")
    return letter == "w" or (letter == "e" and isinstance(param.type, EnumType))
