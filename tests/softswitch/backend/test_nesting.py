"""Long chains of `else if`, and code that is nested too deeply for the back end or the interpreter."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from backend_programs import generated, program, switch

from catchment.softswitch.compiler.backend import generate
from catchment.softswitch.compiler.diagnostics import CompileError
from catchment.softswitch.compiler.frontend import check_text
from catchment.softswitch.compiler.p4info import make_p4info
from catchment.softswitch.compiler.preprocess import preprocess
from catchment.softswitch.interpreter import InterpretedSwitch
from catchment.softswitch.interpreter.errors import InterpreterError

BASE = {
    "declarations": "header h_t { bit<16> a; bit<16> b; }",
    "headers": "h_t h;",
    "parser": "state start { packet.extract(hdr.h); transition accept; }",
    "deparser": "packet.emit(hdr.h);",
}
NEXT = "action next() { hdr.h.b = hdr.h.b + 1; } "
TABLE = """table t {
    key = { hdr.h.a : exact; }
    actions = { next; }
    default_action = next();
    const entries = { 500 : next(); }
}"""
LONG = "header long_t { " + "".join(f"bit<32> f{n}; " for n in range(128)) + "}"


def interpreted(folder: Path, **parts: str) -> InterpretedSwitch:
    """The interpreter with the program."""
    return InterpretedSwitch(check_text(preprocess(written(folder, **parts), (), None), "code.p4").program)


def written(folder: Path, **parts: str) -> Path:
    source = folder / "code.p4"
    source.write_text(program(**parts))
    return source


def chain(links: int) -> str:
    return " else ".join(f"if (hdr.h.a == {n}) {{ hdr.h.b = {n * 3}; }}" for n in range(links))


def test_a_chain_is_one_level_of_the_code(tmp_path: Path) -> None:
    code = generated(tmp_path, ingress=chain(1500) + " else { hdr.h.b = 9; }", **BASE)
    assert code.count("} else if (") >= 1499
    depths = {len(line) - len(line.lstrip()) for line in code.splitlines() if "else if (equal(" in line}
    assert len(depths) == 1


def test_a_chain_beside_headers_that_stay_in_the_frame(tmp_path: Path) -> None:
    parts = BASE | {"declarations": BASE["declarations"] + LONG, "headers": "h_t h; long_t lanes;"}
    parts["parser"] = "state start { packet.extract(hdr.h); packet.extract(hdr.lanes); transition accept; }"
    assert "else if" in generated(tmp_path, ingress=chain(1500), **parts)


@pytest.mark.sampled(4)
def test_each_link_is_tried_where_none_before_it_held(tmp_path: Path) -> None:
    """Some conditions take statements of their own, which must not run where an earlier condition holds."""
    ingress = f"""
    sm.egress_spec = 1;
    {chain(300)}
    else if (t.apply().hit) {{ hdr.h.b = hdr.h.b + 10; }}
    else if (hdr.h.a == 400) {{ hdr.h.b = 5; }}
    else if (!t.apply().hit && hdr.h.a == 401) {{ hdr.h.b = hdr.h.b + 20; }}
    else if (hdr.h.a == 402) {{ hdr.h.b = hdr.h.b + 30; }}
    else {{ hdr.h.b = hdr.h.b + 40; }}
    """
    locals_ = NEXT + TABLE
    target = switch(tmp_path, "chain", ingress_locals=locals_, ingress=ingress, **BASE)
    model = interpreted(tmp_path, ingress_locals=locals_, ingress=ingress, **BASE)
    expected = {0: 0, 1: 3, 299: 897, 400: 5, 401: 22, 402: 32, 403: 42, 500: 11}
    for a, b in expected.items():
        frame = a.to_bytes(2, "big") + bytes(2)
        assert target.inject(0, frame) == [(1, frame[:2] + b.to_bytes(2, "big"))]
        assert model.inject(0, frame) == target.inject(0, frame)


@pytest.mark.sampled(4)
def test_a_block_after_else_is_run_as_a_whole(tmp_path: Path) -> None:
    """An `if` with something after it in the same block is no link of the chain."""
    ingress = """
    sm.egress_spec = 1;
    if (hdr.h.a == 1) { hdr.h.b = 1; }
    else { if (hdr.h.a == 2) { hdr.h.b = 2; } hdr.h.b = hdr.h.b + 10; }
    """
    target = switch(tmp_path, "whole", ingress=ingress, **BASE)
    model = interpreted(tmp_path, ingress=ingress, **BASE)
    for a, b in ((1, 1), (2, 12), (3, 10)):
        frame = a.to_bytes(2, "big") + bytes(2)
        assert target.inject(0, frame) == model.inject(0, frame) == [(1, frame[:2] + bytes([0, b]))]


SUM = " + ".join(["hdr.h.a"] * 600)
KEY = f'{NEXT}\n<!>table t {{ key = {{ {SUM} : exact @name("k"); }} actions = {{ next; }} default_action = next(); }}'
SELECT = f"<!>state start {{ packet.extract(hdr.h); transition select({SUM}) {{ 1: accept; default: accept; }} }}"
FUNCTION = f"bit<16> f(in bit<16> x) {{\n<!>return {SUM.replace('hdr.h.a', 'x')}; }}"
CODE = {
    "statement": {"ingress": f"hdr.h.b = 1;\n<!>hdr.h.b = {SUM};"},
    "in a block": {"ingress": f"if (hdr.h.b == 1) {{\n<!>hdr.h.b = {SUM}; }}"},
    "blocks": {"ingress": f"hdr.h.a = 1;\n<!>{'{' * 300} hdr.h.b = 1; {'}' * 300}\nhdr.h.a = 1;"},
    "key": {"ingress_locals": KEY, "ingress": "t.apply();"},
    "selector": {"parser": SELECT},
    "function": {"declarations": f"{BASE['declarations']}\n{FUNCTION}"},
}


@pytest.mark.parametrize("pieces", CODE.values(), ids=CODE)
def test_what_only_the_back_end_finds_too_deep_has_its_place(tmp_path: Path, pieces: dict[str, str]) -> None:
    marked = program(**(BASE | pieces))
    parts = {name: piece.replace("<!>", "") for name, piece in (BASE | pieces).items()}
    with pytest.raises(CompileError, match="nested too deeply") as refusal:
        generated(tmp_path, **parts)
    (diagnostic,) = refusal.value.diagnostics
    assert diagnostic.loc.line == marked[: marked.index("<!>")].count("\n") + 1


@pytest.mark.parametrize("where", ["ingress", "parser"])
def test_what_the_interpreter_cannot_run_has_its_place(tmp_path: Path, where: str) -> None:
    state = f"state start {{ packet.extract(hdr.h); transition select({SUM}) {{ default: accept; }} }}"
    parts = {"ingress": f"sm.egress_spec = 1;\nhdr.h.b = {SUM};"} if where == "ingress" else {"parser": state}
    source = written(tmp_path, **(BASE | parts))
    line = source.read_text()[: source.read_text().index(SUM)].count("\n") + 1
    model = interpreted(tmp_path, **(BASE | parts))
    with pytest.raises(InterpreterError, match=rf":{line}:\d+: nested too deeply"):
        model.inject(0, bytes(4))


@pytest.mark.parametrize("stage", ["P4Info", "back end"])
def test_instances_within_each_other_are_refused_where_the_stack_ends(tmp_path: Path, stage: str) -> None:
    levels = range(1, 700)
    controls = [f"control c{n}() {{ c{n - 1}() i; apply {{ i.apply(); }} }}" for n in levels]
    top = "\n".join([BASE["declarations"], "control c0() { apply { } }", *controls])
    parts = BASE | {"declarations": top, "ingress_locals": f"c{levels[-1]}() i;", "ingress": "i.apply();"}
    source = written(tmp_path, **parts)
    checked = check_text(preprocess(source, (), None), "code.p4").program
    info = make_p4info(checked)
    with pytest.raises(CompileError, match="code or instances are nested too deeply") as refusal:
        recursed(350, lambda: make_p4info(checked) if stage == "P4Info" else generate(checked, info, "code"))
    assert refusal.value.diagnostics[0].loc.line == source.read_text().count("\n")


def recursed(levels: int, call: Callable[[], object]) -> None:
    """Makes a call from deep in the stack."""
    if levels:
        recursed(levels - 1, call)
    else:
        call()
