"""The modules of the IR are layers: each imports only those below it, for types as well."""

from __future__ import annotations

import ast
from pathlib import Path

import catchment.softswitch.compiler.ir as package

LAYERS = ("base", "expressions", "statements", "tables", "units", "calls", "walk", "__init__")
PREFIX = "catchment.softswitch.compiler.ir."


def imported(file: Path) -> set[str]:
    """The modules of the package that a file imports anywhere, also where only a type checker looks."""
    nodes = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.ImportFrom)]
    return {str(node.module).removeprefix(PREFIX) for node in nodes if str(node.module).startswith(PREFIX)}


def test_each_imports_only_what_is_below() -> None:
    folder = Path(str(package.__file__)).parent
    assert sorted(file.stem for file in folder.glob("*.py")) == sorted(LAYERS)
    climbing = {
        (name, other)
        for place, name in enumerate(LAYERS)
        for other in imported(folder / f"{name}.py")
        if other not in LAYERS[:place]
    }
    assert not climbing
