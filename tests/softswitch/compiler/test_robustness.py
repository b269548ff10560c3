"""Whatever text comes in, the compiler answers with a program or with diagnostics, never with a crash."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from ir_invariants import violations
from p4_programs import program, refused

from catchment.checkout import ROOT
from catchment.softswitch.compiler.check import check
from catchment.softswitch.compiler.diagnostics import CompileError, Diagnostics
from catchment.softswitch.compiler.lexer import Token, tokenize
from catchment.softswitch.compiler.p4info import make_p4info
from catchment.softswitch.compiler.parser import parse
from catchment.softswitch.compiler.preprocess import preprocess

MUTANTS = 60


@pytest.mark.parametrize(
    "body",
    [
        "meta.x = " + "(" * 2000 + "1" + ")" * 2000 + ";",
        "meta.x = " + " + ".join(["meta.x"] * 3000) + ";",
        "{" * 2000 + "}" * 2000,
        "if (meta.flag) {} else " * 1500 + "{}",
    ],
    ids=["parentheses", "operators", "blocks", "branches"],
)
def test_deep_nesting_is_refused(tmp_path: Path, body: str) -> None:
    (error,) = refused(tmp_path, program(body=body))
    assert "nested too deeply" in error.message


def mutate(tokens: list[Token], rng: random.Random) -> list[Token]:
    """One to three tokens taken out, doubled, replaced or swapped, in the program's own text."""
    mutant = list(tokens)
    first = next(i for i, t in enumerate(tokens) if t.loc.file.endswith("luwu.p4"))
    for _ in range(rng.randint(1, 3)):
        one, other = rng.randrange(first, len(mutant) - 1), rng.randrange(first, len(mutant) - 1)
        match rng.randrange(4):
            case 0:
                del mutant[one]
            case 1:
                mutant[one] = mutant[other]
            case 2:
                mutant.insert(one, mutant[other])
            case 3:
                mutant[one], mutant[other] = mutant[other], mutant[one]
    return mutant


@pytest.mark.sampled(4)
def test_mutated_programs(rng: random.Random) -> None:
    text = preprocess(ROOT / "p4src/luwu.p4", [ROOT / "p4src"], {"LANES": "8"})
    tokens = tokenize(text, "luwu.p4")
    outcomes = {"accepted": 0, "refused": 0}
    for _ in range(MUTANTS):
        try:
            result = check(parse(mutate(tokens, rng)), Diagnostics())
            make_p4info(result)
        except CompileError:
            outcomes["refused"] += 1
        else:
            assert violations(result) == []
            outcomes["accepted"] += 1
    assert outcomes["refused"] > MUTANTS // 2, outcomes
