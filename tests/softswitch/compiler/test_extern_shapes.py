"""What the compiler asks of externs that a program declares itself is what our own v1model.p4 and core.p4 declare."""

from __future__ import annotations

from collections.abc import Iterator

from catchment.softswitch.compiler import ast
from catchment.softswitch.compiler.check.extern_shapes import _SHAPES
from catchment.softswitch.compiler.lexer import tokenize
from catchment.softswitch.compiler.parser import parse
from catchment.softswitch.compiler.preprocess import P4INCLUDE, preprocess


def declared(program: ast.ProgramDecl) -> Iterator[tuple[str, ast.FunctionDecl]]:
    """Each extern function and method, with the name of its extern."""
    for one in program.declarations:
        if isinstance(one, ast.FunctionDecl):
            yield "", one
        elif isinstance(one, ast.ExternDecl):
            yield from ((one.name, method) for method in one.methods)


def test_shapes_are_those_of_the_declarations() -> None:
    source = P4INCLUDE / "v1model.p4"
    program = parse(tokenize(preprocess(source), str(source)))
    enums = {one.name for one in program.declarations if isinstance(one, ast.EnumDecl)}

    def letter(param: ast.Parameter) -> str:
        if param.direction in ("out", "inout"):
            return {"out": "o", "inout": "x"}[param.direction]
        return "e" if isinstance(param.type, ast.NamedType) and param.type.name in enums else "w"

    found: dict[tuple[str, str], set[str]] = {}
    for extern, function in declared(program):
        found.setdefault((extern, function.name), set()).add("".join(map(letter, function.params)))
    assert {key: found.get(key) for key in _SHAPES} == {key: set(shapes) for key, shapes in _SHAPES.items()}
