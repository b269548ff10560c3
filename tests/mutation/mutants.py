"""Prints mutants of one module as JSON: `python mutants.py FILE COUNT SEED`, in the environment of requirements.txt.

cosmic-ray makes those of Python, universalmutator those of C++. A mutant that differs in annotations, comments or
spaces alone is left out: nothing evaluates them.
"""

from __future__ import annotations

import ast
import contextlib
import json
import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names
from universalmutator.mutator import mutants_regexp

CPP_RULES = ["universal.rules", "c_like.rules", "cpp.rules"]
# They need arguments that name variables.
LEFT_OUT = {"core/VariableReplacer", "core/VariableInserter"}


class _Bare(ast.NodeTransformer):
    """Takes annotations off."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.annotation = ast.Name("None", ast.Load())
        return self.generic_visit(node)


def meaning(source: str) -> str:
    """What a module does, without its annotations.

    Raises:
        SyntaxError: it is no Python.
    """
    return ast.dump(_Bare().visit(ast.parse(source)))


def mutants(source: str, count: int, seed: int) -> Iterator[dict[str, object]]:
    """Mutants, at most `count`, drawn with `seed`: the operator, the line it changes (from 1), and the whole source."""
    operators = {name: get_operator(name)() for name in sorted(set(operator_names()) - LEFT_OUT)}
    nodes = list(ast_nodes(get_ast(source)))
    places = [
        (name, occurrence, start[0])
        for name, operator in operators.items()
        for occurrence, (start, _) in enumerate(place for node in nodes for place in operator.mutation_positions(node))
    ]
    random.Random(seed).shuffle(places)
    seen = {meaning(source)}
    for name, occurrence, line in places:
        if len(seen) > count:
            return
        mutated = mutate_code(source, operators[name], occurrence)
        try:
            means = meaning(mutated)
        except SyntaxError:
            continue
        if means not in seen:
            seen.add(means)
            yield {"operator": name.partition("/")[2], "line": line, "source": mutated}


def without_comments(line: str) -> str:
    """A line of C++ as the compiler sees it."""
    return re.sub(r"\s+", "", line.partition("//")[0])


def mutants_of_cpp(source: str, count: int, seed: int) -> Iterator[dict[str, object]]:
    """The same for C++; some do not compile. Lines that decide nothing, includes and closing braces, stay."""
    lines = source.splitlines(keepends=True)
    with contextlib.redirect_stdout(sys.stderr):
        found = mutants_regexp(lines, CPP_RULES, ignorePatterns=[r"^\s*#", r"^\s*}?\s*$"], ignoreStringOnly=True)
    random.Random(seed).shuffle(found)
    seen = {(number, without_comments(line)) for number, line in enumerate(lines, 1)}
    left = count
    for number, line, rule, _ in found:
        if left and (number, without_comments(line)) not in seen:
            left -= 1
            seen.add((number, without_comments(line)))
            changed = "".join([*lines[: number - 1], line, *lines[number:]])
            yield {"operator": rule[0], "line": number, "source": changed}


if __name__ == "__main__":
    path, count, seed = sys.argv[1:]
    make = mutants if path.endswith(".py") else mutants_of_cpp
    json.dump(list(make(Path(path).read_text("utf-8"), int(count), int(seed))), sys.stdout)
