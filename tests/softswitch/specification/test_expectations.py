"""What the P4_16 specification (1.2.5) says of expressions and statements, expected by hand, section by section.

The compiled switch and the interpreter have one front end, so that a misreading of the language passes a comparison of
the two. Each value here was worked out from the text of the section, and both must give it: for values that are known
when the program runs, and for the same ones as constants.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from catchment.softswitch.build import build
from catchment.softswitch.compiler.frontend import check_file
from catchment.softswitch.inprocess import Switch
from catchment.softswitch.interpreter import InterpretedSwitch

# What every frame holds; rows use the names as they use variables.
INPUTS = {"a": 200, "b": 100, "n": 9, "zero": 0, "one": 1, "seven": 7}

EXPRESSIONS: list[tuple[str, str, int]] = [
    # section, a bit<32> in P4, its value
    ("7.1.6.2 unsigned integers", "(bit<32>)(a + b)", 44),
    ("7.1.6.3 signed integers", "(bit<32>)(bit<8>)((int<8>)a)", 200),
    ("8.1 a second operand that is not evaluated", "(zero != 0 && touch(t) == 1) ? 32w9 : t", 0),
    ("8.1 a second operand that is not evaluated", "(one == 1 || touch(t) == 1) ? t : 32w9", 0),
    ("8.1 one branch of a conditional is evaluated", "(one == 1) ? t : touch(t)", 0),
    ("8.1 operands are evaluated from the left", "touch(t) * 10 + touch(t)", 12),
    ("8.1 operands are evaluated from the left", "t * 10 + touch(t)", 1),
    ("8.3 an enum with a representation", "(bit<32>)(bit<8>)Kind.second", 20),
    ("8.3 a value that no member has", "((Kind)(bit<8>)77 == (Kind)b) ? 32w1 : 32w0", 0),
    ("8.5 Booleans", "(!(a > b) == false && (a == 200) != (b == 99)) ? 32w1 : 32w0", 1),
    ("8.5.1 conditional operator", "(a > b) ? 32w3 : 32w4", 3),
    ("8.7 negation is subtraction from 2**W", "(bit<32>)(-a)", 56),
    ("8.7 negation of 0", "(bit<32>)(-zero)", 0),
    ("8.7 unary plus", "(bit<32>)(+a)", 200),
    ("8.7 subtraction wraps", "(bit<32>)(b - a)", 156),
    ("8.7 multiplication is cut", "(bit<32>)(a * b)", 20000 % 256),
    ("8.7 and, or, xor, complement", "(bit<32>)(((a & b) | (a ^ b)) ^ ~a)", ((200 | 100) ^ 55)),
    ("8.7 comparisons are unsigned", "(a > b && a >= 200 && b < a && b <= 100) ? 32w1 : 32w0", 1),
    ("8.7 saturating addition", "(bit<32>)(a |+| b)", 255),
    ("8.7 saturating subtraction", "(bit<32>)(b |-| a)", 0),
    ("8.7 saturation within the range", "(bit<32>)((a |-| b) |+| one)", 101),
    ("8.7 a shift by the width", "(bit<32>)(a << 8) + (bit<32>)(a >> 8)", 0),
    ("8.7 a shift beyond the width", "(bit<32>)(a << n) + (bit<32>)(a >> n)", 0),
    ("8.7 shifts", "(bit<32>)(a << one) + (bit<32>)(a >> one)", 144 + 100),
    ("8.7 a slice has both ends", "(bit<32>)a[6:3]", 9),
    ("8.7 a slice of one bit", "(bit<32>)(a[7:7] ++ a[0:0])", 2),
    ("8.7 concatenation has the left operand above", "(bit<32>)(a ++ b)", 200 * 256 + 100),
    ("8.8 signed values wrap", "word((int<8>)b + (int<8>)b)", 2**32 - 56),
    ("8.8 the least value is its own negation", "word(-(int<8>)(8w128))", 2**32 - 128),
    ("8.8 signed multiplication", "word((int<8>)a * (int<8>)seven)", 512 - 56 * 7),
    ("8.8 comparisons are signed", "((int<8>)a < (int<8>)b && (int<8>)a <= (int<8>)zero) ? 32w1 : 32w0", 1),
    ("8.8 signed saturation above", "word((int<8>)b |+| (int<8>)b)", 127),
    ("8.8 signed saturation below", "word((int<8>)a |-| (int<8>)b)", 2**32 - 128),
    ("8.8 a negative value shifted right", "word((int<8>)a >> one)", 2**32 - 28),
    ("8.8 a negative value shifted out to the right", "word((int<8>)a >> n)", 2**32 - 1),
    ("8.8 a positive value shifted out to the right", "word((int<8>)b >> n)", 0),
    ("8.8 a shift to the left changes the sign", "word((int<8>)b << one)", 2**32 - 56),
    ("8.8 a slice of a signed value is unsigned", "(bit<32>)((int<8>)a)[7:4]", 12),
    ("8.8 bitwise operations on two's complement", "word(((int<8>)a & (int<8>)b) | ~(int<8>)seven)", 2**32 - 8),
    ("8.9 int has no width", "(bit<32>)((1 << 100) >> 90)", 1024),
    ("8.9 division and modulo", "(bit<32>)(17 / 5 * 10 + 17 % 5)", 32),
    ("8.9 a negative int is rounded down by a shift", "word((int<8>)(-5 >> 1))", 2**32 - 3),
    (
        "8.9 a slice of an int is positive, and of as many bits as it asks for",
        "(bit<32>)(-1)[3:0] + (bit<32>)6[9:1]",
        18,
    ),
    ("8.9 a slice by its first bit and its width", "(bit<32>)0xabcd[4+:8]", 0xBC),
    ("8.10.1 the sign is of the left operand", "(bit<32>)((bit<16>)((int<8>)a ++ b) >> 4)", (200 * 256 + 100) >> 4),
    ("8.10.1 the sign is of the left operand", "word16((int<8>)a ++ b)", 2**32 - 2**16 + 200 * 256 + 100),
    ("8.10.2 a shift by far more than the width", "(bit<32>)((16w1 << 1024) + (bit<16>)zero)", 0),
    ("8.12.1 bit to a narrower bit keeps the low bits", "(bit<32>)(bit<4>)a", 8),
    ("8.12.1 bit to a wider bit has zeros above", "(bit<32>)(bit<16>)a", 200),
    ("8.12.1 int to a wider int has the sign above", "word16((int<16>)(int<8>)a)", 2**32 - 56),
    ("8.12.1 int to a narrower int keeps the low bits", "(bit<32>)(bit<4>)(int<4>)(int<8>)b", 4),
    ("8.12.1 bit<1> and bool", "(bool)a[3:3] ? 32w5 : (bit<32>)(bit<1>)(a > b)", 5),
    ("8.12.2 an int literal takes the other operand's type", "(bit<32>)(a + 56)", 0),
    ("8.13 tuples are compared element by element", "({a, b} == {8w200, 8w100}) ? 32w1 : 32w0", 1),
]

STATEMENTS: list[tuple[str, str, int]] = [
    # section, statements that set r, its value
    ("8.7 a slice as an l-value", "bit<8> x = a; x[3:1] = 3w5; r = (bit<32>)x;", 202),
    ("8.12.1 a struct from a tuple", "pair_t p = { a, b }; r = (bit<32>)p.y * 1000 + (bit<32>)p.x;", 100200),
    ("8.14 fields by their names", "pair_t p = { y = a, x = b }; r = (bit<32>)p.x;", 100),
    ("8.17 structs are copied", "pair_t p = { a, b }; pair_t q = p; q.x = 1; r = (bit<32>)p.x;", 200),
    (
        "8.18 an invalid header equals an invalid one only",
        "byte_h h; byte_h i; h.setInvalid(); i.setInvalid(); if (h == i) { r = 1; } i.setValid(); i.v = a;"
        " if (h != i) { r = r + 2; } h.setValid(); h.v = a; if (h == i) { r = r + 4; }",
        7,
    ),
    (
        "8.19 a member that becomes valid, and a choice (docs/reference/v1model.md) for one that does not",
        "either_t u; byte_h none; none.setInvalid(); u.y.setValid(); u.x = {3}; if (u.y.isValid()) { r = 1; }"
        " u.y.setInvalid(); u.z = none; if (u.x.isValid()) { r = r + 2; } u.x = none; if (u.isValid()) { r = r + 4; }",
        2,
    ),
    (
        "8.20 push_front",
        "fill(s); s.push_front(1); r = held(s);",
        0x0_1_2_3,
    ),
    ("8.20 push_front by more than one", "fill(s); s.push_front(2); r = held(s);", 0x0_0_1_2),
    ("8.20 push_front by more than there are", "fill(s); s.push_front(5); r = held(s);", 0),
    ("8.20 pop_front", "fill(s); s.pop_front(1); r = held(s);", 0x2_3_4_0),
    ("8.20 pop_front by more than one", "fill(s); s.pop_front(3); r = held(s);", 0x4_0_0_0),
    ("8.20 the size of a stack", "r = s.size;", 4),
    ("10 arguments are copied in and out, in order", "bit<32> x = 5; both(x, x); r = x;", 8),
    ("10 an out parameter is not copied in", "bit<32> x = 5; set_only(x); r = x;", 11),
    ("10 named arguments are evaluated as they stand", "r = less(y = touch(t), x = touch(t)) * 10 + t;", 12),
    ("10 named arguments are copied out as they stand", "bit<32> x = 5; both(y = x, x = x); r = x;", 6),
    (
        "8.14 fields by their names are evaluated as they stand",
        "pair_t p = { y = (bit<8>)touch(t), x = (bit<8>)touch(t) }; r = (bit<32>)p.x * 10 + (bit<32>)p.y;",
        21,
    ),
    ("10 a function returns its value", "r = larger(a, b) - larger(b, one);", 100),
    ("12.4 return ends a function", "r = early(a);", 1),
    ("12.6 conditional statement", "if (a < b) r = 1; else if (a == 200) r = 2; else r = 3;", 2),
    ("12.7.2 a label with a block", "switch (b) { 100: { r = 1; } 200: { r = 2; } default: { r = 3; } }", 1),
    ("12.7.2 a label without a block falls through", "switch (b) { 99: 100: 101: { r = 5; } default: { r = 6; } }", 5),
    ("12.7.3 no label fits and there is no default", "r = 4; switch (b) { 1: { r = 1; } }", 4),
    ("12.7.3 the default label", "switch (a) { 1: { r = 1; } default: { r = 9; } }", 9),
    ("12.7.3 the last label without a block", "r = 3; switch (b) { 1: { r = 1; } 100: }", 3),
    ("12.8 three clauses", "for (bit<8> i = 0; i < seven; i = i + 1) { r = r + (bit<32>)i; }", 21),
    ("12.8 the condition comes first", "for (bit<8> i = 0; i < zero; i = i + 1) { r = r + 1; }", 0),
    ("12.8 break", "for (bit<8> i = 0; i < seven; i = i + 1) { if (i == 3) { break; } r = r + 1; }", 3),
    (
        "12.8 continue goes on with the update",
        "for (bit<8> i = 0; i < seven; i = i + 1) { if (i == 3) { continue; } r = r + 1; }",
        6,
    ),
    ("12.8 a range has both ends", "for (bit<8> i in 8w2 .. 8w5) { r = r * 10 + (bit<32>)i; }", 2345),
    ("12.8 an empty range", "for (bit<8> i in 8w5 .. 8w2) { r = r + 1; }", 0),
]

PROGRAM = """\
#include <core.p4>
#include <v1model.p4>
enum bit<8> Kind {{ first = 10, second = 20 }}
struct pair_t {{ bit<8> x; bit<8> y; }}
header byte_h {{ bit<8> v; }}
header_union either_t {{ byte_h x; byte_h y; byte_h z; }}
header in_h {{ {inputs} }}
header out_h {{ {outputs} }}
struct headers_t {{ in_h i; out_h o; }}
struct meta_t {{ bit<8> unused; }}
bit<32> touch(inout bit<32> t) {{ t = t + 1; return t; }}
bit<32> word(in int<8> x) {{ return (bit<32>)(int<32>)x; }}
bit<32> word16(in int<16> x) {{ return (bit<32>)(int<32>)x; }}
void both(inout bit<32> x, inout bit<32> y) {{ x = x + 1; y = y + 3; }}
bit<32> less(in bit<32> x, in bit<32> y) {{ return x - y; }}
void set_only(out bit<32> x) {{ x = 11; }}
bit<32> larger(in bit<8> x, in bit<8> y) {{ if (x > y) {{ return (bit<32>)x; }} return (bit<32>)y; }}
bit<32> early(in bit<8> x) {{ bit<32> r = 1; if (x == 200) {{ return r; }} r = 2; return r; }}
void fill(inout byte_h[4] s) {{
    s[0].setValid(); s[0].v = 1; s[1].setValid(); s[1].v = 2; s[2].setValid(); s[2].v = 3; s[3].setValid(); s[3].v = 4;
}}
bit<32> place(in byte_h h) {{ bit<32> r = 0; if (h.isValid()) {{ r = (bit<32>)h.v; }} return r; }}
bit<32> held(in byte_h[4] s) {{
    return place(s[0]) << 12 | place(s[1]) << 8 | place(s[2]) << 4 | place(s[3]);
}}
parser P(packet_in b, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {{
    state start {{ b.extract(hdr.i); transition accept; }}
}}
control V(inout headers_t hdr, inout meta_t meta) {{ apply {{}} }}
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {{
    apply {{
        sm.egress_spec = 1;
        {variables}
        hdr.o.setValid();
{statements}
    }}
}}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {{ apply {{}} }}
control D(packet_out b, in headers_t hdr) {{ b.emit(hdr.o); }}
V1Switch(P(), V(), I(), E(), V(), D()) main;
""".replace("{{ b.emit(hdr.o); }}", "{{ apply {{ b.emit(hdr.o); }} }}")

ROWS = [*((s, f"r = {e};", w) for s, e, w in EXPRESSIONS), *STATEMENTS]


def program(*, constants: bool) -> str:
    """All rows in one program, which sends the value of each; the inputs are constants of it, or of the frame."""
    kind = "const bit<8> {0} = {1};" if constants else "bit<8> {0} = hdr.i.{0};"
    blocks = [
        f"        {{ bit<32> r = 0; bit<32> t = 0; byte_h[4] s; {code} hdr.o.f{at} = r; }}"
        for at, (_, code, _) in enumerate(ROWS)
    ]
    return PROGRAM.format(
        inputs=" ".join(f"bit<8> {name};" for name in INPUTS),
        outputs=" ".join(f"bit<32> f{at};" for at in range(len(ROWS))),
        variables=" ".join(kind.format(name, value) for name, value in INPUTS.items()),
        statements="\n".join(blocks),
    )


def compiled(source: Path) -> Callable[[int, bytes], list[tuple[int, bytes]]]:
    return Switch(build(source, strict=True), seed=1).inject


def interpreted(source: Path) -> Callable[[int, bytes], list[tuple[int, bytes]]]:
    return InterpretedSwitch(check_file(source).program).inject


@pytest.mark.sampled(4)
@pytest.mark.parametrize("constants", [False, True], ids=["variables", "constants"])
@pytest.mark.parametrize("engine", [compiled, interpreted])
def test_every_row_has_the_value_that_its_section_gives_it(
    engine: Callable[[Path], Callable[[int, bytes], list[tuple[int, bytes]]]], constants: bool, tmp_path: Path
) -> None:
    source = tmp_path / "rows.p4"
    source.write_text(program(constants=constants), "utf-8")
    ((port, frame),) = engine(source)(1, bytes(INPUTS.values()))
    assert port == 1
    assert len(frame) == 4 * len(ROWS)
    values = [int.from_bytes(frame[4 * at : 4 * at + 4], "big") for at in range(len(ROWS))]
    wrong = [f"{s}: {code} gives {v}, not {w}" for (s, code, w), v in zip(ROWS, values, strict=True) if v != w]
    assert not wrong, "\n".join(wrong)
