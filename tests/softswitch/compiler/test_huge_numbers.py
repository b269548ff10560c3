"""Numbers of thousands of digits are refused or taken in a message that can be read; Python writes at most 4300."""

from __future__ import annotations

from pathlib import Path

import pytest
from p4_programs import check, place, program, refused

from catchment.softswitch.compiler import fold
from catchment.softswitch.compiler.backend import generate
from catchment.softswitch.compiler.diagnostics import shown
from catchment.softswitch.compiler.p4info import make_p4info
from catchment.softswitch.compiler.types import InfIntType

HUGE = {"computed": "(1 << 60000)", "hexadecimal": "0x1" + "0" * 15000}
"""Both are 2^60000."""

TABLE = "table t { key = { meta.x : %s; } actions = { NoAction; } %s }"
REFUSED = [
    ({"body": "meta.x = (bit<8>)(1 << <!>BIG);"}, "shift amount a number of 60001 bits is too large"),
    ({"body": "meta.x = meta.x << <!>-BIG;"}, "shift by a negative amount: a negative number of 60001 bits"),
    ({"body": "meta.x = <!>meta.y[BIG:0];"}, "bit a number of 60001 bits is beyond bit<16>"),
    ({"body": "meta.x = <!>meta.y[0:BIG];"}, "[0:a number of 60001 bits]: the first bit index must not be less"),
    ({"body": "meta.x = meta.y[0+:<!>BIG];"}, "a number of 60001 bits: width of a slice of bit<16>"),
    ({"body": "hdr.stack[<!>BIG].a = 1;"}, "index a number of 60001 bits is out of bounds"),
    ({"body": "meta.flag = (bool)<!>BIG;"}, "a number of 60001 bits: only 0 and 1 can be cast to bool"),
    ({"top": "typedef bit<<!>BIG> t;"}, "a number of 60001 bits: widths beyond 65536 bits are not supported"),
    ({"top": "typedef bit<<!>(-BIG)> t;"}, "a negative number of 60001 bits: invalid width of bit<>"),
    ({"top": "struct s { h_t[<!>BIG] x; }"}, "a number of 60001 bits elements; an array has 65536 at most"),
    ({"top": "struct s { h_t[<!>(-BIG)] x; }"}, "a negative number of 60001 bits: a header stack cannot"),
    ({"top": "enum bit<8> e { <!>a = BIG }"}, "a: the value a number of 60001 bits is out of bounds of bit<8>"),
    ({"locals_": "<!>register<bit<8>>(BIG) r;"}, "a number of 60001 bits: the size of register"),
    ({"locals_": TABLE % ("exact", "size = <!>BIG;")}, "a number of 60001 bits: the size of a table is 0 to"),
    ({"locals_": TABLE % ("ternary", "priority_delta = <!>-BIG; entries = { 1 : NoAction(); }")}, "must be 1 or more"),
    ({"locals_": TABLE % ("ternary", "entries = { <!>priority = BIG : 1 : NoAction(); }")}, "the priorities of this"),
    ({"locals_": "<!>@id(BIG) " + TABLE % ("exact", "")}, "@id: must hold one number of 32 bits"),
]


@pytest.mark.parametrize("number", HUGE.values(), ids=HUGE)
@pytest.mark.parametrize(("pieces", "message"), REFUSED, ids=[message[-40:] for _, message in REFUSED])
def test_a_huge_number_is_refused_at_its_place(
    tmp_path: Path, pieces: dict[str, str], message: str, number: str
) -> None:
    written = {where: text.replace("BIG", number) for where, text in pieces.items()}
    source, line, _ = place(program(**written))
    errors = refused(tmp_path, source)
    assert [error.loc.line for error in errors] == [line]
    assert message in errors[0].message


