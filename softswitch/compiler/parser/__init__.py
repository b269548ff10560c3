"""Turns tokens into the abstract syntax tree, by recursive descent."""

from __future__ import annotations

from catchment.softswitch.compiler import ast
from catchment.softswitch.compiler.diagnostics import CompileError, Refusal
from catchment.softswitch.compiler.lexer import Kind, Token
from catchment.softswitch.compiler.parser.declarations import ProgramParser
from catchment.softswitch.compiler.source import Location

__all__ = ["parse", "parse_expressions"]


def parse(tokens: list[Token]) -> ast.ProgramDecl:
    """The syntax tree of a whole program. Raises `CompileError` at the first syntax error."""
    try:
        return ProgramParser(tokens).program()
    except Refusal as refusal:
        raise CompileError([refusal.diagnostic]) from None


def parse_expressions(tokens: tuple[Token, ...], loc: Location) -> tuple[ast.Expr, ...]:
    """The expressions between commas in an annotation's body. Raises `Refusal` if it is something else."""
    parser = ProgramParser([*tokens, Token(Kind.END, "", loc)])
    found: list[ast.Expr] = []
    while not parser.at_end():
        found.append(parser.expression())
        if not parser.at_end():
            parser.expect(",", "between the values of an annotation")
    return tuple(found)
