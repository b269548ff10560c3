"""From tokens to the abstract syntax tree, by recursive descent."""

from __future__ import annotations

from softswitch.compiler import ast
from softswitch.compiler.diagnostics import CompileError, Refusal
from softswitch.compiler.lexer import Token
from softswitch.compiler.parser.declarations import ProgramParser

__all__ = ["parse"]


def parse(tokens: list[Token]) -> ast.ProgramDecl:
    """The syntax tree of a whole program. Raises `CompileError` at the first syntax error."""
    try:
        return ProgramParser(tokens).program()
    except Refusal as refusal:
        raise CompileError([refusal.diagnostic]) from None
