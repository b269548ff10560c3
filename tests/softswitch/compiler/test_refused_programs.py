"""Wrong programs that would otherwise pass, or end in a traceback: refused, each at its place."""

from __future__ import annotations

from pathlib import Path

import pytest
from p4_programs import START, check, place, program, refused

from catchment.softswitch.compiler.backend import generate
from catchment.softswitch.compiler.diagnostics import CompileError
from catchment.softswitch.compiler.p4info import make_p4info

TABLE = "table t { key = { hdr.h.a : exact; } actions = { NoAction; } default_action = NoAction(); %s }"
CONTROL = "control c<T>(inout T v)(bit<32> n) { %s apply { } } "

TYPES = [
    ("cast between types", "type bit<8> A; type bit<8> B; B f(in A a) { return (B)<!>a; }", "cannot cast from A to B"),
    ("0s0", "const bit<8> k = (bit<8>)<!>0s0;", "a width of 1 or more"),
    ("type parameter and parameter", "T f<T>(in T <!>T) { return T; }", "a type parameter has this name"),
    ("of an extern function", "extern void f<T>(in T <!>T);", "a type parameter has this name"),
    ("of a method", "extern E { E(); void f<T>(in T <!>T); }", "a type parameter has this name"),
    ("of a control type", "control c<T>(inout bit<8> <!>T);", "a type parameter has this name"),
    ("of a package", "package p<T>(bit<8> <!>T);", "a type parameter has this name"),
    ("struct of itself", "struct s { <!>s x; }", "names itself"),
    ("header of itself", "header s { <!>s x; }", "names itself"),
    ("stack of itself", "struct s { <!>s[3] x; }", "names itself"),
    ("tuple of itself", "struct s { tuple<<!>s> x; }", "names itself"),
    ("generic of itself", "struct s<T> { <!>s<T> x; }", "names itself"),
    ("generic of itself, nested", "struct s<T> { <!>s<s<T>> x; }", "names itself"),
    ("union of itself", "header_union u { <!>u x; }", "names itself"),
    ("stack size of a parameter", "void f(in bit<8> n) { h_t[<!>n] st; }", "compile-time constant"),
    ("stack size of a constructor parameter", CONTROL % "h_t[<!>n] st;", "compile-time constant"),
    ("huge stack", "struct s { h_t[<!>65537] x; }", "65537 elements; an array has 65536 at most"),
    ("endless stack", "struct s { h_t[<!>1 << 100] x; }", "an array has 65536 at most"),
    ("stack size that is no number", "struct s { h_t[<!>true] x; }", "must be an integer"),
    ("translation to bool", '<!>@p4runtime_translation("u", bool) type bit<8> A;', "must hold a URI"),
    ("translation to int", '<!>@p4runtime_translation("u", int<32>) type bit<8> A;', "must hold a URI"),
    ("translation to nothing", '<!>@p4runtime_translation("u") type bit<8> A;', "must hold a URI"),
    ("translation to two", '<!>@p4runtime_translation("u", 8, 9) type bit<8> A;', "must hold a URI"),
    ("translation without URI", "<!>@p4runtime_translation(8, 8) type bit<8> A;", "must hold a URI"),
    ("controller header", "<!>@controller_header header x { bit<8> y; }", "must hold one string"),
    ("match annotation", "struct s { <!>@match(fuzzy) bit<8> x; }", "must hold one of exact"),
    ("value set annotation", '<!>@id("one") action a() {}', "must hold one number"),
    ("negative id", "<!>@id(-1) action a() {}", "must hold one number"),
    ("deprecated", "<!>@deprecated(3) struct q { bit<8> x; }", "must hold one string"),
    ("huge register", "register<bit<8>>(<!>32w0xFFFFFFFF) r;", "a register has 2147483647 at most"),
    ("cut register", "register<bit<8>>(<!>0x100000000) r;", "the size of register is a bit<32>: 0 to 4294967295"),
    ("negative register", "register<bit<8>>(size = <!>-1) r;", "-1: the size of register"),
    ("cut counter", "counter(<!>1 << 32, CounterType.packets) c;", "4294967296: the size of counter"),
    (
        "default that is called for",
        "bit<8> g() { return 3; } bit<8> f(in bit<8> x = <!>g()) { return x; } bit<8> h() { return f(); }",
        "the default of a parameter must be a compile-time constant",
    ),
    ("cut profile", "action_profile(<!>0x1_0000_0001) p;", "4294967297: the size of action_profile"),
]


def check_refused(tmp_path: Path, marked: str, message: str) -> None:
    source, line, col = place(marked)
    errors = refused(tmp_path, source)
    found = [(e.loc.line, e.loc.col, e.message) for e in errors]
    assert any(f[:2] == (line, col) and message in f[2] for f in found), (line, col, found)


