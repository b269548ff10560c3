"""Checks the syntax tree and makes the IR: names, types, constants, instances."""

from __future__ import annotations

from catchment.softswitch.compiler import ast, ir
from catchment.softswitch.compiler.check.program import ProgramChecker
from catchment.softswitch.compiler.diagnostics import Diagnostics

__all__ = ["check"]


def check(program: ast.ProgramDecl, diagnostics: Diagnostics) -> ir.Program:
    """The program's IR. Warnings go to `diagnostics`; raises `CompileError` with every error found."""
    return ProgramChecker(diagnostics).program(program)
