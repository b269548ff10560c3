"""Whatever text comes in, the compiler answers with a program or with diagnostics, never with a crash."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from ir_invariants import violations
from p4_programs import check as check_file_of
from p4_programs import place, program, refused

from catchment.checkout import ROOT
from catchment.softswitch.compiler import ir, loop_rounds
from catchment.softswitch.compiler.backend import generate
from catchment.softswitch.compiler.check import check, instances
from catchment.softswitch.compiler.diagnostics import CompileError, Diagnostics
from catchment.softswitch.compiler.lexer import Token, tokenize
from catchment.softswitch.compiler.p4info import make_p4info
from catchment.softswitch.compiler.parser import parse
from catchment.softswitch.compiler.preprocess import preprocess

MUTANTS = 60


DEEP = "(" * 2000 + "1" + ")" * 2000
NESTED = {
    "parentheses": {"body": f"meta.y = 1;\n<!>meta.x = {DEEP};"},
    "operators": {"body": "meta.y = 1;\n<!>meta.x = " + " + ".join(["meta.x"] * 3000) + ";"},
    "in a branch": {"body": f"if (meta.flag) {{\n<!>meta.x = {DEEP}; }}"},
    "constant": {"top": f"<!>const bit<8> k = {DEEP};"},
    "field": {"top": "<!>struct s { " + "tuple<" * 2000 + "bit<8>" + ">" * 2000 + " x; }"},
    "constant of a control": {"locals_": f"<!>const bit<8> k = {DEEP};"},
    "key": {"locals_": f"<!>table t {{ key = {{ {DEEP} : exact; }} actions = {{ NoAction; }} }}"},
    "selector": {"parser": f"<!>state start {{ transition select({DEEP}) {{ default: accept; }} }}"},
    "minus signs": {"locals_": "<!>const bit<8> k = " + "-" * 2000 + "8w1;"},
}


@pytest.mark.parametrize("pieces", NESTED.values(), ids=NESTED)
def test_deep_nesting_is_refused_at_its_line(tmp_path: Path, pieces: dict[str, str]) -> None:
    source, line, _ = place(program(**pieces))
    (error,) = refused(tmp_path, source)
    assert "nested too deeply" in error.message
    assert error.loc.line == line


@pytest.mark.parametrize(("begin", "end"), [("{", "}"), ("if (meta.flag) {", "}"), ("for (;meta.flag;) {", "}")])
def test_statements_within_each_other_are_refused_where_they_are_too_deep(tmp_path: Path, begin: str, end: str) -> None:
    levels = 2000
    source, line, _ = place(program(body="<!>" + f"{begin}\n" * levels + end * levels))
    (error,) = refused(tmp_path, source)
    assert "nested too deeply" in error.message
    assert line + 50 < error.loc.line < line + levels


@pytest.mark.parametrize(
    "head", ["for (bit<8> i{n} in 8w1 .. 8w2)", "for (bit<32> i{n} = 0; i{n} < 60000; i{n} = i{n} + 1)"]
)
def test_each_loop_within_others_is_looked_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, head: str) -> None:
    """Else the work grows with a power of the levels: minutes for a hundred."""
    levels = 20
    nest = "".join(head.format(n=n) + " {" for n in range(levels)) + "meta.x = 1;" + "}" * levels
    checked = check_file_of(tmp_path, program(body=nest))
    rounds, seen = loop_rounds._rounds, []

    def counting(loop: loop_rounds.Loop) -> int | None:
        seen.append(loop.loc)
        return rounds(loop)

    monkeypatch.setattr(loop_rounds, "_rounds", counting)
    generate(checked.program, make_p4info(checked.program), "nest")
    assert len(seen) == len(set(seen)) == levels


def test_errors_before_what_is_too_deep_are_told_too(tmp_path: Path) -> None:
    deep = "meta.x = " + " + ".join(["meta.x"] * 3000) + ";"
    errors = refused(tmp_path, program(body=f"first = 1;\n{deep}\nlast = 1;"))
    assert [e.message.split(":")[0] for e in errors] == ["first", "an expression or statement is nested too deeply"]


def test_instances_within_each_other_are_refused(tmp_path: Path) -> None:
    levels = range(1, 1500)
    controls = [f"control c{n}() {{ c{n - 1}() i; apply {{ i.apply(); }} }}" for n in levels]
    source = program(top="\n".join(["control c0() { apply { } }", *controls]), locals_=f"c{levels[-1]}() i;")
    (error,) = refused(tmp_path, source)
    assert "instances are nested too deeply" in error.message
    assert error.loc.line == source[: source.index(" main;")].count("\n") + 1


def doubled(levels: int, takes: str = "", first: str = "", second: str = "") -> str:
    """A program of controls of which each has two instances of the one before; levels of 2^n - 1 of them in all."""
    controls = [f"control c1()({takes}) {{ apply {{ }} }}"]
    for n in range(2, levels + 1):
        inside = f"c{n - 1}({first}) a; c{n - 1}({second}) b; apply {{ a.apply(); b.apply(); }}"
        controls.append(f"control c{n}()({takes}) {{ {inside} }}")
    return program(top="\n".join(controls), locals_=f"c{levels}({'1' if takes else ''}) i;")


def test_instances_that_double_with_each_level_are_refused_before_they_are_made(tmp_path: Path) -> None:
    source = doubled(18)
    errors = refused(tmp_path, source)
    assert {e.loc.line for e in errors} == {source[: source.index("control c18()")].count("\n") + 1}
    assert [source.splitlines()[e.loc.line - 1][e.loc.col - 1] for e in errors] == ["a", "b"]
    assert "c17: an instance of it is 131071 instances with those in it; 65536 is the most" in errors[0].message


def test_the_most_instances_that_are_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instances, "MOST_INSTANCES", 32)  # ingress is one of them
    check_file_of(tmp_path, doubled(5))
    with_register = doubled(5).replace("{ apply", "{ register<bit<8>>(1) r; apply", 1)
    [error] = refused(tmp_path, with_register)
    assert "c5: an instance of it is 47 instances" in error.message
    assert "c5() i;" in with_register.splitlines()[error.loc.line - 1]


def test_arguments_that_double_with_each_level_are_refused_before_all_are_tried(tmp_path: Path) -> None:
    source = doubled(14, takes="bit<32> n", first="n * 2", second="n * 2 + 1")
    [error] = refused(tmp_path, source)
    assert "one more than the 4096 controls and parsers that a program may have" in error.message
    assert "control c" in source.splitlines()[error.loc.line - 1]


def test_a_chain_of_else_if_may_be_as_long_as_it_likes(tmp_path: Path) -> None:
    links = [f"if (meta.y == {n}) {{ meta.x = {n % 256}; }}" for n in range(3000)]
    first, *others = ingress(tmp_path, " else ".join([*links, "{ meta.x = 7; }"])).body
    assert not others and isinstance(first, ir.If)
    chain, orelse = ir.branches(first)
    assert [link.loc.col for link in chain[:2]] == [1, 1 + len(links[0]) + len(" else ")]
    assert len(chain) == len(links) and isinstance(orelse.body[0], ir.Assign)
    values = [node.value for node in ir.walk(first) if isinstance(node, ir.Literal)]
    assert values[:4] == [0, 0, 1, 1] and values[-1] == 7


@pytest.mark.parametrize(
    ("body", "ones", "twos"),
    [
        ("if (meta.flag) meta.x = 1; else if (true) meta.x = 2; else meta.x = 3;", 1, 1),
        (
            "if (meta.flag) meta.x = 3; else if (false) meta.x = 3; else if (meta.y == 7) meta.x = 1; else meta.x = 2;",
            1,
            1,
        ),
        ("if (false) meta.x = 3; else if (meta.flag) meta.x = 1;", 1, 0),
        ("if (true) meta.x = 2; else if (meta.flag) meta.x = 3;", 0, 1),
    ],
)
def test_conditions_of_a_chain_that_are_known_are_decided(tmp_path: Path, body: str, ones: int, twos: int) -> None:
    values = [node.value for node in ir.walk(ingress(tmp_path, body)) if isinstance(node, ir.Literal)]
    assert (values.count(1), values.count(2)) == (ones, twos)
    assert not {True, False} & {v for v in values if isinstance(v, bool)}


@pytest.mark.parametrize("condition", ["meta.flag", "nothing"])
def test_an_error_far_down_a_chain_is_at_its_place(tmp_path: Path, condition: str) -> None:
    first = "if (meta.flag) { } else if (meta.flag) { <!>first = 1; }"
    source, line, _ = place(program(body=f"{first}\nelse if ({condition}) {{ }} else {{ }}\nlast = 1;"))
    errors = {e.message.split(":")[0]: e.loc.line for e in refused(tmp_path, source)}
    expected = {"first": line, "last": line + 2} | ({"nothing": line + 1} if condition == "nothing" else {})
    assert errors == expected


def test_a_function_returns_where_every_branch_of_a_chain_does(tmp_path: Path) -> None:
    chain = " else ".join(f"if (x == {n}) {{ return {n}; }}" for n in range(256))
    check_file_of(tmp_path, program(top=f"bit<8> f(in bit<8> x) {{ {chain} else {{ return 0; }} }}"))
    (error,) = refused(tmp_path, program(top=f"bit<8> f(in bit<8> x) {{ {chain} }}"))
    assert "on all paths" in error.message


def ingress(tmp_path: Path, body: str) -> ir.Block:
    """The checked body of the ingress control."""
    unit = check_file_of(tmp_path, program(body=body)).program.pipeline["ig"].unit
    assert isinstance(unit, ir.ControlUnit)
    return unit.body


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


@pytest.mark.parametrize("text", ["", "\n\n", "// nothing\n"])
def test_a_program_of_nothing_is_refused_by_its_name(tmp_path: Path, text: str) -> None:
    (error,) = refused(tmp_path, text)
    assert (error.loc.file, "has no `main`" in error.message) == (str(tmp_path / "program.p4"), True)
    assert error.loc.line >= 1