@pytest.mark.parametrize(("top", "message"), [t[1:] for t in TYPES], ids=[t[0] for t in TYPES])
def test_top_level(tmp_path: Path, top: str, message: str) -> None:
    check_refused(tmp_path, program(top=top), message)


LOCALS = [
    ("key names the table", "table t { key = { <!>t : exact; } actions = { NoAction; } }", "names itself"),
    (
        "key applies the table",
        "table t { key = { <!>t.apply().hit : exact; } actions = { NoAction; } }",
        "names itself",
    ),
    ("hidden", f"<!>@hidden(1) {TABLE % ''}", "takes no arguments"),
    ("defaultonly", TABLE.replace("{ NoAction", "{ <!>@defaultonly(1) NoAction") % "", "takes no arguments"),
    ("size of a table", TABLE % "size = <!>99999999999;", "is 0 to 2147483647"),
    ("negative size", TABLE % "size = <!>-1;", "is 0 to 2147483647"),
    ("steps of priorities without entries", TABLE % "priority_delta = <!>0;", "priority_delta must be 1 or more"),
    (
        "steps of priorities down",
        "table t { key = { hdr.h.a : ternary; } actions = { NoAction; } priority_delta = <!>-2;"
        " entries = { 1 : NoAction(); 2 : NoAction(); } }",
        "priority_delta must be 1 or more",
    ),
]


@pytest.mark.parametrize(("local", "message"), [x[1:] for x in LOCALS], ids=[x[0] for x in LOCALS])
def test_local(tmp_path: Path, local: str, message: str) -> None:
    outer = "const bit<8> t = 1;"  # a name outside, which the table's own hides
    check_refused(tmp_path, program(top=outer, locals_=local), message)


def test_a_value_set_has_a_size_that_p4info_can_hold(tmp_path: Path) -> None:
    source = program(parser="value_set<bit<8>>(<!>4294967296) vs;\n" + START)
    check_refused(tmp_path, source, "is 0 to 2147483647")


@pytest.mark.parametrize(
    ("annotation", "message"),
    [
        ('multicast_group_table_size = "many"', "must be a number"),
        ("multicast_group_table_size = 4294967296", "must be a number"),
        ("colour = 3", "there is no property colour"),
    ],
)
def test_platform_properties(tmp_path: Path, annotation: str, message: str) -> None:
    marked = program().replace("V1Switch(", f"<!>@platform_property({annotation})\nV1Switch(")
    check_refused(tmp_path, marked, message)


def test_translations_that_a_controller_may_be_given(tmp_path: Path) -> None:
    for wanted in ("32", "bit<32>", "string", "0x20"):
        check(tmp_path, program(top=f'@p4runtime_translation("u", {wanted}) type bit<8> A;'))


def test_casts_through_the_type_below(tmp_path: Path) -> None:
    top = "type bit<8> A; type bit<8> B; type A AA; const B k = (B)(bit<8>)(A)8w1; const A l = (A)(AA)(A)8w1;"
    check(tmp_path, program(top=top))


@pytest.mark.parametrize("version", [7, 20200407, 20300101])
def test_there_are_two_versions_of_v1model(tmp_path: Path, version: int) -> None:
    [error] = refused(tmp_path, f"#define V1MODEL_VERSION {version}\n" + program())
    assert "20180101 and 20200408" in error.message
    assert Path(error.loc.file).name == "v1model.p4"
    check(tmp_path, "#define V1MODEL_VERSION 20180101\n" + program())


@pytest.mark.parametrize(
    ("file", "architecture"), [("psa.p4", "PSA"), ("bmv2/psa.p4", "PSA"), ("pna.p4", "PNA"), ("ebpf_model.p4", "eBPF")]
)
def test_other_architectures_are_named(tmp_path: Path, file: str, architecture: str) -> None:
    [error] = refused(tmp_path, f"#include <core.p4>\n#include <{file}>\n")
    assert error.loc.line == 2
    assert f"is {architecture}'s" in error.hint and "v1model" in error.hint


def test_a_missing_file_says_where_files_are_searched(tmp_path: Path) -> None:
    [error] = refused(tmp_path, '#include "part.p4"\n')
    assert "-I" in error.hint


