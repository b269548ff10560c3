"""The interpreter's one exception."""

from __future__ import annotations


class InterpreterError(Exception):
    """The program uses something that the interpreter does not know; the message says what and where."""
