"""Refusing what the back end does not take, by name and place."""

from __future__ import annotations

from typing import NoReturn

from softswitch.compiler.diagnostics import CompileError, Diagnostic
from softswitch.compiler.source import Location


def refuse(loc: Location, what: str) -> NoReturn:
    """Raises CompileError: `what` is not taken by this target."""
    raise CompileError([Diagnostic(loc, f"{what}: not supported by the embedded target")])
