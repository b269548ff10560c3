"""Wrong programs are refused, at the very place and for the very reason. `<!>` marks where the error must be."""

from __future__ import annotations

from pathlib import Path

import pytest
from p4_programs import START, place, program, refused

TABLE = "table t { key = { hdr.h.a : exact; } actions = { act; NoAction; } default_action = NoAction(); %s }"
ACT = "action act(bit<8> v) { meta.x = v; }\n"

BODIES = [
    ("undeclared", "<!>nothing = 1;", "nothing: declaration not found"),
    ("no such field", "hdr.h.<!>nope = 1;", "nope: h_t has no such field"),
    ("widths", "meta.y = <!>meta.x;", "cannot implicitly cast from bit<8> to bit<16>"),
    ("signs", "meta.x = <!>hdr.h.s;", "cannot implicitly cast from int<8> to bit<8>"),
    ("operands", "meta.x = (bit<8>)(<!>meta.y + meta.z);", "different types: bit<16> and bit<32>"),
    ("bool arithmetic", "meta.x = <!>meta.flag + 1;", "`+` is not defined on bool"),
    ("not of bits", "if (!<!>meta.x) {}", "`!` is not defined on bit<8>"),
    ("condition", "if (<!>meta.x) {}", "it must be bool"),
    ("signed division", "hdr.h.s = <!>hdr.h.s / 2;", "not defined on signed"),
    ("division by zero", "meta.x = <!>meta.x / 0;", "division by zero"),
    ("negative shift", "meta.x = meta.x << <!>-1;", "negative"),
    ("signed shift amount", "meta.x = meta.x << <!>hdr.h.s;", "must be unsigned"),
    ("slice beyond", "meta.x = <!>meta.y[16:9];", "bit 16 is beyond bit<16>"),
    ("slice upside down", "meta.x = <!>meta.y[0:7];", "first bit index"),
    ("slice of a number far beyond it", "meta.x = <!>5[70000:69993];", "too large an index"),
    ("concatenation", "meta.y = <!>meta.x ++ 5;", "both widths must be known"),
    ("assignment to a constant", "<!>8w5[3:0] = 1;", "cannot be assigned"),
    ("assignment to an in parameter", "sm.egress_spec = 1; f(<!>8w1);", "cannot be assigned"),
    ("assignment to a call", "<!>hdr.h.isValid() = true;", "cannot be assigned"),
    ("bad cast", "meta.x = (bit<8>)<!>meta.flag;", "cannot cast from bool to bit<8>"),
    ("too many arguments", "f(meta.x, <!>meta.x);", "too many arguments"),
    ("too few arguments", "<!>f();", "missing argument for parameter `x`"),
    ("out argument of another width", "f(<!>meta.y);", "`inout` argument of type bit<16>, not bit<8>"),
    ("don't care for in", "g(<!>_);", "only be given for an `out`"),
    ("action as a value", "meta.x = <!>NoAction;", "cannot be used as a value"),
    ("type as a value", "meta.x = <!>h_t;", "cannot be used as a value"),
    ("variable twice", "bit<8> v = 1; bit<8> <!>v = 2;", "v: duplicate declaration"),
    ("variable of type void", "void <!>v;", "cannot have type void"),
    ("stack bound", "hdr.stack[<!>4].a = 1;", "index 4 is out of bounds of h_t[4]"),
    ("next outside a parser", "hdr.stack.<!>next.a = 1;", "only be used in a parser"),
    ("no such method", "hdr.h.<!>explode();", "explode: h_t has no such method"),
    ("extern without method", "reg.<!>peek(meta.x);", "extern register has no such method"),
    ("register element", "reg.read(<!>meta.y, 0);", "argument of type bit<16>, not bit<32>"),
    ("verify outside a parser", "<!>verify(true, error.NoError);", "only be called in a parser"),
    ("no such error", "sm.parser_error = error.<!>Nope;", "Nope: no such error"),
    ("instance in a block", "register<bit<8>>(4) <!>r;", "cannot be declared in a block"),
    ("switch label", "switch (meta.x) { <!>256 + meta.x: {} }", "compile-time constant"),
    ("switch label twice", "switch (meta.x) { 1: {} <!>1: {} }", "duplicate switch label"),
    ("switch default first", "switch (meta.x) { <!>default: {} 1: {} }", "default must be the last"),
    ("break outside", "<!>break;", "only be used in a loop"),
    ("return of a value", "<!>return 1;", "which returns none"),
    ("struct initialiser", "h_t v = <!>{1, 2};", "2 values for 5 members"),
    ("struct initialiser field", "h_t v = {a = 1, b = 2, c = 3, s = 4, q = <!>5};", "q: h_t has no such field"),
]


