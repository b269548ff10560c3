"""Refusals say what to write instead, and none of them is a consequence of another."""

from __future__ import annotations

from pathlib import Path

import pytest
from p4_programs import START, check, place, program, refused

from catchment.softswitch.compiler.backend import generate
from catchment.softswitch.compiler.diagnostics import CompileError
from catchment.softswitch.compiler.p4info import make_p4info

CASTS = "type bit<8> A; type bit<16> W; "


@pytest.mark.parametrize(
    ("top", "hint"),
    [
        (CASTS + "A f(in bit<16> x) { return (A)<!>x; }", "A is cast to and from bit<8>"),
        (CASTS + "bit<16> f(in A x) { return (bit<16>)<!>x; }", "A is cast to and from bit<8>"),
        (CASTS + "bit<8> f(in W x) { return (bit<8>)<!>x; }", "W is cast to and from bit<16>"),
        ("type bool T; bit<1> f(in T x) { return (bit<1>)<!>x; }", "T is cast to and from bool"),
        ("type bool T; T f(in bit<1> x) { return (T)<!>x; }", "T is cast to and from bool"),
        ("type int<8> S; S f(in bit<8> x) { return (S)<!>x; }", "S is cast to and from int<8>"),
    ],
)
def test_a_type_is_cast_only_to_and_from_the_one_it_was_made_of(tmp_path: Path, top: str, hint: str) -> None:
    source, line, col = place(program(top=top))
    (error,) = refused(tmp_path, source)
    assert (error.loc.line, error.loc.col) == (line, col)
    assert "cannot cast from" in error.message and error.hint.startswith(hint)


def test_casts_by_way_of_that_one_and_of_numbers_are_taken(tmp_path: Path) -> None:
    top = CASTS + "bit<16> f(in A x) { return (bit<16>)(bit<8>)x; } A g(in bit<16> x) { return (A)(bit<8>)x; }"
    check(tmp_path, program(top=top + " const A k = (A)5; const W w = (W)300; W h() { return (W)16w1; }"))


@pytest.mark.parametrize(
    ("top", "body", "name"),
    [
        ("extern bit<32> random(bit<5> most);", "meta.z = <!>random(24);", "random"),
        ("extern void random<T>(in T lo, in T hi);", "<!>random(8w1, 8w2);", "random"),
        ("extern void hash<T>(out bit<16> r, in bit<8> k, in T x, in T y, in T z);", "", "hash"),
        ("extern void truncate(in bit<32> a, in bit<32> b);", "<!>truncate(1, 2);", "truncate"),
        ("extern void mark_to_drop(in bit<9> port);", "<!>mark_to_drop(9w1);", "mark_to_drop"),
        ("extern void log_msg(string m, in bit<8> a, in bit<8> b);", '<!>log_msg("", 1, 2);', "log_msg"),
    ],
)
def test_an_extern_of_v1model_s_name_has_v1model_s_parameters(tmp_path: Path, top: str, body: str, name: str) -> None:
    body = body or "<!>hash(meta.y, 8w1, 8w2, 8w3, 8w4);"
    # In the program's own architecture, which declares no other function of that name.
    include = (Path(__file__).parents[3] / "softswitch/compiler/p4include/v1model.p4").read_text()
    include = include.replace(f" {name}(", f" other_{name}(").replace(f" {name}<", f" other_{name}<")
    (tmp_path / "v1model.p4").write_text(include)
    source, line, col = place(program(top=top, body=body).replace("<v1model.p4>", '"v1model.p4"'))
    (error,) = refused(tmp_path, source)
    assert (error.loc.line, error.loc.col) == (line, col)
    assert error.message.startswith(f"{name}: the program declares it with other parameters than v1model")
    assert "call yours something else" in error.hint


@pytest.mark.parametrize(
    ("locals_", "body", "hint"),
    [
        ("", "clone3(CloneType.I2E, 1, meta.x);", "clone_preserving_field_list(type, session, n)"),
        ("", "resubmit(meta.x);", "resubmit_preserving_field_list(n)"),
        ("", "recirculate(meta.x);", "recirculate_preserving_field_list(n)"),
        ("", "mark_to_drop();", "mark_to_drop(standard_metadata)"),
        ("Checksum16() c;", "meta.y = c.get({ meta.x });", "verify_checksum or update_checksum"),
    ],
)
def test_what_is_written_instead(tmp_path: Path, locals_: str, body: str, hint: str) -> None:
    checked = check(tmp_path, program(locals_=locals_, body=body))
    with pytest.raises(CompileError) as refusal:
        generate(checked.program, make_p4info(checked.program), "refused")
    (error,) = refusal.value.diagnostics
    assert "not supported by the embedded target" in error.message and hint in error.hint


