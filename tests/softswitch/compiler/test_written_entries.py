"""Entries that a program brings with it: what the control plane could not hold is left out or refused at its place."""

from __future__ import annotations

from pathlib import Path

import pytest
from p4_programs import check, place, program, refused

from catchment.softswitch.compiler import ir
from catchment.softswitch.compiler.backend import generate
from catchment.softswitch.compiler.diagnostics import CompileError
from catchment.softswitch.compiler.frontend import Checked
from catchment.softswitch.compiler.p4info import make_p4info
from catchment.softswitch.interpreter import InterpretedSwitch
from catchment.softswitch.interpreter.errors import InterpreterError

LOCALS = """
action s(bit<8> v) { meta.x = v; }
table t {
    key = { %s }
    actions = { s; NoAction; }
    %s
    %s
}
"""


def with_table(keys: str, entries: str, properties: str = "", top: str = "") -> str:
    return program(top=top, locals_=LOCALS % (keys, entries, properties), body="t.apply();")


def table_of(checked: Checked) -> ir.Table:
    unit = checked.program.pipeline["ig"].unit
    assert isinstance(unit, ir.ControlUnit)
    return unit.tables[0]


def data_of(table: ir.Table) -> list[object]:
    """The data of the entries' actions."""
    return [arg.value for e in table.entries for arg in e.action.data if isinstance(arg, ir.Literal)]


@pytest.mark.parametrize(
    ("keys", "entries", "left"),
    [
        ("hdr.h.a : range;", "<!>5 .. 1 : s(7); 0 .. 9 : s(8); 3 .. 3 : s(9);", [8, 9]),
        ("hdr.h.a : range; hdr.h.b : ternary;", "(0 .. 9, _) : s(8); (<!>5 .. 1, 4) : s(7);", [8]),
        ("hdr.h.s : range;", "<!>4 .. -1 : s(7); -4 .. -1 : s(8);", [8]),
        ('(e)hdr.h.a : range @name("k");', "<!>e.B .. e.A : s(7); e.A .. e.B : s(8);", [8]),
    ],
)
def test_an_entry_with_an_empty_range_is_left_out(tmp_path: Path, keys: str, entries: str, left: list[int]) -> None:
    written = f"const entries = {{ {entries} }}"
    source, line, col = place(with_table(keys, written, top="enum bit<8> e { A = 1, B = 2 }"))
    checked = check(tmp_path, source)
    assert data_of(table_of(checked)) == left
    (warning,) = checked.warnings
    assert (warning.loc.line, warning.loc.col) == (line, col)
    assert "the range is empty" in warning.message


def test_a_table_whose_only_entry_matches_nothing_has_none(tmp_path: Path) -> None:
    checked = check(tmp_path, with_table("hdr.h.a : range;", "const entries = { 5 .. 1 : s(7); }"))
    (table,) = make_p4info(checked.program).tables
    assert (table.is_const_table, table.has_initial_entries) == (True, False)


def test_an_empty_range_takes_its_place_in_the_order_of_priorities(tmp_path: Path) -> None:
    entries = "entries = { priority = 10 : 0 .. 9 : s(1); 5 .. 1 : s(2); 3 .. 4 : s(3); }"
    table = table_of(check(tmp_path, with_table("hdr.h.a : range;", entries, "priority_delta = 3;")))
    assert [e.priority for e in table.entries] == [10, 4]
    assert data_of(table) == [1, 3]


def test_a_range_that_a_constructor_parameter_makes_empty(tmp_path: Path) -> None:
    table = "table t { key = { x : range; } actions = { s; NoAction; } const entries = { n .. 4 : s(1); } }"
    inner = f"action s(bit<8> v) {{ x = v; }} {table}"
    top = f"control c(inout bit<8> x)(bit<8> n) {{ {inner} apply {{ t.apply(); }} }}"
    checked = check(
        tmp_path, program(top=top, locals_="c(3) low; c(5) high;", body="low.apply(meta.x); high.apply(meta.x);")
    )
    tables = {u.unique: u.tables[0] for u in checked.program.units if isinstance(u, ir.ControlUnit) and u.name == "c"}
    assert sorted(len(table.entries) for table in tables.values()) == [0, 1]