@pytest.mark.parametrize(("body", "message"), [b[1:] for b in BODIES], ids=[b[0] for b in BODIES])
def test_statement(tmp_path: Path, body: str, message: str) -> None:
    top = "bit<8> f(inout bit<8> x) { x = x + 1; return x; }\nvoid g(in bit<8> x) {}"
    check_refused(tmp_path, program(top=top, locals_="register<bit<32>>(16) reg;", body=body), message)


LOCALS = [
    ("no such action", "table t { actions = { <!>nope; } }", "nope: declaration not found"),
    ("no actions", "table <!>t { key = { hdr.h.a : exact; } }", "does not have an `actions` property"),
    ("no such match kind", "table t { key = { hdr.h.a : <!>fuzzy; } actions = { NoAction; } }", "no such match kind"),
    ("complex key", "table t { key = { <!>hdr.h.a + 1 : exact; } actions = { NoAction; } }", "needs a name"),
    ("key of a struct", "table t { key = { <!>meta : exact; } actions = { NoAction; } }", "cannot be of type meta_t"),
    (
        "default not listed",
        "table t { actions = { NoAction; } default_action = <!>act(1); }",
        "not in the table's list",
    ),
    ("default arguments", "table t { actions = { act; } default_action = <!>act(); }", "missing argument"),
    (
        "default not constant",
        "table t { actions = { act; } default_action = act(<!>meta.x); }",
        "compile-time constant",
    ),
    ("bound data", "table t { actions = { act(<!>meta.x); } }", "only parameters with a direction"),
    ("entry keys", TABLE % "const entries = { <!>(1, 2) : NoAction(); }", "2 values for 1 keys"),
    ("entry kind", TABLE % "const entries = { <!>1 &&& 1 : NoAction(); }", "cannot be matched by a key of kind exact"),
    ("entry data", TABLE % "const entries = { 1 : act(<!>meta.x); }", "compile-time constant"),
    ("property twice", TABLE % "size = 4; <!>size = 8;", "duplicate table property"),
    ("two lpm", "table <!>t { key = { hdr.h.a : lpm; hdr.h.b : lpm; } actions = { NoAction; } }", "only one lpm"),
    ("data first", "action a(bit<8> <!>x, in bit<8> y) {}", "must come last"),
    (
        "apply in an action",
        TABLE.replace(" %s", "") + " action b() { <!>t.apply(); }",
        "cannot be applied in an action",
    ),
    ("extern arguments", "register<bit<8>>() <!>r;", "missing argument for parameter `size`"),
    ("extern type arguments", "<!>register(4) r;", "takes 1 type arguments, 0 are given"),
    ("size not constant", "register<bit<8>>(<!>sm.packet_length) r;", "compile-time constant"),
    ("parser in a control", "P() <!>p;", "cannot be instantiated in a control"),
    ("itself", "I() <!>again;", "cannot instantiate itself"),
    ("value set in a control", "bit<8> <!>act = 0;", "act: duplicate declaration"),
]


@pytest.mark.parametrize(("local", "message"), [x[1:] for x in LOCALS], ids=[x[0] for x in LOCALS])
def test_local(tmp_path: Path, local: str, message: str) -> None:
    check_refused(tmp_path, program(locals_=ACT + local), message)


TOPS = [
    ("use before declaration", "const bit<8> k = <!>later; const bit<8> later = 1;", "later: declaration not found"),
    ("type before declaration", "struct s { <!>later x; } struct later { bit<8> y; }", "later: declaration not found"),
    ("constant twice", "const bit<8> k = 1; const bit<8> <!>k = 2;", "k: duplicate declaration"),
    ("field twice", "struct s { bit<8> x; bit<8> <!>x; }", "x: duplicate field"),
    ("field of a header", "header h { error <!>e; }", "a header cannot have a field of type error"),
    ("array of strings", "struct s { string<!>[4] x; }", "elements cannot be of this type"),
    ("union of bits", "header_union u { bit<8> <!>x; }", "a header union cannot have a field of type bit<8>"),
    ("width", "struct s { bit<<!>-1> x; }", "invalid width"),
    ("enum value", "enum bit<8> e { A = 1, <!>B }", "needs a value"),
    ("enum value out of bounds", "enum bit<8> e { A = <!>300 }", "out of bounds of bit<8>"),
    ("negative enum value", "enum bit<8> e { A = <!>-1 }", "out of bounds of bit<8>"),
    ("enum without type", "enum e { <!>A = 1 }", "underlying type"),
    ("recursion", "bit<8> f(in bit<8> x) { return <!>f(x); }", "recursive"),
    ("no return", "bit<8> f(in bit<8> x) <!>{ if (x == 1) { return 2; } }", "on all paths"),
    ("variable at top level", "bit<8> v <!>= 1;", "syntax error"),
    ("not constant", "const bit<8> k = <!>f(1); ", "f: declaration not found"),
    ("static_assert", 'const bool k = <!>static_assert(1 == 2, "one is not two");', "one is not two"),
    ("error twice", "error { A, <!>A }", "A: duplicate declaration"),
    ("parameter twice", "bit<8> f(in bit<8> x, in bit<8> <!>x) { return x; }", "x: duplicate"),
    ("constructor parameter", "control c()(in bit<8> <!>x) { apply {} } control d() { c(1) i; apply {} }", "direction"),
    (
        "constructor argument",
        "control c()(bit<8> x) { apply {} } control d() { c() <!>i; apply {} }",
        "missing argument",
    ),
]


