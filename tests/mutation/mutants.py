"""Prints mutants of one module as JSON: `python mutants.py FILE COUNT SEED`, in the environment that has cosmic-ray.

A mutant that differs in annotations alone is left out: nothing evaluates them.
"""

from __future__ import annotations

import ast
import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

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
    """At most `count` mutants, drawn with `seed`: the operator, the line it changes (from 1), and the whole source."""
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


if __name__ == "__main__":
    path, count, seed = sys.argv[1:]
    json.dump(list(mutants(Path(path).read_text("utf-8"), int(count), int(seed))), sys.stdout)
