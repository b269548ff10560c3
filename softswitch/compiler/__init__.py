"""The P4_16 (v1model) compiler: source text to IR, P4Info and, in `backend`, C++."""

from catchment.softswitch.compiler.diagnostics import CompileError, Diagnostic
from catchment.softswitch.compiler.driver import Compiled, compile_program

__all__ = ["CompileError", "Compiled", "Diagnostic", "compile_program"]
