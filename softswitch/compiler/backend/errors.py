"""Refusing what the back end does not take, by name and place."""

from __future__ import annotations

from catchment.softswitch.compiler.diagnostics import CompileError, Diagnostic
from catchment.softswitch.compiler.source import Location


def unsupported(loc: Location, what: str, hint: str = "") -> CompileError:
    """The error to raise: `what` is not taken by this target; `hint` says what to write instead."""
    return CompileError([Diagnostic(loc, f"{what}: not supported by the embedded target", hint)])
