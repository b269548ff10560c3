"""The interpreter's one exception."""

from __future__ import annotations

from catchment.softswitch.compiler.source import Location


class InterpreterError(Exception):
    """The program uses something that the interpreter does not know; the message says what and where."""


def too_deep(loc: Location) -> InterpreterError:
    """What is nested too deeply to be run, where Python's stack has ended."""
    return InterpreterError(f"{loc}: nested too deeply to be interpreted: split it up")
