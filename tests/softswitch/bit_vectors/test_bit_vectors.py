"""P4's arithmetic at every width, against z3: a second opinion on the front end, which both engines share.

z3 also finds the inputs: for each misreading of an operator, values for which it would give something else.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
import z3
from bit_vector_programs import Inject, Inputs, Typed, compiled, differences, interpreted, program, value_of
from bit_vector_rows import AMOUNT, Row, constant, signed_rows, unsigned_rows
from bit_vector_trees import Trees

WIDTHS = range(1, 129)
SAMPLE = 3
RANDOM_FRAMES = 2
TREES = 30


def inputs_of(width: int) -> Inputs:
    return Inputs({"a": width, "b": width, "s": AMOUNT})


def rows_of(inputs: Inputs) -> list[Row]:
    """The operators on variables."""
    a, b, s = (inputs.variable(name) for name in inputs.widths)
    signed = [inputs.variable(name, signed=True) for name in ("a", "b")]
    return unsigned_rows(a, b, s) + signed_rows(*signed, s, b)


def rows_with_constants(inputs: Inputs, values: Mapping[str, int], known: set[str]) -> list[Row]:
    """The same ones, with some operands known when the program is compiled."""

    def operand(name: str, *, signed: bool = False) -> Typed:
        if name in known:
            return constant(values[name], inputs.widths[name], signed=signed)
        return inputs.variable(name, signed=signed)

    a, b, s = (operand(name) for name in inputs.widths)
    return unsigned_rows(a, b, s) + signed_rows(operand("a", signed=True), operand("b", signed=True), s, b)


def telling_values(inputs: Inputs, rows: Sequence[Row], rng: random.Random) -> list[dict[str, int]]:
    """Inputs that tell every row from all its misreadings: random ones, and what z3 finds where those do not do."""
    found = [random_values(rng, inputs) for _ in range(RANDOM_FRAMES)]
    for row in rows:
        for wrong in row.misreadings:
            differs = z3.If(row.result.term != wrong, z3.BitVecVal(1, 1), z3.BitVecVal(0, 1))
            if not any(value_of(differs, inputs, values) for values in found):
                found += _values_for(row, wrong, inputs)
    return found


def _values_for(row: Row, wrong: z3.BitVecRef, inputs: Inputs) -> list[dict[str, int]]:
    """Inputs for which a misreading shows; at a width of 1 some are no misreadings."""
    solver = z3.Solver()
    solver.add(row.result.term != wrong)
    if solver.check() != z3.sat:
        assert inputs.widths["a"] == 1, f"nothing tells {row.result.text} from its misreading"
        return []
    variables = {name: z3.BitVec(name, width) for name, width in inputs.widths.items()}
    model = solver.model()
    return [{name: model.eval(term, model_completion=True).as_long() for name, term in variables.items()}]


def random_values(rng: random.Random, inputs: Inputs) -> dict[str, int]:
    """Any bits, and an amount that often lies within the width."""
    width = inputs.widths["a"]
    amount = rng.choice([rng.randrange(width + 2), rng.getrandbits(AMOUNT)])
    return {"a": rng.getrandbits(width), "b": rng.getrandbits(width), "s": amount}


def check_width(engine: Callable[[Path], Inject], width: int, rng: random.Random, folder: Path) -> None:
    """All operators at one width, on inputs that tell them from their misreadings, as variables and as constants."""
    inputs = inputs_of(width)
    rows = rows_of(inputs)
    frames = telling_values(inputs, rows, rng)
    for known in ({"a", "b", "s"}, {rng.choice("abs")}):
        rows += rows_with_constants(inputs, rng.choice(frames), known)
    expect(engine, inputs, [row.result for row in rows], frames, folder / f"width_{width}.p4")


def expect(
    engine: Callable[[Path], Inject],
    inputs: Inputs,
    rows: Sequence[Typed],
    frames: Sequence[Mapping[str, int]],
    source: Path,
) -> None:
    source.write_text(program(inputs, rows), "utf-8")
    inject = engine(source)
    wrong = [text for values in frames for text in differences(inject, inputs, rows, values)]
    assert not wrong, "\n".join(wrong)


def test_operators_at_some_widths_are_z3s_in_the_interpreter(rng: random.Random, tmp_path: Path) -> None:
    for width in (1, *rng.sample(WIDTHS, SAMPLE)):
        check_width(interpreted, width, rng, tmp_path)


@pytest.mark.sampled(4)
def test_operators_at_a_width_are_z3s_when_compiled(rng: random.Random, tmp_path: Path) -> None:
    check_width(compiled, rng.choice(WIDTHS), rng, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("engine", [compiled, interpreted])
def test_operators_at_every_width_are_z3s(
    engine: Callable[[Path], Inject], width: int, rng: random.Random, tmp_path: Path
) -> None:
    check_width(engine, width, rng, tmp_path)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("engine", [compiled, interpreted])
def test_nested_expressions_of_mixed_widths_are_z3s(
    engine: Callable[[Path], Inject], rng: random.Random, tmp_path: Path
) -> None:
    inputs = Inputs({name: rng.choice(WIDTHS) for name in "abcde"})
    rows = [Trees(rng, inputs).tree(rng.choice(WIDTHS), signed=rng.random() < 0.5, depth=3) for _ in range(TREES)]
    frames = [{name: rng.getrandbits(width) for name, width in inputs.widths.items()} for _ in range(RANDOM_FRAMES)]
    frames += [dict.fromkeys(inputs.widths, 0), {name: (1 << width) - 1 for name, width in inputs.widths.items()}]
    expect(engine, inputs, rows, frames, tmp_path / "trees.p4")
