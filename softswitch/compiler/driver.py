"""The compiler as one function: from a P4 source file to IR and P4Info."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from catchment.softswitch.compiler import ir
from catchment.softswitch.compiler.diagnostics import Diagnostic
from catchment.softswitch.compiler.frontend import check_file
from catchment.softswitch.compiler.p4info import make_p4info, to_text


@dataclass(frozen=True, slots=True)
class Compiled:
    """A program ready for a back end and a control plane."""

    source: Path
    ir: ir.Program
    p4info: Any
    """`p4.config.v1.P4Info`."""
    warnings: tuple[Diagnostic, ...]

    @property
    def p4info_text(self) -> str:
        """P4Info in protobuf's text format."""
        return to_text(self.p4info)

    @property
    def p4info_binary(self) -> bytes:
        """P4Info in protobuf's binary format."""
        data: bytes = self.p4info.SerializeToString(deterministic=True)
        return data


def compile_program(
    source: Path, include_dirs: Sequence[Path] = (), defines: Mapping[str, str] | None = None
) -> Compiled:
    """Compiles a v1model program as far as IR and P4Info.

    `include_dirs` are searched in order, then the compiler's own core.p4 and v1model.p4. `defines` are preprocessor
    macros. Raises `CompileError` whose `diagnostics` say file, line, column and what to do.
    """
    checked = check_file(source, include_dirs, defines)
    return Compiled(source, checked.program, make_p4info(checked.program), checked.warnings)