@pytest.mark.parametrize(
    ("top", "body", "message", "hint"),
    [
        ("struct none_t { }", "none_t v; v.<!>x = 1;", "none_t has no such field", "it has no fields"),
        ("", "meta.x = <!>reg;", "reg: an instance cannot be used as a value", ""),
        ("", "meta.x = <!>act;", "act: an action cannot be used as a value", ""),
        ("", "meta.x = <!>tab;", "tab: a table cannot be used as a value", ""),
    ],
)
def test_wording(tmp_path: Path, top: str, body: str, message: str, hint: str) -> None:
    locals_ = "register<bit<8>>(4) reg; action act() {} table tab { actions = { act; } }"
    source, line, col = place(program(top=top, locals_=locals_, body=body))
    (error,) = refused(tmp_path, source)
    assert (error.loc.line, error.loc.col) == (line, col)
    assert message in error.message and error.hint == hint


def test_a_return_that_is_refused_is_a_return(tmp_path: Path) -> None:
    (error,) = refused(tmp_path, program(top="bit<8> f(in bit<16> x) { return nothing; }"))
    assert error.message == "nothing: declaration not found"
    (error,) = refused(tmp_path, program(top="bit<8> f(in bit<16> x) { }"))
    assert "does not return a value" in error.message


def test_a_table_without_keys_has_an_empty_list_of_entries(tmp_path: Path) -> None:
    for const in ("", "const "):
        check(tmp_path, program(locals_=f"table t {{ actions = {{ NoAction; }} {const}entries = {{ }} }}"))
    table = "table t { actions = { NoAction; } const entries = { <!>_ : NoAction(); } }"
    source, line, _ = place(program(locals_=table))
    (error,) = refused(tmp_path, source)
    assert error.loc.line == line
    assert "entries of a table without keys" in error.message and "default_action" in error.hint


def test_arguments_of_an_extern_are_called_for_in_the_order_of_its_parameters(tmp_path: Path) -> None:
    top = "bit<16> next(inout bit<16> x) { x = x + 1; return x; }"
    call = "hash(base = next(meta.y), max = 16w9, data = { meta.x }, algo = HashAlgorithm.crc16, result = meta.y);"
    (error,) = refused(tmp_path, program(top=top, body=call))
    assert "not in the order of the parameters" in error.message and "keep the value" in error.hint
    check(tmp_path, program(top=top, body=call.replace("next(meta.y)", "16w1")))


@pytest.mark.parametrize(
    ("label", "taken"),
    [
        ("(1, _, 4)", True),
        ("(1, default, 4)", True),
        ("(1, {2, 3}, 4)", True),
        ("(1, 2, 3, 4)", True),
        ("(1, {2, 3, 4}, 5)", False),
        ("(1, _)", False),
    ],
)
def test_a_nested_selector_fits_what_it_holds(tmp_path: Path, label: str, taken: bool) -> None:
    select = f"transition select(hdr.h.a, {{ hdr.h.b, hdr.h.c }}, hdr.h.w) {{ {label}: accept; default: reject; }}"
    source = program(parser=START.replace("transition accept;", select))
    if taken:
        check(tmp_path, source)
    else:
        (error,) = refused(tmp_path, source)
        assert "values for 4 selectors" in error.message


@pytest.mark.parametrize(
    ("top", "locals_", "body"),
    [
        ("control S(inout bit<8> a, @optional in bit<8> b) { apply { a = b; } }", "S() s;", "<!>s.apply(meta.x);"),
        ("control S(inout bit<8> a, @optional inout bit<8> b) { apply { } }", "S() s;", "<!>s.apply(a = meta.x);"),
        ("void f(@optional in bit<8> b) { }", "", "<!>f();"),
        ("", "action act(@optional in bit<8> b) { }", "<!>act();"),
        ("", "action act(@optional bit<8> b) { } table t { actions = { act; } default_action = <!>act(); }", ""),
    ],
)
def test_what_has_a_body_is_given_what_it_reads(tmp_path: Path, top: str, locals_: str, body: str) -> None:
    source, line, col = place(program(top=top, locals_=locals_, body=body))
    (error,) = refused(tmp_path, source)
    assert (error.loc.line, error.loc.col) == (line, col)
    assert error.message == "b: the argument is left out, and what is called reads it"
    assert error.hint.startswith("give one, or the parameter a default: `@optional` is for what the target implements")


def test_what_is_only_written_may_be_left_out(tmp_path: Path) -> None:
    top = "control Sub(@optional out bit<8> b) { apply { b = 1; } } extern void f(@optional in bit<8> a);"
    check(tmp_path, program(top=top, locals_="Sub() sub;", body="sub.apply(); f();"))