OWN = """\
#include <core.p4>
struct standard_metadata_t {{ bit<9> ingress_port; bit<9> egress_spec; bit<9> egress_port; bit<32> instance_type;
    bit<32> packet_length; bit<32> enq_timestamp; bit<48> ingress_global_timestamp; bit<48> egress_global_timestamp;
    bit<16> mcast_grp; bit<16> egress_rid; bit<1> checksum_error; {error} }}
parser Parser<H, M>(packet_in b, out H h, inout M m, inout standard_metadata_t s);
control Check<H, M>(inout H h, inout M m);
control Flow<H, M>(inout H h, inout M m, inout standard_metadata_t s);
control Deparser<H>(packet_out b, in H h);
package V1Switch<H, M>({blocks});
header h_t {{ bit<8> a; }}
struct headers {{ h_t h; }}
struct meta_t {{ }}
parser P(packet_in b, out headers h, inout meta_t m, inout standard_metadata_t s) {{
    state start {{ b.extract(h.h); transition accept; }}
}}
control V(inout headers h, inout meta_t m) {{ apply {{ }} }}
control I(inout headers h, inout meta_t m, inout standard_metadata_t s) {{ apply {{ s.egress_spec = 1; }} }}
control D(packet_out b, in headers h) {{ apply {{ b.emit(h.h); }} }}
V1Switch({given}) main;
"""
BLOCKS = "Parser<H, M> p, Check<H, M> vr, Flow<H, M> ig, Flow<H, M> eg, Check<H, M> ck, Deparser<H> dep"
GIVEN = "P(), V(), I(), I(), V(), D()"
ERROR = "error parser_error;"


def test_an_architecture_of_the_same_shape_is_taken(tmp_path: Path) -> None:
    checked = check(tmp_path, OWN.format(error=ERROR, blocks=BLOCKS, given=GIVEN))
    assert "egress_spec" in generate(checked.program, make_p4info(checked.program), "own")


@pytest.mark.parametrize(
    ("error", "blocks", "given", "message"),
    [
        (ERROR, "Parser<H, M> p, Flow<H, M> ig, Deparser<H> dep", "P(), I(), D()", "with the blocks p, ig, dep"),
        (ERROR, BLOCKS.replace(" p,", " first,"), GIVEN, "with the blocks first"),
        (ERROR, BLOCKS.replace("Flow<H, M> ig", "Check<H, M> ig"), "P(), V(), V(), I(), V(), D()", "ig is declared"),
        ("", BLOCKS, GIVEN, "error parser_error"),
        ("bit<16> parser_error;", BLOCKS, GIVEN, "error parser_error"),
    ],
)
def test_an_architecture_of_the_program_s_own(
    tmp_path: Path, error: str, blocks: str, given: str, message: str
) -> None:
    errors = refused(tmp_path, OWN.format(error=error, blocks=blocks, given=given))
    assert any(message in e.message for e in errors), errors
    assert all(e.loc.line > 0 for e in errors)


def test_an_own_block_type_beside_those_of_v1model(tmp_path: Path) -> None:
    errors = refused(tmp_path, "parser Parser(in bit<8> x);\n" + program())
    assert any("Parser: duplicate declaration" in e.message for e in errors)
    errors = refused(tmp_path, program().replace("parser P(", "parser Parser(").replace("(P()", "(Parser()"))
    assert any("Parser: duplicate declaration" in e.message for e in errors)


@pytest.mark.parametrize(
    ("top", "body", "message"),
    [
        ("struct s { bit<0> <!>x; }", "s v; v.x = 0;", "a type of width 0"),
        ("header s { bit<0> <!>x; bit<8> y; }", "s v; v.setValid();", "a type of width 0"),
        ("header <!>s { bit<3> x; }", "s v; v.setValid();", "s of 3 bits, not a multiple of 8"),
        ("header s { bit<3> x; }\nstruct t { s <!>y; }", "", ""),
    ],
)
def test_what_the_target_does_not_take_has_a_place(tmp_path: Path, top: str, body: str, message: str) -> None:
    source, line, col = place(program(top=top, body=body))
    checked = check(tmp_path, source)
    if not message:
        generate(checked.program, make_p4info(checked.program), "unused")  # declared, and never used
        return
    with pytest.raises(CompileError, match=message) as refusal:
        generate(checked.program, make_p4info(checked.program), "refused")
    loc = refusal.value.diagnostics[0].loc
    assert (Path(loc.file).name, loc.line) == ("program.p4", line)
    assert loc.col <= col


@pytest.mark.parametrize(
    ("declaration", "message"),
    [
        ("bit<<!>100000> x;", "widths beyond"),
        ("bit<<!>100000> x = 1;", "widths beyond"),
        ("const bit<8> x = <!>meta.x;", "compile-time constant"),
        ("const bit<<!>100000> x = 1;", "widths beyond"),
        ("register<bit<8>>(4) <!>x;", "cannot be declared in a block"),
    ],
)
def test_uses_of_what_was_refused_are_not_refused_too(tmp_path: Path, declaration: str, message: str) -> None:
    source, line, col = place(program(body=f"{declaration}\nx = 1; meta.x = x[7:0]; {{ meta.y = (bit<16>)x; }}"))
    [error] = refused(tmp_path, source)
    assert (error.loc.line, error.loc.col) == (line, col)
    assert message in error.message


def test_a_name_that_was_there_before_stays_what_it_is(tmp_path: Path) -> None:
    errors = refused(tmp_path, program(body="bit<8> x = 1;\nbit<100000> x;\nmeta.y = x;"))
    assert [e.message.partition(":")[0] for e in errors] == ["100000", "cannot implicitly cast from bit<8> to bit<16>"]