CONST, OPEN = "const entries = { %s }", "entries = { %s }"
REFUSED = [
    ("exact twice", "hdr.h.a : exact;", CONST % "1 : s(1); <!>1 : s(2);", "", "duplicate entry keys"),
    ("exact twice, not const", "hdr.h.a : exact;", OPEN % "1 : s(1); <!>0x01 : s(2);", "", "duplicate entry keys"),
    ("lpm twice", "hdr.h.a : lpm;", CONST % "16 : s(1); <!>16 &&& 0xff : s(2);", "", "duplicate entry keys"),
    (
        "one prefix twice",
        "hdr.h.b : exact; hdr.h.a : lpm;",
        OPEN % "(1, 0x10 &&& 0xf0) : s(1); (2, 0x10 &&& 0xf0) : s(1); <!>(1, 0x1f &&& 0xf0) : s(2);",
        "",
        "duplicate entry keys",
    ),
    (
        "one priority",
        "hdr.h.a : ternary;",
        OPEN % "priority = 3 : 1 : s(1); priority = 4 : 1 : s(2); <!>priority = 3 : 1 : s(3);",
        "",
        "duplicate entry keys",
    ),
    (
        "one annotated priority",
        "hdr.h.a : range;",
        CONST % "1 .. 2 : s(1) @priority(4); <!>1 .. 2 : s(2) @priority(4);",
        "",
        "duplicate entry keys",
    ),
    ("no priority", "hdr.h.a : ternary;", OPEN % "<!>priority = 0 : 1 : s(1);", "", "are 1 to 2147483647"),
    ("below", "hdr.h.a : ternary;", OPEN % "priority = 1 : 1 : s(1); <!>2 : s(2);", "", "priority 0:"),
    ("above", "hdr.h.a : ternary;", OPEN % "<!>priority = 2147483648 : 1 : s(1);", "", "are 1 to 2147483647"),
    (
        "least of all",
        "hdr.h.a : ternary;",
        OPEN % "<!>priority = 2147483647 : 1 : s(1);",
        "largest_priority_wins = false;",
        "are 0 to 2147483646",
    ),
    (
        "annotated beyond",
        "hdr.h.a : ternary;",
        CONST % "<!>1 : s(1) @priority(2147483647);",
        "",
        "the largest is 2147483646",
    ),
    ("annotated by a word", "hdr.h.a : ternary;", CONST % '1 : s(1) <!>@priority["high"];', "", "must hold one number"),
    (
        "profile",
        "hdr.h.a : exact;",
        CONST % "<!>1 : s(1);",
        "implementation = action_profile(4);",
        "a table with an implementation",
    ),
]


@pytest.mark.parametrize(
    ("keys", "entries", "properties", "message"), [r[1:] for r in REFUSED], ids=[r[0] for r in REFUSED]
)
def test_what_the_runtime_would_not_load_is_refused(
    tmp_path: Path, keys: str, entries: str, properties: str, message: str
) -> None:
    source, line, col = place(with_table(keys, entries, properties))
    (error,) = refused(tmp_path, source)
    assert message in error.message
    assert error.loc.line == line
    assert error.loc.col >= col  # an entry's place is that of its keys, which its priority stands before


@pytest.mark.parametrize(
    ("keys", "entries", "properties"),
    [
        ("hdr.h.a : ternary;", CONST % "1 : s(1); 1 : s(2);", ""),
        ("hdr.h.a : ternary;", OPEN % "1 : s(1); 1 : s(2);", ""),
        ("hdr.h.a : lpm;", CONST % "0x10 &&& 0xf0 : s(1); 0x10 &&& 0xf8 : s(2); _ : s(3);", ""),
        ("hdr.h.a : ternary;", OPEN % "priority = 0 : 1 : s(1);", "largest_priority_wins = false;"),
        ("hdr.h.a : ternary;", CONST % "1 : s(1) @priority(2147483646); 2 : s(2) @priority(0);", ""),
        ("hdr.h.a : optional;", OPEN % "_ : s(1); _ : s(2); 1 : s(3);", ""),
    ],
)
def test_entries_that_differ_in_some_way_are_taken(tmp_path: Path, keys: str, entries: str, properties: str) -> None:
    assert len(table_of(check(tmp_path, with_table(keys, entries, properties))).entries) >= 1


def test_a_range_around_zero_is_no_entry_of_the_target(tmp_path: Path) -> None:
    """The control plane's values have no sign: -1 .. 1 would be 0xff .. 0x01."""
    entries = CONST % "-4 .. -1 : s(1); <!>-1 .. 1 : s(2);"
    source, line, col = place(with_table("hdr.h.s : range;", entries))
    checked = check(tmp_path, source)
    with pytest.raises(CompileError, match="from below zero to above") as refusal:
        generate(checked.program, make_p4info(checked.program), "signs")
    loc = refusal.value.diagnostics[0].loc
    assert (loc.line, loc.col) == (line, col)
    with pytest.raises(InterpreterError, match=f":{line}:{col}: .*from below zero to above"):
        InterpretedSwitch(checked.program)