@pytest.mark.parametrize(("top", "message"), [x[1:] for x in TOPS], ids=[x[0] for x in TOPS])
def test_top_level(tmp_path: Path, top: str, message: str) -> None:
    check_refused(tmp_path, program(top=top), message)


PARSERS = [
    ("no start", "state <!>begin { transition accept; }", "has no `start` state"),
    ("no such state", "state start { transition <!>nowhere; }", "nowhere: no such state"),
    ("no such state in select", "state start { transition select(meta.x) { 1: <!>nowhere; } }", "no such state"),
    ("state twice", START + " state <!>start { transition accept; }", "duplicate declaration"),
    ("declared accept", START + " state <!>accept { }", "is implied"),
    ("arity of a label", "state start { transition select(meta.x, meta.y) { <!>1: accept; } }", "1 values for 2"),
    ("type of a label", "state start { transition select(meta.x) { <!>16w1: accept; } }", "from bit<16> to bit<8>"),
    ("select on a header", "state start { transition select(<!>hdr.h) { default: accept; } }", "type h_t"),
    ("extract of bits", "state start { <!>packet.extract(meta.x); transition accept; }", "must be a header"),
    ("action in a parser", "state start { <!>NoAction(); transition accept; }", "cannot be called in a parser"),
    ("exit in a parser", "state start { <!>exit; transition accept; }", "exit cannot be used in a parser"),
]


@pytest.mark.parametrize(("parser", "message"), [x[1:] for x in PARSERS], ids=[x[0] for x in PARSERS])
def test_parser(tmp_path: Path, parser: str, message: str) -> None:
    if "<!>begin" in parser or "<!>packet.extract" in parser:
        source, _, _ = place(program(parser=parser))
        assert any(message in d.message for d in refused(tmp_path, source))
        return
    check_refused(tmp_path, program(parser=parser), message)


def test_architecture_mismatch(tmp_path: Path) -> None:
    source = program().replace("V1Switch(P(), V(), I(),", "V1Switch(P(), V(), <!>V(),")
    check_refused(tmp_path, source, "V: takes 2 parameters, `ig` needs 3")


def test_no_main(tmp_path: Path) -> None:
    source = program().replace("V1Switch(P(), V(), I(), E(), C(), D()) main;", "")
    assert "no `main`" in refused(tmp_path, source)[0].message


def test_every_error_is_reported_not_only_the_first(tmp_path: Path) -> None:
    errors = refused(tmp_path, program(body="first = 1;\nmeta.x = meta.y;\nmeta.x = 1;\nthird = 3;"))
    assert [e.message.split(":")[0] for e in errors] == [
        "first",
        "cannot implicitly cast from bit<16> to bit<8>",
        "third",
    ]


def test_errors_in_included_files_name_that_file(tmp_path: Path) -> None:
    (tmp_path / "part.p4").write_text("\n\nconst bit<8> wrong = missing;\n")
    errors = refused(tmp_path, program(top='#include "part.p4"'))
    assert (Path(errors[0].loc.file).name, errors[0].loc.line, errors[0].loc.col) == ("part.p4", 3, 22)


def test_runs_of_spaces_do_not_move_columns(tmp_path: Path) -> None:
    check_refused(tmp_path, program(body="meta.x   =    1;\t meta.y  =     <!>meta.x;"), "from bit<8> to bit<16>")


def check_refused(tmp_path: Path, marked: str, message: str) -> None:
    source, line, col = place(marked)
    errors = refused(tmp_path, source)
    found = [(e.loc.line, e.loc.col, e.message) for e in errors]
    assert any(f[:2] == (line, col) and message in f[2] for f in found), (line, col, found)