@pytest.mark.parametrize(
    ("body", "warning"),
    [
        ("meta.x = BIG;", "a number of 60001 bits: value does not fit in bit<8>"),
        ("meta.x = -BIG;", "a negative number of 60001 bits: negative value with unsigned type bit<8>"),
        ("hdr.stack.push_front(BIG); hdr.stack.pop_front(BIG);", ""),
    ],
)
@pytest.mark.parametrize("number", HUGE.values(), ids=HUGE)
def test_a_huge_number_is_taken(tmp_path: Path, body: str, warning: str, number: str) -> None:
    checked = check(tmp_path, program(body=body.replace("BIG", number)))
    assert all(warning in w.message for w in checked.warnings) and len(checked.warnings) == (warning != "")
    code = generate(checked.program, make_p4info(checked.program), "huge")
    assert "push_front" not in body or (".push_front(4)" in code and ".pop_front(4)" in code)


def test_a_key_with_a_huge_decimal_number_needs_a_name(tmp_path: Path) -> None:
    table = "bit<65536> v = 0; " + TABLE.replace("meta.x", "<!>v & BIG") % ("exact", "")
    source, line, col = place(program(locals_=table.replace("BIG", HUGE["computed"])))
    (error,) = refused(tmp_path, source)
    assert (error.loc.line, error.loc.col, error.message) == (line, col, "a complex key needs a name")
    checked = check(tmp_path, program(locals_=table.replace("<!>", "").replace("BIG", HUGE["hexadecimal"])))
    generate(checked.program, make_p4info(checked.program), "keys")


def test_a_field_list_that_nobody_can_name_is_none(tmp_path: Path) -> None:
    source = program(body="resubmit_preserving_field_list(3);")
    for number, kept in ((3, True), (255, True), (256, False), (-1, False), (HUGE["computed"], False)):
        checked = check(tmp_path, source.replace("bit<8> x;", f"@field_list({number}) bit<8> x;", 1))
        code = generate(checked.program, make_p4info(checked.program), "lists")
        assert (f"if (list == {number})" in code) == kept and ("if (list ==" in code) == kept


@pytest.mark.parametrize("width", ["65537", "9999999999", "9" * 5000])
@pytest.mark.parametrize("sign", ["w", "s"])
def test_a_literal_is_no_wider_than_a_field_may_be(tmp_path: Path, width: str, sign: str) -> None:
    source, line, col = place(program(body=f"meta.x = (bit<8>)<!>{width}{sign}1;"))
    (error,) = refused(tmp_path, source)
    assert (error.loc.line, error.loc.col) == (line, col)
    assert "widths beyond 65536 bits are not supported" in error.message
    check(tmp_path, program(body="meta.x = (bit<8>)65536w1;"))


def test_products_of_products_are_refused_before_they_fill_the_memory(tmp_path: Path) -> None:
    squares = [f"const int c{n} = c{n - 1} * c{n - 1};" for n in range(1, 60)]
    source = program(top="\n".join(["const int c0 = 3;", *squares]))
    errors = refused(tmp_path, source)
    assert "the value has more than 131072 bits" in errors[0].message
    assert "c17 =" in source.splitlines()[errors[0].loc.line - 1]  # 3 to the power of 2^17


def test_the_largest_constants() -> None:
    most = (1 << fold.LARGEST_NUMBER) - 1
    assert fold.arithmetic("+", most, -1, InfIntType()) == most - 1
    for operator, one in (("+", 1), ("*", 2), ("-", -1)):
        with pytest.raises(fold.FoldError, match="more than 131072 bits"):
            fold.arithmetic(operator, most, one, InfIntType())
    with pytest.raises(fold.FoldError, match="more than 131072 bits"):
        fold.shift("<<", most, 1, InfIntType())


def test_how_a_number_is_shown() -> None:
    assert (shown(255), shown(-7)) == ("255", "-7")
    assert shown((1 << 1024) - 1) == str((1 << 1024) - 1)
    assert (shown(1 << 1024), shown(-(1 << 1024))) == ("a number of 1025 bits", "a negative number of 1025 bits")


@pytest.mark.parametrize("marker", ["# N", '# N "x.p4"'])
def test_a_line_number_that_no_file_has(tmp_path: Path, marker: str) -> None:
    errors = refused(tmp_path, marker.replace("N", "9" * 5000) + "\n" + program())
    assert errors[0].loc.line == 1
