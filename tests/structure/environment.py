"""The environment variables that sources read: what they ask `os.environ` or getenv for, and the options' `envvar`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

from floors import tracked

from catchment.checkout import ROOT

FOREIGN = {"PATH", "PYTHONPATH"}
"""Those of every program, which mean here what they mean everywhere."""
_OWN_TOOLS = ("tests/", "bench/", "tools/")
_GETENV = re.compile(r'\bgetenv\("(\w+)"\)')
_MAPPINGS = {"environ", "environment"}


class UnknownNameError(Exception):
    """A place reads a variable whose name is no literal and no constant; says where."""


def read_by_users() -> dict[str, set[str]]:
    """Variable -> the files that read it, of all that users run."""
    found: dict[str, set[str]] = {}
    for name in tracked("*.py", "*.cpp", "*.hpp"):
        if not name.startswith(_OWN_TOOLS):
            text = (ROOT / name).read_text("utf-8")
            read = of_python(text, name) if name.endswith(".py") else set(_GETENV.findall(text))
            for variable in read - FOREIGN:
                found.setdefault(variable, set()).add(name)
    return found


def of_python(text: str, name: str) -> set[str]:
    """The variables that a Python file reads.

    Raises:
        UnknownNameError: it does not say at a place which.
    """
    if not re.search(r"environ|getenv|envvar", text):
        return set()
    tree = ast.parse(text)
    constants = _constants(tree) | dict(_imported(tree))
    parameters = {argument.arg for node in ast.walk(tree) if isinstance(node, ast.arguments) for argument in node.args}
    parameters |= {node.target.id for node in ast.walk(tree) if isinstance(node, ast.comprehension | ast.For)
                   and isinstance(node.target, ast.Name)}  # fmt: skip
    found = set()
    for node in ast.walk(tree):
        for key in _keys(node):
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                found.add(key.value)
            elif isinstance(key, ast.Name) and key.id in constants:
                found.add(constants[key.id])
            elif not (isinstance(key, ast.Name) and key.id in parameters):  # who calls it says which
                raise UnknownNameError(f"{name}:{key.lineno}")
    return found


def _constants(tree: ast.Module) -> dict[str, str]:
    """The texts that a module names, out of assignments that need nothing else."""
    found: dict[str, object] = {"__builtins__": {}}
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", ast.Constant(None))]
        value = getattr(node, "value", None)
        if isinstance(value, ast.expr) and isinstance(targets[0], ast.Name | ast.Tuple):
            plain = ast.fix_missing_locations(ast.Module([ast.Assign(targets, value)], []))
            with suppress(Exception):
                exec(compile(plain, "", "exec"), found)
    return {name: value for name, value in found.items() if isinstance(value, str)}


@cache
def _constants_of(file: Path) -> dict[str, str]:
    return _constants(ast.parse(file.read_text("utf-8")))


def _imported(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("catchment."):
            file = ROOT / "catchment" / Path(*(node.module or "").split(".")[1:]).with_suffix(".py")
            if file.is_file():
                constants = _constants_of(file)
                yield from ((a.asname or a.name, constants[a.name]) for a in node.names if a.name in constants)


def _is_environment(node: ast.expr) -> bool:
    return (isinstance(node, ast.Attribute) and node.attr == "environ") or (
        isinstance(node, ast.Name) and node.id in _MAPPINGS
    )


def _keys(node: ast.AST) -> list[ast.expr]:
    """What names the variables that are read here."""
    match node:
        case ast.Subscript(value=value, slice=key, ctx=ast.Load()) if _is_environment(value):
            return [key]
        case ast.Compare(left=key, ops=[ast.In() | ast.NotIn()], comparators=[value]) if _is_environment(value):
            return [key]
        case ast.Call(func=ast.Attribute(value=value, attr="get" | "pop" | "setdefault"), args=[key, *_]) if (
            _is_environment(value)
        ):
            return [key]
        case ast.Call(func=ast.Attribute(attr="getenv") | ast.Name(id="getenv"), args=[key, *_]):
            return [key]
        case ast.Call(args=[value, key, *_]) if _is_environment(value):  # a function of our own that reads it
            return [key]
        case ast.keyword(arg="envvar", value=ast.List(elts=keys)):
            return keys
        case ast.keyword(arg="envvar", value=key):
            return [key]
    return []
