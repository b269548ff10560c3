"""P4Info: what a program shows the control plane."""

from __future__ import annotations

from typing import Any

from catchment.softswitch.compiler import ir
from catchment.softswitch.compiler.diagnostics import refuse_deep
from catchment.softswitch.compiler.p4info.writer import P4InfoWriter, to_text

__all__ = ["make_p4info", "to_text"]


def make_p4info(program: ir.Program, *, unique_names: bool = True) -> Any:
    """The program's `p4.config.v1.P4Info`. Raises `CompileError` for ids that clash.

    Without `unique_names`, actions of one name and shape share a message, as those of translated P4_14 programs do.
    """
    with refuse_deep(program.pipeline["p"].decl.loc, "code or instances are"):
        return P4InfoWriter(program, unique_names=unique_names).write()
